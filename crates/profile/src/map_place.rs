//! Where the perf map of a process is, and whether it may be used.
//!
//! Anyone can create such a file, so one is used only if it is a regular file that belongs to the user of the
//! process and was written after the process began.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use tracewing_proc::{Stat, Status, guarded};
use tracewing_units::Pid;

/// A process's begin is known to a tick, and a file's time to the timer's interrupt.
const TOLERANCE_S: i64 = 1;
/// How often a lookup is repeated if a rename has disturbed it.
const ATTEMPTS: usize = 16;
/// For a folder that others are looked up from: its file system is not asked.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where a process's map is, and whose it must be. Known while the process exists, used after its end.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    /// The process's number in its own namespace.
    number: i32,
    owner: u32,
    /// Seconds since 1970.
    began: i64,
}

#[derive(Debug)]
enum Folder {
    /// `/tmp` of the process, which remains after the end of the process's mount namespace.
    Tmp(OwnedFd),
    /// Its root, where `/tmp` could not be looked up without waiting for a file system.
    Root(OwnedFd),
}

/// Why a map is not used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unused {
    /// There is none.
    Absent,
    /// It is a link, or another special file.
    Irregular,
    /// It belongs to this user.
    Foreign(u32),
    /// It is older than the process: an earlier process had the same number.
    Stale,
    /// It cannot be opened.
    Unreadable(Errno),
}

impl Unused {
    /// Opening the map failed.
    fn map(error: Errno) -> Self {
        match error {
            Errno::LOOP | Errno::NXIO => Self::Irregular,
            error => Self::folder(error),
        }
    }

    /// Opening its folder failed.
    fn folder(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Absent,
            error => Self::Unreadable(error),
        }
    }
}

impl Folder {
    /// Never waits for a file system, which may be a process's own (FUSE) or on another machine.
    fn of(root: OwnedFd) -> Self {
        match tmp(&root, ResolveFlags::CACHED) {
            Ok(tmp) => Self::Tmp(tmp),
            Err(_) => Self::Root(root),
        }
    }

    /// Opens a file in `/tmp`, which may wait for a file system.
    fn open(&self, name: &str) -> Result<OwnedFd, Unused> {
        let looked_up;
        let tmp = match self {
            Self::Tmp(tmp) => tmp,
            Self::Root(root) => {
                looked_up = tmp(root, ResolveFlags::empty()).map_err(Unused::folder)?;
                &looked_up
            }
        };
        // Opening a pipe must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(tmp, name, flags, Mode::empty()).map_err(Unused::map)
    }
}

