//! The trace folder: the folders of its traces, and room for its description.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracewing_files::{Dir, Made};

use crate::Error;
use crate::description::{DESCRIPTION, Description};

/// Name of the user trace's folder in the trace folder.
pub const USER: &str = "user";
/// Name of the kernel trace's folder in the trace folder, which only a kernel recorder makes.
pub const KERNEL: &str = "kernel";
/// Name of the folder of the trace of samples, which only a recorder of samples makes.
pub const PROFILE: &str = "profile";

/// The folders of all traces that a recording may have.
const TRACES: [&str; 3] = [KERNEL, USER, PROFILE];

/// Room kept for the description that is written when the recording ends, bytes.
const RESERVE: u64 = 64 << 10;

/// A trace folder. It is locked as long as the recording is being made.
#[derive(Debug, Clone)]
pub struct Folder {
    dir: Dir,
    user: Dir,
    /// Those of the folder and its parents that were created.
    made: Made,
    /// An anonymous file whose space is released for the description if the disk is full.
    reserve: Arc<Mutex<Option<File>>>,
}

impl Folder {
    /// Creates the folder, its parents, and `user` in it. An existing folder is accepted if it is empty,
    /// belongs to this user, and others cannot write to it.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; or it cannot be created, or others could change it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let (dir, made) = Dir::create(path).map_err(Error::folder(path))?;
        Self::in_dir(dir, made.clone()).inspect_err(|_| made.remove_empty())
    }

    /// Like [`Folder::create`], for a new folder in `parent`.
    ///
    /// # Errors
    /// As for [`Folder::create`]; then no new folder is left.
    pub fn within(parent: &Dir, name: &str) -> Result<Self, Error> {
        let dir = parent.make(name).map_err(Error::folder(&parent.path().join(name)))?;
        Self::in_dir(dir, Made::default()).inspect_err(|_| drop(parent.remove_all(name)))
    }

    /// Moves the traces of a folder that are being written into a new folder in `parent`, which is on the
    /// same file system. The new one is described and locked first: whenever this process is killed, each
    /// trace is in a folder that says so.
    ///
    /// # Errors
    /// It cannot be created, described, or moved to; then the traces are where they were.
    pub fn moved(&self, parent: &Dir, name: &str, description: &Description) -> Result<Self, Error> {
        let dir = parent.make(name).map_err(Error::folder(&parent.path().join(name)))?;
        dir.lock();
        let reserve = Arc::new(Mutex::new(dir.reserve(RESERVE)));
        let this = Self { dir, user: self.user.clone(), made: Made::default(), reserve };
        let moved = this.describe(description).and_then(|()| {
            TRACES.into_iter().try_for_each(|trace| match self.dir.has(trace) {
                false => Ok(()),
                true => {
                    let moved = self.dir.move_folder(trace, &this.dir);
                    moved.map_err(Error::file("move", &self.dir.path().join(trace)))
                }
            })
        });
        if let Err(error) = moved {
            for trace in TRACES {
                if this.dir.has(trace) {
                    let _ = this.dir.move_folder(trace, &self.dir);
                }
            }
            let _ = parent.remove_all(name);
            return Err(error);
        }
        Ok(this)
    }

    fn in_dir(dir: Dir, made: Made) -> Result<Self, Error> {
        // If the folder is locked and this one is missing, it is a flight recorder's.
        let user = dir.make(USER).map_err(Error::file("create", &dir.path().join(USER)))?;
        dir.lock();
        let reserve = Arc::new(Mutex::new(dir.reserve(RESERVE)));
        Ok(Self { dir, user, made, reserve })
    }

    /// Removes what was created for a recording that did not begin: all traces in the folder, which was
    /// empty, its description, and the folder and its parents if they did not exist before. Files of other
    /// programs in it stay.
    pub fn discard(self) {
        let _ = self.dir.remove(DESCRIPTION);
        for trace in TRACES {
            let _ = self.dir.remove_all(trace);
        }
        self.made.remove_empty();
    }

    /// The open folder, by whose descriptor all files are created.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The folder's path, as it was given.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The user trace's folder.
    pub fn user(&self) -> &Dir {
        &self.user
    }

    /// Checks that the folder and what was created in it still exist; with `all`, every file.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn check(&self, all: bool) -> Result<(), Error> {
        Ok(self.dir.check(all)?)
    }

    /// Writes `tracewing.json`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn describe(&self, description: &Description) -> Result<(), Error> {
        match description.write(&self.dir) {
            Err(error) if error.is_disk_full() => {
                let reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner).take();
                drop(reserve.ok_or(error)?);
                description.write(&self.dir)
            }
            result => result,
        }
    }
}
