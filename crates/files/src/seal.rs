//! What a folder has had when it was complete, so that it can be removed later only if nothing has changed in
//! it since, and if no other folder has come in its place.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, RawMode, Stat, fstat, statat, unlinkat};
use rustix::io::Errno;

use crate::Dir;
use crate::dir::{DEEPEST, found, names, open_unmounted};

/// A folder or a file as it was found: all folders and files by their names and inodes, files also by their
/// sizes and by when they last changed in any way, which no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// The inode of the folder itself, or of the file.
    pub inode: u64,
    /// A hash of the rest.
    pub hash: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// When the last file was written, and the last entry was made below the folder, in ns since 1970. The
    /// entries of the folder itself are not considered.
    pub written: i64,
}

impl Seal {
    /// As long as nothing below the folder changes, it stays the same, also if the folder is renamed.
    fn add(&mut self, name: &OsStr, data: &Stat) {
        let is_file = FileType::from_raw_mode(data.st_mode as RawMode).is_file();
        self.hash_bytes(name.as_bytes());
        self.hash_bytes(&[0, u8::from(is_file)]);
        self.hash_bytes(&data.st_ino.to_le_bytes());
        if is_file {
            self.hash_bytes(&data.st_size.to_le_bytes());
            self.hash_bytes(&data.st_ctime.to_le_bytes());
            self.hash_bytes(&data.st_ctime_nsec.to_le_bytes());
            self.bytes += u64::try_from(data.st_size).unwrap_or(0);
        }
        let seconds = data.st_mtime.saturating_mul(1_000_000_000);
        self.written = self.written.max(seconds.saturating_add(data.st_mtime_nsec as i64));
    }

    /// FNV-1a, which is the same in each version of this program.
    fn hash_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Dir {
    /// The seal of a file or folder in this one, without the entries of that folder for which `is_left_out`
    /// says so. `None` if it is not there, or has anything that this process cannot have made there: links,
    /// files of another user or with a second name, a folder that it cannot read or on which something is
    /// mounted, and what `is_part` does not know by its path below the folder.
    ///
    /// # Errors
    /// The system cannot look at it now: the disk fails, or this process has too many descriptors.
    pub fn seal(
        &self,
        name: impl AsRef<OsStr>,
        is_left_out: impl Fn(&OsStr) -> bool,
        is_part: impl Fn(&Path) -> bool,
    ) -> io::Result<Option<Seal>> {
        let name = name.as_ref();
        let Some(data) = found(statat(self, name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(None) };
        let owner = fstat(self)?.st_uid;
        let mut seal = Seal { inode: data.st_ino, hash: 0xcbf2_9ce4_8422_2325, bytes: 0, written: i64::MIN };
        if is_own_file(&data, owner) {
            seal.add(OsStr::new(""), &data);
            return Ok(Some(seal));
        }
        let Some(folder) = found(open_unmounted(self.as_fd(), name))? else { return Ok(None) };
        let now = fstat(&folder)?;
        let mut is_sealed = (now.st_ino, now.st_dev, now.st_uid) == (data.st_ino, data.st_dev, owner);
        let mut below = Below { seal: &mut seal, owner, is_part: &is_part };
        for entry in sorted(folder.as_fd())?.iter().filter(|entry| !is_left_out(entry)) {
            is_sealed = is_sealed && below.add(folder.as_fd(), entry, Path::new(entry), DEEPEST)?;
        }
        Ok(is_sealed.then_some(seal))
    }

    /// Removes a folder in this one if it is empty. Whether it is gone.
    pub fn remove_empty(&self, name: impl AsRef<OsStr>) -> bool {
        matches!(unlinkat(self, name.as_ref(), AtFlags::REMOVEDIR), Ok(()) | Err(Errno::NOENT))
    }

    /// The inode of this folder.
    ///
    /// # Errors
    /// The system call fails.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(self.id()?.1)
    }

    /// Its device and inode.
    ///
    /// # Errors
    /// The system call fails.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let data = fstat(self)?;
        Ok((data.st_dev, data.st_ino))
    }
}

fn is_own_file(data: &Stat, owner: u32) -> bool {
    let is_file = FileType::from_raw_mode(data.st_mode as RawMode).is_file();
    is_file && data.st_uid == owner && data.st_nlink == 1
}

fn sorted(folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = names(folder)?;
    names.sort_unstable();
    Ok(names)
}

/// Adds what is below a folder to its seal.
struct Below<'a> {
    seal: &'a mut Seal,
    owner: u32,
    is_part: &'a dyn Fn(&Path) -> bool,
}

