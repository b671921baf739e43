//! A lock for what processes of one user change in a folder, such as a list of recorders.
//!
//! It is on a file in the folder that only this user can open. The folder itself would not do: every user
//! that can read it can lock it (`flock`), and keep others waiting.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, RawMode, flock, fstat, openat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;

use crate::Refused;
use crate::dir::found;

/// Name of the file. It stays: if it were removed, two processes could lock two files. Only a recorder that
/// discards its folder removes it, as no other process is to write there.
pub const LOCK_FILE: &str = ".tracewing.lock";

/// The lock, until this is dropped. The folder must be one that only this user can write to.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct Exclusive(OwnedFd);

impl Exclusive {
    /// Locks the folder for this process, once no other process of this user has locked it.
    ///
    /// # Errors
    /// The file cannot be made or locked, or something else is in its place ([`Refused`]).
    pub fn wait(folder: impl AsFd) -> io::Result<Self> {
        let file = file(folder)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        Ok(Self(file))
    }

    /// The same; `None` if another process has locked it.
    ///
    /// # Errors
    /// As [`Exclusive::wait`].
    pub fn attempt(folder: impl AsFd) -> io::Result<Option<Self>> {
        let file = file(folder)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            locked => Ok(Some(locked.map(|()| Self(file))?)),
        }
    }

    /// Whether a process of the folder's user holds the lock. This process may write nowhere.
    ///
    /// # Errors
    /// The system cannot say now: this process has too many descriptors, for example.
    pub fn is_held(folder: impl AsFd) -> io::Result<bool> {
        let folder = folder.as_fd();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Some(file) = found(openat(folder, LOCK_FILE, flags, Mode::empty()))? else { return Ok(false) };
        let data = fstat(&file)?;
        let is_file = FileType::from_raw_mode(data.st_mode as RawMode).is_file();
        // No other user can open it.
        let is_private = data.st_uid == fstat(folder)?.st_uid && data.st_mode & 0o077 == 0;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => Ok(is_file && is_private),
            lock => lock.map(|()| false).map_err(io::Error::from),
        }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        // A process that was forked meanwhile has the file, too.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn file(folder: impl AsFd) -> io::Result<OwnedFd> {
    // Opening a pipe must not wait.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, LOCK_FILE, flags, Mode::RUSR | Mode::WUSR)?;
    let data = fstat(&file)?;
    if !FileType::from_raw_mode(data.st_mode as RawMode).is_file() {
        return Err(Refused::NotAFile.into());
    }
    if data.st_uid != geteuid().as_raw() {
        return Err(Refused::Foreign(data.st_uid).into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn one_process_has_the_lock_whatever_is_done_with_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = File::open(place.path()).unwrap();
        // As another user can that may read the folder.
        let other = File::open(place.path()).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        let first = Exclusive::wait(&folder).unwrap();
        assert_eq!(fs::metadata(place.path().join(LOCK_FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(Exclusive::attempt(&folder).unwrap().is_none());
        drop(first);
        assert!(Exclusive::attempt(&folder).unwrap().is_some());
    }

    #[test]
    fn whether_it_is_held_is_seen_without_waiting_or_making_anything() {
        let place = tempfile::tempdir().unwrap();
        let folder = File::open(place.path()).unwrap();
        assert!(!Exclusive::is_held(&folder).unwrap() && !place.path().join(LOCK_FILE).exists());
        flock(&folder, FlockOperation::NonBlockingLockExclusive).unwrap();
        let first = Exclusive::wait(&folder).unwrap();
        assert!(Exclusive::is_held(&folder).unwrap() && Exclusive::is_held(&folder).unwrap());
        // A file that others can open says nothing.
        let allow =
            |mode| fs::set_permissions(place.path().join(LOCK_FILE), fs::Permissions::from_mode(mode));
        allow(0o640).unwrap();
        assert!(!Exclusive::is_held(&folder).unwrap());
        allow(0o600).unwrap();
        drop(first);
        assert!(!Exclusive::is_held(&folder).unwrap() && Exclusive::attempt(&folder).unwrap().is_some());
    }

    #[test]
    fn what_is_in_the_place_of_the_file_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = File::open(place.path()).unwrap();
        let at = place.path().join(LOCK_FILE);
        symlink("elsewhere", &at).unwrap();
        assert!(Exclusive::wait(&folder).is_err() && !place.path().join("elsewhere").exists());
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(Exclusive::wait(&folder).is_err());
    }
}