/// `/tmp` below a root, which links on the way do not leave.
fn tmp(root: &OwnedFd, how: ResolveFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | how;
    for _ in 0..ATTEMPTS {
        match openat2(root, "tmp", FOLDER, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if how.is_empty() => {}
            // Kernels before 5.6, and filters of containers that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) if how.is_empty() => return tmp_without_links(root),
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

fn tmp_without_links(root: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(root, "tmp", FOLDER | OFlags::NOFOLLOW, Mode::empty())
}

impl Place {
    /// The place for a process; if it has ended already, that for a process of this user which has begun with
    /// the recording. `None` if this process has no more descriptors.
    pub(crate) fn of(pid: Pid, recording_began: i64) -> Option<Self> {
        let living = || {
            let (status, stat) = (Status::of(pid)?, Stat::of(pid)?);
            let number =
                status.field("NSpid").and_then(|all| all.split_whitespace().next_back()?.parse().ok());
            Some(Self {
                folder: Folder::of(guarded::root(pid).ok()?),
                number: number.unwrap_or(pid.0),
                owner: status.users()?[1],
                began: began(&stat)?,
            })
        };
        living().or_else(|| {
            let owner = rustix::process::geteuid().as_raw();
            let root = open("/", FOLDER, Mode::empty()).ok()?;
            Some(Self { folder: Folder::of(root), number: pid.0, owner, began: recording_began })
        })
    }

    /// Path of the map, as the process sees it.
    pub(crate) fn path(&self) -> String {
        format!("/tmp/{}", self.name())
    }

    fn name(&self) -> String {
        format!("perf-{}.map", self.number)
    }

    /// Opens the map, which may wait for a file system.
    pub(crate) fn open(&self) -> Result<File, Unused> {
        let file = File::from(self.folder.open(&self.name())?);
        let failed = |error: io::Error| Unused::Unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(Unused::Irregular);
        }
        if about.uid() != self.owner {
            return Err(Unused::Foreign(about.uid()));
        }
        if about.mtime().saturating_add(TOLERANCE_S) < self.began {
            return Err(Unused::Stale);
        }
        Ok(file)
    }

    /// The place of process 7 of this user.
    #[cfg(test)]
    pub(crate) fn below(root: &std::path::Path, began: i64) -> Self {
        let folder = Folder::of(open(root, FOLDER, Mode::empty()).unwrap());
        Self { folder, number: 7, owner: rustix::process::geteuid().as_raw(), began }
    }
}

/// Seconds since 1970 at which a process began.
fn began(stat: &Stat) -> Option<i64> {
    let after_boot = stat.began()? / rustix::param::clock_ticks_per_second().max(1);
    let boot = clock_gettime(ClockId::Realtime).tv_sec - clock_gettime(ClockId::Boottime).tv_sec;
    Some(boot.saturating_add_unsigned(after_boot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn only_a_file_that_the_process_can_have_written_is_used() {
        let root = tempfile::tempdir().unwrap();
        let map = root.path().join("tmp/perf-7.map");
        let opened = |began| Place::below(root.path(), began).open().map(drop);
        assert_eq!(opened(0), Err(Unused::Absent));
        fs::create_dir(root.path().join("tmp")).unwrap();
        fs::write(&map, "10 10 name\n").unwrap();
        assert_eq!(opened(0), Ok(()));
        assert_eq!(opened(i64::MAX), Err(Unused::Stale));
        if rustix::process::geteuid().is_root() {
            chown(&map, Some(12345), None).unwrap();
            assert_eq!(opened(0), Err(Unused::Foreign(12345)));
        }
        fs::rename(&map, root.path().join("other")).unwrap();
        symlink("../other", &map).unwrap();
        assert_eq!(opened(0), Err(Unused::Irregular));
        fs::remove_file(&map).unwrap();
        fs::create_dir(&map).unwrap();
        assert_eq!(opened(0), Err(Unused::Irregular));
    }

    #[test]
    fn links_on_the_way_do_not_leave_the_processs_root() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("perf-7.map"), "10 10 name\n").unwrap();
        symlink(outside.path(), root.path().join("tmp")).unwrap();
        assert!(Place::below(root.path(), 0).open().is_err());
        let root = open(root.path(), FOLDER, Mode::empty()).unwrap();
        assert!(tmp_without_links(&root).is_err());
    }

    #[test]
    fn a_root_without_openat2_has_a_tmp_too() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("tmp")).unwrap();
        fs::write(root.path().join("tmp/perf-7.map"), "10 10 name\n").unwrap();
        let tmp = tmp_without_links(&open(root.path(), FOLDER, Mode::empty()).unwrap()).unwrap();
        assert!(Folder::Tmp(tmp).open("perf-7.map").is_ok());
    }

    #[test]
    fn a_tmp_that_is_no_longer_in_its_place_is_used() {
        let root = tempfile::tempdir().unwrap();
        let tmp = root.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        fs::write(tmp.join("perf-7.map"), "10 10 name\n").unwrap();
        let place = Place::below(root.path(), 0);
        let known = openat2(CWD, ".", FOLDER, Mode::empty(), ResolveFlags::CACHED);
        if let Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) = known {
            assert!(matches!(place.folder, Folder::Root(_)), "it is looked up later: {known:?}");
            return;
        }
        // A lookup that a rename elsewhere disturbs is not repeated.
        let mut places = [place].into_iter().chain((0..100).map(|_| Place::below(root.path(), 0)));
        let place = places.find(|place| matches!(place.folder, Folder::Tmp(_))).unwrap();
        fs::rename(&tmp, root.path().join("other")).unwrap();
        assert_eq!(place.open().map(drop), Ok(()));
    }

    #[test]
    fn what_fails_is_not_absent() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("tmp"), "").unwrap();
        let opened = Place::below(root.path(), 0).open().map(drop);
        assert_eq!(opened, Err(Unused::Unreadable(Errno::NOTDIR)));
        for error in [Errno::ACCESS, Errno::MFILE, Errno::AGAIN, Errno::PERM] {
            assert_eq!(Unused::map(error), Unused::Unreadable(error));
        }
    }

    #[test]
    fn a_place_is_that_of_the_process() {
        let own = Place::of(Pid::from_unsigned(std::process::id()), i64::MAX).unwrap();
        assert_eq!(own.owner, rustix::process::geteuid().as_raw());
        let now = clock_gettime(ClockId::Realtime).tv_sec;
        assert!((now - 3600 * 24..=now + 1).contains(&own.began), "{} {now}", own.began);
        let none = Place::of(Pid(i32::MAX), 42).unwrap();
        assert_eq!((none.number, none.began), (i32::MAX, 42));
    }
}
