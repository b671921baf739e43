//! How an output folder comes to be: made by this process, or an empty one of its user that others cannot
//! write.

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
/// Group and others may write.
const WRITABLE: u32 = 0o022;

/// Folders that were made on the way to one, by the folder in which each lies; the outermost first.
#[derive(Debug, Clone, Default)]
pub struct Made(Vec<(Arc<OwnedFd>, OsString)>);

impl Made {
    /// Removes them, the innermost first, as far as nothing is in them.
    pub fn remove_empty(&self) {
        for (parent, name) in self.0.iter().rev() {
            let _ = unlinkat(parent, name.as_os_str(), AtFlags::REMOVEDIR);
        }
    }
}

impl Dir {
    /// Makes a folder for output and its missing parents, or takes an empty one that this user owns and
    /// others cannot write.
    ///
    /// # Errors
    /// It cannot be made, or is [`Refused`]. What was made is removed again.
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
    /// `/tmp`. The entry's own folder is what others cannot write.
    ///
    /// # Errors
    /// It is not there, or no folder.
    pub fn parent(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, open_parent(path)?))
    }

    /// The folder at `path` for files that only this user is to read and write, which is made with its
    /// missing parents.
    ///
    /// # Errors
    /// It cannot be made, or it or the folder in which it is to be made belongs to another user
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

    /// Makes a folder in this one.
    ///
    /// # Errors
    /// Something of that name is there, or it cannot be made.
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
            // A path that ends in no name of its own, such as `.`: there in any case.
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
                // Another process was faster: a parent like those that were there.
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

/// The innermost folder on the way to `path` that is there, and the names below it, of which only the last
/// may be there.
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

/// Opens the folder `name`, which must be this user's own.
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

/// Whether only this user can put something into a folder.
fn must_be_ours(folder: &Stat) -> io::Result<()> {
    if folder.st_uid != geteuid().as_raw() {
        return Err(Refused::Foreign(folder.st_uid).into());
    }
    // The group's bits are also the most that an access control list gives to anyone else.
    if folder.st_mode & WRITABLE != 0 {
        return Err(Refused::Writable.into());
    }
    Ok(())
}
