//! Perf maps: `/tmp/perf-PID.map`, in which Java, Node.js, Python and others write the names of functions
//! that they have compiled at run time. A line has begin and size in hexadecimal, and the name.
//!
//! Anyone can create such a file, so one is used only if it is a regular file that belongs to the user of the
//! process and was written after the process began. Its content is the program's, and so any bytes: what is
//! read and kept is bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use tracewing_proc::{Stat, Status};
use tracewing_units::Pid;

/// Bytes of a file that are read.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a line that are read.
const MOST_LINE: u64 = 4096;
/// Bytes of a name that are kept.
const MOST_NAME: usize = 512;
/// A process's begin is known to a tick, and a file's time to the timer's interrupt.
const TOLERANCE_S: i64 = 1;

/// Where a process's map is, and whose it must be. Known while the process exists, used after its end.
#[derive(Debug)]
pub(crate) struct Place {
    root: OwnedFd,
    /// The process's number in its own namespace.
    number: i32,
    owner: u32,
    /// Seconds since 1970.
    began: i64,
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
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) name: Vec<u8>,
}

impl Place {
    /// The place for a process; if it has ended already, that for a process of this user which has begun with
    /// the recording. `None` if this process has no more descriptors.
    pub(crate) fn of(pid: Pid, recording_began: i64) -> Option<Self> {
        let open_root =
            |path: &str| open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok();
        let living = || {
            let (status, stat) = (Status::of(pid)?, Stat::of(pid)?);
            let number =
                status.field("NSpid").and_then(|all| all.split_whitespace().next_back()?.parse().ok());
            Some(Self {
                root: open_root(&format!("/proc/{pid}/root"))?,
                number: number.unwrap_or(pid.0),
                owner: status.users()?[1],
                began: began(&stat)?,
            })
        };
        living().or_else(|| {
            let owner = rustix::process::geteuid().as_raw();
            Some(Self { root: open_root("/")?, number: pid.0, owner, began: recording_began })
        })
    }

    /// Path of the map, as the process sees it.
    pub(crate) fn path(&self) -> String {
        format!("/tmp/perf-{}.map", self.number)
    }

    /// Opens the map.
    pub(crate) fn open(&self) -> Result<File, Unused> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let file = match openat2(self.root.as_fd(), self.path(), flags, Mode::empty(), resolve) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP | Errno::NXIO) => return Err(Unused::Irregular),
            Err(_) => return Err(Unused::Absent),
        };
        let about = file.metadata().map_err(|_| Unused::Absent)?;
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
}

/// Seconds since 1970 at which a process began.
fn began(stat: &Stat) -> Option<i64> {
    let after_boot = stat.began()? / rustix::param::clock_ticks_per_second().max(1);
    let boot = clock_gettime(ClockId::Realtime).tv_sec - clock_gettime(ClockId::Boottime).tv_sec;
    Some(boot.saturating_add_unsigned(after_boot))
}

/// The functions around addresses, which are sorted. Where lines overlap, the later one replaces the earlier
/// one: its code was put into memory that had become free.
pub(crate) fn functions(map: impl Read, addresses: &[u64]) -> Vec<Function> {
    let mut functions: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
    let mut map = BufReader::new(map.take(MOST_BYTES));
    let mut line = Vec::new();
    // What was read before a failure is used.
    while let Ok(1..) = {
        line.clear();
        map.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)
    } {
        if line.last() != Some(&b'\n') {
            let _ = map.skip_until(b'\n');
        }
        let Some((begin, end, name)) = parsed(&line) else { continue };
        let next = addresses.partition_point(|address| *address < begin);
        if addresses.get(next).is_none_or(|address| *address >= end) {
            continue;
        }
        let before = functions.range(..begin).next_back().filter(|(_, (ends, _))| *ends > begin);
        let replaced: Vec<u64> =
            before.into_iter().chain(functions.range(begin..end)).map(|(begin, _)| *begin).collect();
        for begin in replaced {
            functions.remove(&begin);
        }
        functions.insert(begin, (end, name[..name.len().min(MOST_NAME)].to_vec()));
    }
    functions.into_iter().map(|(begin, (end, name))| Function { begin, end, name }).collect()
}

/// Begin, end and name of a line's function.
fn parsed(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let digits = str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let (begin, size) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (size > 0 && !name.is_empty()).then_some((begin, begin.checked_add(size)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::Path;

    fn names(map: &[u8], addresses: &[u64]) -> Vec<(u64, u64, String)> {
        let functions = functions(map, addresses).into_iter();
        functions.map(|of| (of.begin, of.end, String::from_utf8_lossy(&of.name).into_owned())).collect()
    }

    #[test]
    fn functions_with_samples_have_names() {
        let map = b"1000 20 first one\nnonsense\n1020 10 no sample\n0x2000 0x10 second\n3000 0 empty\n4000\n";
        let expected = [(0x1000, 0x1020, "first one".to_owned()), (0x2000, 0x2010, "second".to_owned())];
        assert_eq!(names(map, &[0x101f, 0x2000, 0x2010, 0x3000, 0x4000]), expected);
    }

    #[test]
    fn later_code_replaces_earlier_code_in_the_same_place() {
        let map = b"1000 100 old\n1100 10 beside\n1080 20 new\n";
        let expected = [(0x1080, 0x10a0, "new".to_owned()), (0x1100, 0x1110, "beside".to_owned())];
        assert_eq!(names(map, &[0x1001, 0x1081, 0x1101]), expected);
    }

    #[test]
    fn hostile_maps_give_no_more_than_bounded_names() {
        let long = [b"10 10 ".to_vec(), vec![b'x'; 1 << 20], b"\n20 10 next\n".to_vec()].concat();
        let found = names(&long, &[0x10, 0x20]);
        assert_eq!((found[0].2.len(), found[1].2.as_str(), found.len()), (MOST_NAME, "next", 2));
        let everything = "0 ffffffffffffffff all\n".repeat(1000);
        let addresses: Vec<u64> = (0..1000).collect();
        assert_eq!(names(everything.as_bytes(), &addresses).len(), 1);
        for map in [&b"ffffffffffffffff 2 over\n"[..], b"\0\xff\n \n  \n", b"10 10", b"10 10 \n", b""] {
            assert!(names(map, &[0, 0x10, u64::MAX]).is_empty());
        }
    }

    fn place(root: &Path, began: i64) -> Place {
        let root = open(root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        Place { root, number: 7, owner: rustix::process::geteuid().as_raw(), began }
    }

    #[test]
    fn only_a_file_that_the_process_can_have_written_is_used() {
        let root = tempfile::tempdir().unwrap();
        let map = root.path().join("tmp/perf-7.map");
        let opened = |began| place(root.path(), began).open().map(drop);
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
        assert!(place(root.path(), 0).open().is_err());
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