impl Below<'_> {
    /// Whether all of it can be sealed. `path` is that of the entry below the folder that is sealed.
    fn add(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<bool, Errno> {
        let Some(data) = found(statat(parent, name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(false) };
        if !(self.is_part)(path) {
            return Ok(false);
        }
        if is_own_file(&data, self.owner) {
            self.seal.add(name, &data);
            return Ok(true);
        }
        let is_folder = FileType::from_raw_mode(data.st_mode as RawMode).is_dir();
        if !is_folder || data.st_uid != self.owner || depth == 0 {
            return Ok(false);
        }
        self.seal.add(name, &data);
        let Some(folder) = found(open_unmounted(parent, name))? else { return Ok(false) };
        if fstat(&folder)?.st_ino != data.st_ino {
            return Ok(false);
        }
        for entry in sorted(folder.as_fd())? {
            if !self.add(folder.as_fd(), &entry, &path.join(&entry), depth - 1)? {
                return Ok(false);
            }
        }
        // So that what is in this folder is distinguished from what comes after it.
        self.seal.hash_bytes(&[1]);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn made(at: &Path) -> Dir {
        fs::create_dir_all(at.join("trace/user/index")).unwrap();
        for file in ["trace/description", "trace/user/stream", "trace/user/index/stream"] {
            fs::write(at.join(file), "some").unwrap();
        }
        Dir::parent(at).unwrap()
    }

    fn seal(folder: &Dir) -> Option<Seal> {
        folder.seal("trace", |_| false, |_| true).unwrap()
    }

    #[test]
    fn a_folder_that_nothing_has_changed_has_the_same_seal_by_any_name() {
        let place = tempfile::tempdir().unwrap();
        let folder = made(place.path());
        let before = seal(&folder).unwrap();
        assert_eq!((before.bytes, seal(&folder)), (12, Some(before)));
        fs::read(place.path().join("trace/user/stream")).unwrap();
        folder.rename("trace", OsStr::new(".trace.removed")).unwrap();
        let moved =
            |is_left_out: fn(&OsStr) -> bool| folder.seal(".trace.removed", is_left_out, |_| true).unwrap();
        assert_eq!(moved(|_| false), Some(before));
        fs::write(place.path().join(".trace.removed/left out"), "more").unwrap();
        assert_ne!(moved(|_| false), Some(before));
        assert_eq!(moved(|name| name == "left out"), Some(before));
    }

    #[test]
    fn each_change_breaks_the_seal() {
        type Change = fn(&Path);
        let changes: [Change; 8] = [
            |trace| fs::write(trace.join("user/notes"), "mine").unwrap(),
            |trace| fs::write(trace.join("user/stream"), "edit").unwrap(),
            |trace| fs::remove_file(trace.join("user/stream")).unwrap(),
            |trace| fs::rename(trace.join("user/stream"), trace.join("user/another")).unwrap(),
            |trace| fs::create_dir(trace.join("user/folder")).unwrap(),
            |trace| fs::rename(trace.join("user/index"), trace.join("index")).unwrap(),
            |trace| symlink("/etc", trace.join("user/link")).unwrap(),
            |trace| fs::hard_link(trace.join("user/stream"), trace.join("../another")).unwrap(),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let folder = made(place.path());
            let before = seal(&folder).unwrap();
            change(&place.path().join("trace"));
            assert_ne!(seal(&folder), Some(before), "{number}");
        }
    }

    #[test]
    fn another_folder_in_its_place_has_another_seal() {
        let place = tempfile::tempdir().unwrap();
        let folder = made(place.path());
        let before = seal(&folder).unwrap();
        fs::rename(place.path().join("trace"), place.path().join("moved")).unwrap();
        assert_eq!(seal(&folder), None);
        symlink("moved", place.path().join("trace")).unwrap();
        assert_eq!(seal(&folder), None, "a link to what was moved");
        fs::remove_file(place.path().join("trace")).unwrap();
        made(place.path());
        assert_ne!(seal(&folder), Some(before));
    }

    #[test]
    fn what_is_not_known_is_not_sealed() {
        let place = tempfile::tempdir().unwrap();
        let folder = made(place.path());
        let known =
            |known: &'static str| folder.seal("trace", |_| false, move |path| path != Path::new(known));
        assert_eq!(known("another").unwrap(), seal(&folder));
        for unknown in ["description", "user/stream", "user/index", "user/index/stream"] {
            assert_eq!(known(unknown).unwrap(), None, "{unknown}");
        }
    }
}
