//! Files that only this user may read: written under a temporary name, locked while they are, and put in
//! place when they are complete.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, StatVfsMountFlags, flock, fstat, fstatvfs, lstat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::create::WRITABLE;
use crate::{Dir, Refused};

/// Permissions, whatever the umask allows.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// In a folder with this permission, users rename and remove only what is their own.
const STICKY: u32 = 0o1000;
/// How many names are tried.
const ATTEMPTS: u32 = 1000;
/// End of temporary names.
const UNFINISHED: &str = ".unfinished";

/// A file that is not complete. It has a temporary name, and a lock, so that no other process takes it for
/// abandoned before [`Dir::supersede`] or [`Dir::discard`] has ended.
#[derive(Debug)]
#[must_use = "the file keeps its temporary name"]
pub struct Unfinished {
    temporary: String,
    file: File,
}

impl Unfinished {
    /// The open file; clones share its lock.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Dir {
    /// A new file that is to be called `name` once it is complete.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create_private_file(&self, name: &str) -> io::Result<Unfinished> {
        let mut attempt = 0;
        loop {
            let temporary = format!(".{name}.{}.{attempt}{UNFINISHED}", std::process::id());
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            attempt += 1;
            let file = match openat(self, &temporary, flags, PRIVATE) {
                Err(Errno::EXIST) if attempt < ATTEMPTS => continue,
                file => file?,
            };
            // Some file systems have no locks.
            let is_taken = flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
            // Before the file was locked, another thread or process may have found it abandoned. It removes
            // it, so this one must not: another file may have the name then.
            if !is_taken && is_still(&file, self, temporary.as_ref()) {
                return Ok(Unfinished { temporary, file: file.into() });
            }
            if attempt == ATTEMPTS {
                return Err(Errno::AGAIN.into());
            }
        }
    }

    /// Gives a complete file its name, in place of the file that has it.
    ///
    /// # Errors
    /// The file cannot be renamed; it is removed then.
    pub fn supersede(&self, unfinished: Unfinished, name: &str) -> io::Result<()> {
        let Unfinished { temporary, file: _locked } = unfinished;
        renameat(self, &temporary, self, name).inspect_err(|_| {
            let _ = unlinkat(self, &temporary, AtFlags::empty());
        })?;
        Ok(())
    }

    /// Removes a file that will not be complete.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn discard(&self, Unfinished { temporary, file: _locked }: Unfinished) -> io::Result<()> {
        self.remove(&temporary)
    }

    /// Removes the temporary files of processes that have died.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn remove_abandoned(&self) -> io::Result<()> {
        for name in self.entries()? {
            if name.to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
                self.remove_if_abandoned(&name);
            }
        }
        Ok(())
    }

    /// Removes a file that no process has locked. It is locked until it is removed: only then is the name
    /// still that of this file.
    fn remove_if_abandoned(&self, name: &OsStr) {
        // On NFS, only a file that is open for writing can be locked.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = openat(self, name, flags, Mode::empty()) else { return };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_still(&file, self, name) {
            let _ = unlinkat(self, name, AtFlags::empty());
        }
    }

    /// The path of this folder without links. Only this user and root can put another folder in its place.
    ///
    /// # Errors
    /// Another user owns a folder on the way ([`Refused::Foreign`]), or can rename what is in one
    /// ([`Refused::Writable`]); or `/proc` is not mounted.
    pub fn own_path(&self) -> io::Result<PathBuf> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.as_fd().as_raw_fd()))?;
        for parent in path.ancestors().skip(1) {
            let data = lstat(parent)?;
            if ![0, geteuid().as_raw()].contains(&data.st_uid) {
                return Err(Refused::Foreign(data.st_uid).into());
            }
            if data.st_mode & WRITABLE != 0 && data.st_mode & STICKY == 0 {
                return Err(Refused::Writable.into());
            }
        }
        Ok(path)
    }

    /// Whether programs and libraries in this folder can be executed.
    ///
    /// # Errors
    /// The system call fails.
    pub fn is_executable(&self) -> io::Result<bool> {
        Ok(!fstatvfs(self)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
    }

    /// Bytes that this user may still write on the file system.
    ///
    /// # Errors
    /// The system call fails.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let data = fstatvfs(self)?;
        Ok(data.f_bavail.saturating_mul(data.f_frsize))
    }
}

/// Whether a name is still that of an open file.
fn is_still(file: &OwnedFd, folder: &Dir, name: &OsStr) -> bool {
    let of = |data: Result<rustix::fs::Stat, Errno>| data.ok().map(|data| (data.st_dev, data.st_ino));
    of(fstat(file)).is_some_and(|id| of(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    #[test]
    fn files_are_private_and_those_of_the_dead_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Dir::private(&place.path().join("cache")).unwrap();
        let unfinished = folder.create_private_file("a").unwrap();
        let temporary = unfinished.temporary.clone();
        assert_eq!(unfinished.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        folder.remove_abandoned().unwrap();
        assert!(folder.has(&temporary), "its maker lives");
        drop(unfinished);
        folder.remove_abandoned().unwrap();
        assert!(!folder.has(&temporary));

        let unfinished = folder.create_private_file("a").unwrap();
        // A writer of a clone has ended.
        drop(unfinished.file().try_clone().unwrap());
        folder.remove_abandoned().unwrap();
        folder.supersede(unfinished, "a").unwrap();
        assert!(folder.has("a") && !folder.has(&temporary));
        let unfinished = folder.create_private_file("a").unwrap();
        folder.discard(unfinished).unwrap();
        assert!(folder.has("a") && !folder.has(&temporary));
        assert!(folder.free_bytes().unwrap() > 0);
    }

    #[test]
    fn a_new_file_is_not_taken_for_an_abandoned_one() {
        let place = tempfile::tempdir().unwrap();
        let folder = Dir::private(&place.path().join("cache")).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        folder.remove_abandoned().unwrap();
                    }
                });
            }
            let made: io::Result<()> =
                (0..5_000).try_for_each(|_| folder.supersede(folder.create_private_file("a")?, "a"));
            is_over.store(true, Relaxed);
            made.unwrap();
        });
    }
}
