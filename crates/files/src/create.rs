//! Creation of output folders: created by this process, or an existing empty one that this user owns and
//! others cannot write.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, mkdirat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{Dir, Refused};

/// Permissions of folders, before the umask.
const FOLDER: Mode = Mode::from_raw_mode(0o750);
/// Permissions of the user's cache, and its parents.
const PRIVATE: Mode = Mode::from_raw_mode(0o700);
/// Write permission for group and others.
pub(crate) const WRITABLE: u32 = 0o022;

/// Folders that were created on the way to one, by the folder that contains each; the outermost first.
#[derive(Debug, Clone, Default)]
pub struct Made(Vec<(Arc<OwnedFd>, OsString)>);

impl Made {
    /// Removes the folders that are empty, the innermost first.
    pub fn remove_empty(&self) {
        for (parent, name) in self.0.iter().rev() {
            let _ = unlinkat(parent, name.as_os_str(), AtFlags::REMOVEDIR);
        }
    }
}

impl Dir {
    /// Creates a folder for output and its missing parents, or uses an empty one that this user owns and
    /// others cannot write.
    ///
    /// # Errors
    /// The folder cannot be created, or is [`Refused`]. Folders created by the call are removed again.
    pub fn create(path: &Path) -> io::Result<(Self, Made)> {
        let mut made = Made::default();
        let created = made.create(path).and_then(|dir| match dir.entries()?.is_empty() {
            true => Ok(dir),
            false => Err(Refused::NotEmpty.into()),
        });
        match created {
            Ok(dir) => Ok((dir, made)),
            Err(error) => {
                made.remove_empty();
                Err(error)
            }
        }
    }

    /// Opens the folder `path` to put one new entry into it: any folder that this process may write, such as
    /// `/tmp`. Only the entry itself is protected from others.
    ///
    /// # Errors
    /// The folder does not exist, or the path is not a folder.
    pub fn parent(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, open_parent(path)?))
    }

    /// The folder at `path` for files that only this user may read and write; created with its missing
    /// parents.
    ///
    /// # Errors
    /// The folder cannot be created; or it, or its existing parent, belongs to another user
    /// ([`Refused::Foreign`]) or can be written by others.
    pub fn private(path: &Path) -> io::Result<Self> {
        let (parent, names) = existing_parent(path)?;
        if names.is_empty() {
            return Err(Errno::INVAL.into());
        }
        let mut folder = parent;
        must_be_ours(&fstat(&folder)?)?;
        for name in &names {
            match mkdirat(&folder, name, PRIVATE) {
                Ok(()) | Err(Errno::EXIST) => folder = open_own(&folder, name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self::new(path, folder))
    }

    /// Creates a folder in this one.
    ///
    /// # Errors
    /// The name exists already, or the folder cannot be created.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        mkdirat(self, name, FOLDER)?;
        let made = open_own(self, OsStr::new(name)).inspect_err(|_| {
            let _ = unlinkat(self, name, AtFlags::REMOVEDIR);
        })?;
        let made = Self::new(&self.path().join(name), made);
        self.keep_folder(name, &made);
        Ok(made)
    }
}

impl Made {
    fn create(&mut self, path: &Path) -> io::Result<Dir> {
        let (parent, names) = existing_parent(path)?;
        let Some((last, parents)) = names.split_last() else {
            // A path without a name of its own at the end, such as `.`: it exists in any case.
            must_be_ours(&fstat(&parent)?)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return Ok(Dir::new(path, openat(&parent, ".", flags, Mode::empty())?));
        };
        let mut folder = Arc::new(parent);
        for name in parents {
            let next = match mkdirat(&folder, name, FOLDER) {
                Ok(()) => {
                    self.0.push((folder.clone(), name.clone()));
                    open_own(&folder, name)?
                }
                // Another process was faster: the parent is treated like an existing one.
                Err(Errno::EXIST) => {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    openat(&folder, name, flags, Mode::empty())?
                }
                Err(error) => return Err(error.into()),
            };
            folder = Arc::new(next);
        }
        match mkdirat(&folder, last, FOLDER) {
            Ok(()) => self.0.push((folder.clone(), last.clone())),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Dir::new(path, open_own(&folder, last)?))
    }
}

/// The innermost existing folder on the way to `path`, and the names below it, of which only the last may
/// exist.
fn existing_parent(path: &Path) -> io::Result<(OwnedFd, Vec<OsString>)> {
    let mut names: Vec<OsString> = Vec::new();
    let mut at = path;
    while let (Some(name), Some(parent)) = (at.file_name(), at.parent()) {
        names.insert(0, name.to_owned());
        at = parent;
        match open_parent(at) {
            Ok(folder) => return Ok((folder, names)),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((open_parent(at)?, names))
}

fn open_parent(path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens the folder `name`, which this user must own.
fn open_own(parent: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&parent, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR if is_link(&parent, name) => Refused::Link.into(),
        error => io::Error::from(error),
    })?;
    must_be_ours(&fstat(&folder)?)?;
    Ok(folder)
}

fn is_link(parent: impl AsFd, name: &OsStr) -> bool {
    let data = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    data.is_ok_and(|data| rustix::fs::FileType::from_raw_mode(data.st_mode).is_symlink())
}

/// Fails unless only this user can put something into the folder.
fn must_be_ours(folder: &Stat) -> io::Result<()> {
    if folder.st_uid != geteuid().as_raw() {
        return Err(Refused::Foreign(folder.st_uid).into());
    }
    // The group's bits are also the maximum that an access control list grants to other users.
    if folder.st_mode & WRITABLE != 0 {
        return Err(Refused::Writable.into());
    }
    Ok(())
}
