//! Whether an output folder and its files are still in place: if a folder is removed while it is written,
//! everything in it is lost, and no write fails.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Bound;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, fstat, statat};
use rustix::io::Errno;

use crate::Dir;
use crate::dir::Inode;

/// Number of files of a folder that one check looks at; the next check looks at others.
const FILES_PER_LOOK: usize = 128;

/// An output folder, or a file in it, that is no longer in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Removed: its contents are lost.
    Deleted(PathBuf),
    /// Renamed, or replaced by something else; the second path is its present place.
    Moved(PathBuf, PathBuf),
}

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleted(path) => write!(
                f,
                "{} was deleted during the recording, and what it held is lost; record again, into a folder that nothing cleans up",
                path.display()
            ),
            Self::Moved(path, to) => write!(
                f,
                "{} was moved during the recording; what is recorded is in {}",
                path.display(),
                to.display()
            ),
        }
    }
}

impl Dir {
    /// Checks that the folder, the folders created in it, and some of the files created in them are in place;
    /// with `all`, every file.
    ///
    /// # Errors
    /// The first missing one. If the system cannot say, nothing is treated as missing.
    pub fn check(&self, all: bool) -> Result<(), Missing> {
        let Ok(data) = fstat(self) else { return Ok(()) };
        let inode = (data.st_dev, data.st_ino);
        if data.st_nlink == 0 {
            return Err(Missing::Deleted(self.path().to_owned()));
        }
        let there = statat(CWD, self.place(), AtFlags::empty()).map(|data| (data.st_dev, data.st_ino));
        if !is_still(there, inode) {
            return Err(self.moved());
        }
        self.check_entries(all)
    }

    fn check_entries(&self, all: bool) -> Result<(), Missing> {
        let mut made = self.made();
        let look = |name: &OsStr| {
            statat(self, name, AtFlags::SYMLINK_NOFOLLOW).map(|data| (data.st_dev, data.st_ino))
        };
        let deleted = |name: &OsStr| Missing::Deleted(self.path().join(name));
        let most = if all { usize::MAX } else { FILES_PER_LOOK };
        let begin = if all { Bound::Unbounded } else { Bound::Excluded(made.looked.as_os_str()) };
        let mut last = None;
        for (name, inode) in made.files.range::<OsStr, _>((begin, Bound::Unbounded)).take(most) {
            if !is_still(look(name), *inode) {
                return Err(deleted(name));
            }
            last = Some(name.clone());
        }
        // After the last file it starts again with the first.
        made.looked = last.unwrap_or_default();
        for (name, folder) in &made.folders {
            let Ok(data) = fstat(folder) else { continue };
            if data.st_nlink == 0 {
                return Err(deleted(name));
            }
            if !is_still(look(name), (data.st_dev, data.st_ino)) {
                return Err(folder.moved());
            }
            folder.check_entries(all)?;
        }
        Ok(())
    }

    fn moved(&self) -> Missing {
        let link = format!("/proc/self/fd/{}", self.as_fd().as_raw_fd());
        match std::fs::read_link(link) {
            Ok(to) if to != self.place() && !to.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") => {
                Missing::Moved(self.path().to_owned(), to)
            }
            _ => Missing::Deleted(self.path().to_owned()),
        }
    }
}

/// Whether a name still refers to a file; also `true` if that cannot be determined.
fn is_still(found: Result<Inode, Errno>, inode: Inode) -> bool {
    match found {
        Ok(found) => found == inode,
        Err(error) => error != Errno::NOENT && error != Errno::NOTDIR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_replaced_are_never_missing() {
        let place = tempfile::tempdir().unwrap();
        let (folder, _) = Dir::create(&place.path().join("t")).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..2000).for_each(|_| folder.replace("file", b"content").unwrap()));
            while !writer.is_finished() {
                folder.check(true).unwrap();
            }
        });
        std::fs::remove_file(place.path().join("t/file")).unwrap();
        assert_eq!(folder.check(true), Err(Missing::Deleted(folder.path().join("file"))));
    }
}
