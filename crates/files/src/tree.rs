//! A recording that is read: symbolic links are never followed out of the folder that the user named.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, RawMode, ResolveFlags, fstat, open, openat, openat2};
use rustix::io::Errno;

use crate::Refused;

/// How often a lookup is repeated if a rename has disturbed it.
const ATTEMPTS: usize = 16;

/// A folder for reading files. Links on the way to it are followed.
#[derive(Debug)]
pub struct Tree(OwnedFd);

impl Tree {
    /// Opens the folder.
    ///
    /// # Errors
    /// The path does not exist, or is not a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self(open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// A folder that is open, wherever it is now.
    ///
    /// # Errors
    /// The system call fails.
    pub fn of(folder: impl AsFd) -> io::Result<Self> {
        Ok(Self(openat(folder, ".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens the regular file `path`, which is below the folder `root`, as [`Tree::file`] does.
    ///
    /// # Errors
    /// As [`Tree::file`]; or `path` does not begin with `root`.
    pub fn open_file(root: &Path, path: &Path) -> io::Result<File> {
        let below = path.strip_prefix(root).map_err(|_| Refused::LinkOut)?;
        Self::open(root)?.file(below)
    }

    /// Device and inode of the folder, which identify it.
    ///
    /// # Errors
    /// The system call fails.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let data = fstat(&self.0)?;
        Ok((data.st_dev, data.st_ino))
    }

    /// Opens a regular file below the folder. Links that stay below it are followed, if the kernel can check
    /// that (from Linux 5.6).
    ///
    /// # Errors
    /// It does not exist, is not a regular file, or a link leads out of the folder ([`Refused::LinkOut`]).
    pub fn file(&self, below: &Path) -> io::Result<File> {
        // Opening a pipe must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.lookup(below, flags)?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode as RawMode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Refused::NotAFile.into()),
        }
    }

    /// Opens a folder below this one; links as in [`Tree::file`].
    ///
    /// # Errors
    /// It does not exist, is not a folder, or a link leads out.
    pub fn folder(&self, below: &Path) -> io::Result<Self> {
        self.lookup(below, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).map(Self)
    }

    fn lookup(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            match openat2(&self.0, below, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                // Kernels before 5.6, and filters of containers that do not know the call.
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(below, flags),
                Err(Errno::XDEV) => return Err(Refused::LinkOut.into()),
                result => return Ok(result?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The same, one name after the other, without links.
    fn walk(&self, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut names: Vec<&OsStr> = Vec::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(Refused::LinkOut.into()),
            }
        }
        let last = names.pop().unwrap_or(OsStr::new("."));
        let refused = |error| match error {
            Errno::LOOP | Errno::NOTDIR => Refused::LinkOut.into(),
            error => io::Error::from(error),
        };
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at: Option<OwnedFd> = None;
        for name in names {
            let folder = at.as_ref().unwrap_or(&self.0);
            at = Some(openat(folder, name, through, Mode::empty()).map_err(refused)?);
        }
        let folder = at.as_ref().unwrap_or(&self.0);
        openat(folder, last, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn where_the_kernel_cannot_check_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("trace");
        fs::create_dir_all(root.join("user")).unwrap();
        fs::write(root.join("user/stream"), "inside").unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        symlink("../../secret", root.join("user/out")).unwrap();
        symlink(folder.path(), root.join("away")).unwrap();
        let tree = Tree::open(&root).unwrap();
        let walk = |below: &str| tree.walk(Path::new(below), OFlags::RDONLY | OFlags::CLOEXEC);
        for below in ["user/stream", "./user/./stream"] {
            let mut text = String::new();
            File::from(walk(below).unwrap()).read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{below}");
        }
        for below in ["user/out", "away/secret", "../secret", "user/../../secret", "/etc/passwd"] {
            let refused = walk(below).err().and_then(|error| Refused::of(&error));
            assert_eq!(refused, Some(Refused::LinkOut), "{below}");
        }
    }
}
