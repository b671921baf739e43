//! What the kernel shows of a process only to those that may trace it (`PTRACE_MODE_READ`, ptrace(2)).
//!
//! Each look is a small request, so that another process can take it ([`look_by`]): one with the right to do
//! so (`CAP_SYS_PTRACE`), which reads nothing that programs write into buffers. The kernel checks this right
//! when a file is opened (`maps`, `root`), so that process gives the open file away; or when it is read
//! (`stat`, `syscall`, links), so that it reads.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{
    FileType, FsWord, MemfdFlags, Mode, OFlags, ResolveFlags, fstat, fstatfs, memfd_create, open, openat,
    openat2,
};
use rustix::io::Errno;
use tracewing_units::{Pid, Tid};

use crate::{Sleeping, Stat};

/// What a look gives.
#[derive(Debug, Default)]
pub struct Seen {
    /// At most [`LONGEST`].
    pub bytes: Vec<u8>,
    /// An open file.
    pub file: Option<OwnedFd>,
}

/// Most bytes of a request, and of what it gives.
pub const LONGEST: usize = 3 * size_of::<i32>() + 4096;

/// Namespaces of a thread, in the order in which [`namespaces`] gives them.
pub const NAMESPACES: [&str; 8] = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// Bytes of `maps` that are read to find a file in it: enough for 65,530 mappings, the kernel's usual limit.
const MOST_MAPS: u64 = 16 << 20;

/// `OVERLAYFS_SUPER_MAGIC`, statfs(2).
const OVERLAY: FsWord = 0x794c_7630;

/// File systems whose answers come from this machine's disks or memory: tmpfs and ramfs, ext2 to ext4, XFS,
/// Btrfs, F2FS, ZFS, EROFS and SquashFS. Others can be another user's program (FUSE), or have one below them.
const LOCAL: [FsWord; 9] = [
    0x0102_1994,
    0x8584_58f6,
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xe0f5_e1e2,
    0x7371_7368,
];

/// Bytes of a file on another file system that are copied.
const MOST_COPIED: u64 = 256 << 20;

type Looker = Box<dyn Fn(&[u8]) -> io::Result<Seen> + Send + Sync>;

static LOOKER: OnceLock<Looker> = OnceLock::new();

/// From now on, `looker` takes the looks of this process, and gives the result of [`look`]. Only the first
/// call has an effect.
pub fn look_by(looker: impl Fn(&[u8]) -> io::Result<Seen> + Send + Sync + 'static) {
    let _ = LOOKER.set(Box::new(looker));
}

/// Takes the look that a request asks for, which may come from any process. A file is opened for it only if
/// the process that it asks about executes that file.
///
/// This can take as long as that process likes. The file that is given cannot: where reading or closing it
/// could, it is a copy.
///
/// # Errors
/// The kernel's, or `EINVAL` if the request is none.
pub fn look(request: &[u8]) -> io::Result<Seen> {
    let look = Look::decode(request).ok_or(io::ErrorKind::InvalidInput)?;
    let Seen { bytes, file } = look.here()?;
    let file = match (look, file) {
        // To read it, a lock of the process's memory is needed, which a file system can hold in `mmap`.
        (Look::Maps(_), Some(file)) => Some(copy(file.into(), MOST_MAPS)?),
        (Look::File(..), Some(file)) if !LOCAL.contains(&fstatfs(&file)?.f_type) => {
            let file = File::from(file);
            if file.metadata()?.len() > MOST_COPIED {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Some(copy(file, MOST_COPIED)?)
        }
        (_, file) => file,
    };
    Ok(Seen { bytes, file })
}

/// The process that a request asks about; `None` if it is none.
pub fn subject(request: &[u8]) -> Option<Pid> {
    Some(match Look::decode(request)? {
        Look::Program(pid)
        | Look::Namespaces(pid, _)
        | Look::Maps(pid)
        | Look::Root(pid)
        | Look::Call(pid, _)
        | Look::File(pid, _) => pid,
    })
}

/// A copy in memory of at most so many bytes.
fn copy(file: File, most: u64) -> io::Result<OwnedFd> {
    let mut copy = File::from(memfd_create(c"copy", MemfdFlags::CLOEXEC)?);
    io::copy(&mut file.take(most), &mut copy)?;
    copy.rewind()?;
    Ok(copy.into())
}

/// The path of a process's executable, in the words of the kernel.
pub fn executable(pid: Pid) -> Option<PathBuf> {
    program(pid).0
}

/// The path of a process's executable, and the address at which its stack begins; 0 if that is unknown.
pub fn program(pid: Pid) -> (Option<PathBuf>, u64) {
    let bytes = Look::Program(pid).take().unwrap_or_default().bytes;
    let (stack, path) =
        bytes.split_first_chunk().map_or((0, &bytes[..]), |(stack, path)| (u64::from_le_bytes(*stack), path));
    ((!path.is_empty()).then(|| OsStr::from_bytes(path).into()), stack)
}

/// Numbers of the namespaces of a thread, as in [`NAMESPACES`]; 0 for those that are unknown.
pub fn namespaces(pid: Pid, tid: Tid) -> [u64; NAMESPACES.len()] {
    let bytes = Look::Namespaces(pid, tid).take().unwrap_or_default().bytes;
    let mut numbers = [0; NAMESPACES.len()];
    let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    numbers.iter_mut().zip(words).for_each(|(place, number)| *place = number);
    numbers
}

/// Opens a process's list of mappings.
///
/// # Errors
/// There is no such process, or it may not be looked into.
pub fn maps(pid: Pid) -> io::Result<File> {
    Look::Maps(pid).take()?.file.map(File::from).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Opens a process's root, only to look files up from it (`O_PATH`).
///
/// # Errors
/// As [`maps`].
pub fn root(pid: Pid) -> io::Result<OwnedFd> {
    Look::Root(pid).take()?.file.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Opens a file that a process executes, by the path that `maps` has, to read it.
///
/// # Errors
/// As [`maps`]; there is no such file, or it is no regular one.
pub fn mapped_file(pid: Pid, path: &Path) -> io::Result<File> {
    let file = Look::File(pid, path.as_os_str().as_bytes()).take()?.file;
    file.map(File::from).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The number of the system call of x86-64 in which a thread sleeps; `None` if it is in none, or has made it
/// by another instruction than `syscall`: calls of 32-bit programs have other numbers.
pub fn system_call(pid: Pid, tid: Tid) -> Option<usize> {
    let bytes = Look::Call(pid, tid).take().ok()?.bytes;
    usize::try_from(i64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look<'p> {
    Program(Pid),
    Namespaces(Pid, Tid),
    Maps(Pid),
    Root(Pid),
    Call(Pid, Tid),
    File(Pid, &'p [u8]),
}

impl<'p> Look<'p> {
    /// Takes it, here or in the process that does so for this one.
    fn take(self) -> io::Result<Seen> {
        LOOKER.get().map_or_else(|| self.here(), |looker| looker(&self.encode()))
    }

    fn here(self) -> io::Result<Seen> {
        let bytes = |bytes| Ok(Seen { bytes, file: None });
        let file = |file| Ok(Seen { bytes: Vec::new(), file: Some(file) });
        match self {
            Self::Program(pid) => {
                let stack = Stat::of(pid).and_then(|stat| stat.field(28)).unwrap_or(0_u64);
                let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                bytes([&stack.to_le_bytes(), path.as_os_str().as_bytes()].concat())
            }
            Self::Namespaces(pid, tid) => {
                let number = |name| namespace(pid, tid, name).unwrap_or(0).to_le_bytes();
                bytes(NAMESPACES.map(number).concat())
            }
            Self::Maps(pid) => file(File::open(format!("/proc/{pid}/maps"))?.into()),
            Self::Root(pid) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                file(open(format!("/proc/{pid}/root"), flags, Mode::empty())?)
            }
            Self::Call(pid, tid) => {
                let call = Sleeping::of(pid, tid).ok().flatten();
                let call = call.filter(|call| is_native(pid, call.returns_to));
                bytes(call.map_or(-1, |call| call.number).to_le_bytes().to_vec())
            }
            Self::File(pid, path) => {
                let mapped = mapped(pid, path).ok_or(io::ErrorKind::NotFound)?;
                file(open_mapped(pid, path, mapped)?)
            }
        }
    }

    fn encode(self) -> Vec<u8> {
        let (kind, pid, tid, path): (i32, _, _, &[u8]) = match self {
            Self::Program(pid) => (0, pid, Tid(0), &[]),
            Self::Namespaces(pid, tid) => (1, pid, tid, &[]),
            Self::Maps(pid) => (2, pid, Tid(0), &[]),
            Self::Root(pid) => (3, pid, Tid(0), &[]),
            Self::Call(pid, tid) => (4, pid, tid, &[]),
            Self::File(pid, path) => (5, pid, Tid(0), path),
        };
        let numbers = [kind, pid.0, tid.0].map(i32::to_le_bytes);
        [numbers.as_flattened(), path].concat()
    }

    /// What [`Look::encode`] has made, or any other bytes.
    fn decode(request: &'p [u8]) -> Option<Self> {
        let (numbers, path) = request.split_at_checked(3 * size_of::<i32>())?;
        let numbers = numbers.as_chunks().0.iter().map(|number| i32::from_le_bytes(*number));
        let [kind, pid, tid] = numbers.collect::<Vec<_>>()[..] else { return None };
        let (pid, tid) = (Pid(pid), Tid(tid));
        let look = match kind {
            0 => Self::Program(pid),
            1 => Self::Namespaces(pid, tid),
            2 => Self::Maps(pid),
            3 => Self::Root(pid),
            4 => Self::Call(pid, tid),
            5 => Self::File(pid, path),
            _ => return None,
        };
        let is_whole = matches!(look, Self::File(..)) || path.is_empty();
        (pid > Pid(0) && tid >= Tid(0) && is_whole && request.len() <= LONGEST).then_some(look)
    }
}

/// The number of a namespace, of which a link says `mnt:[4026531841]`.
fn namespace(pid: Pid, tid: Tid, name: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/task/{tid}/ns/{name}")).ok()?;
    link.to_str()?.strip_prefix(name)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// Whether the call that returns to `pc` was made by the instruction `syscall` of x86-64. Calls of 32-bit
/// programs and by `int 0x80` have other numbers, and of other processors nothing is known here.
fn is_native(process: Pid, pc: u64) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let mut instruction = [0; 2];
    cfg!(target_arch = "x86_64")
        && pc >= 2
        && File::open(format!("/proc/{process}/mem"))
            .and_then(|memory| memory.read_exact_at(&mut instruction, pc - 2))
            .is_ok()
        && instruction == SYSCALL
}

/// The number of the file that a process has mapped as code under this path, in the words of `maps`.
fn mapped(pid: Pid, path: &[u8]) -> Option<u64> {
    let mut maps = Vec::new();
    let file = File::open(format!("/proc/{pid}/maps"));
    if path.is_empty() || file.and_then(|file| file.take(MOST_MAPS).read_to_end(&mut maps)).is_err() {
        return None;
    }
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.splitn(6, |byte| *byte == b' ').collect();
        let &[_, access, _, _, inode, name] = &fields[..] else { return None };
        let is_meant = access.get(2) == Some(&b'x') && name.trim_ascii_start() == path;
        str::from_utf8(inode).ok().filter(|_| is_meant)?.parse().ok()
    })
}

/// Opens that file, by its path in the process's root: this very file, and no other that has its name by now,
/// since it is opened with more rights than the process has.
fn open_mapped(pid: Pid, path: &[u8], inode: u64) -> io::Result<OwnedFd> {
    let other = || Err(io::Error::from(io::ErrorKind::NotFound));
    if path.ends_with(b" (deleted)") {
        return other();
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = open(format!("/proc/{pid}/root"), flags | OFlags::DIRECTORY, Mode::empty())?;
    let path: PathBuf = Path::new(OsStr::from_bytes(path)).components().skip(1).collect();
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let place = match openat2(&root, &path, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, and in containers that do not know it.
        Err(Errno::NOSYS | Errno::PERM) => openat(&root, &path, flags | OFlags::NOFOLLOW, Mode::empty()),
        place => place,
    }?;
    let data = fstat(&place)?;
    // Where layers are on top of each other, `maps` has the number of the file in its layer.
    let is_same = data.st_ino == inode || fstatfs(&place)?.f_type == OVERLAY;
    if FileType::from_raw_mode(data.st_mode) != FileType::RegularFile || !is_same {
        return other();
    }
    Ok(File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Pid {
        Pid::from_unsigned(std::process::id())
    }

    #[test]
    fn the_calling_process_is_seen() {
        let (path, stack) = program(own());
        assert_eq!(path, std::env::current_exe().ok());
        assert!(stack > 0);
        let numbers = namespaces(own(), own().first_thread());
        assert!(numbers.iter().all(|number| *number > 0), "{numbers:?}");
        assert_ne!(numbers[2], numbers[3]);
        let mut text = String::new();
        maps(own()).unwrap().read_to_string(&mut text).unwrap();
        assert!(text.contains("r-xp"));
        assert!(root(own()).is_ok());
        assert!(mapped_file(own(), &path.unwrap()).is_ok());
    }

    #[test]
    fn nothing_is_seen_of_no_process() {
        let none = Pid(i32::MAX);
        assert_eq!(program(none), (None, 0));
        assert_eq!(namespaces(none, none.first_thread()), [0; 8]);
        assert_eq!(system_call(none, none.first_thread()), None);
        assert!(
            maps(none).is_err() && root(none).is_err() && mapped_file(none, Path::new("/bin/sh")).is_err()
        );
    }

    #[test]
    fn requests_say_what_is_looked_at() {
        let (pid, tid) = (Pid(7), Tid(8));
        for look in [
            Look::Program(pid),
            Look::Namespaces(pid, tid),
            Look::Maps(pid),
            Look::Root(pid),
            Look::Call(pid, tid),
            Look::File(pid, b"/lib/x.so"),
        ] {
            let bytes = look.encode();
            assert_eq!(Look::decode(&bytes), Some(look));
            assert_eq!(subject(&bytes), Some(pid));
            let is_file = matches!(look, Look::File(..));
            assert_eq!(Look::decode(&[&bytes[..], b"x"].concat()).is_some(), is_file, "{look:?}");
        }
        assert_eq!(Look::decode(&Look::Maps(Pid(0)).encode()), None);
        assert_eq!(Look::decode(&Look::Maps(Pid(-1)).encode()), None);
        assert_eq!(Look::decode(&Look::Call(pid, Tid(-1)).encode()), None);
        assert_eq!(Look::decode(&[6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Look::decode(&Look::File(pid, &[b'/'; LONGEST]).encode()), None);
        assert_eq!(Look::decode(&[0; 11]), None);
        assert!(look(&[]).is_err());
    }

    /// A file system can keep a reader of these waiting.
    #[test]
    fn others_get_a_copy_of_the_mappings() {
        let maps = look(&Look::Maps(own()).encode()).unwrap().file.unwrap();
        let target = fs::read_link(format!("/proc/self/fd/{}", maps.as_raw_fd())).unwrap();
        assert_eq!(target, Path::new("/memfd:copy (deleted)"));
        let mut text = String::new();
        File::from(maps).read_to_string(&mut text).unwrap();
        assert!(text.contains("r-xp"), "{text}");
        let cut = copy(File::open("/proc/self/exe").unwrap(), 7).unwrap();
        assert_eq!(File::from(cut).metadata().unwrap().len(), 7);
    }

    #[test]
    fn others_get_only_files_that_the_process_executes() {
        let exe = executable(own()).unwrap();
        let asked = |path: &Path| look(&Look::File(own(), path.as_os_str().as_bytes()).encode());
        assert!(asked(&exe).unwrap().file.is_some());
        for other in ["/etc/passwd", "", "/proc/self/exe", "/"] {
            assert!(asked(Path::new(other)).is_err(), "{other}");
        }
    }

    /// A process can put another file in the place of one that it executes.
    #[test]
    fn a_file_with_the_name_of_one_that_is_executed_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let [program, other] = ["program", "other"].map(|name| place.path().join(name));
        fs::copy("/bin/sleep", &program).unwrap();
        fs::write(&other, "not to be read").unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let pid = Pid::from_unsigned(child.id());
        // It may not execute it yet.
        while mapped_file(pid, &program).is_err() {
            std::thread::yield_now();
        }
        let deleted = place.path().join("program (deleted)");
        fs::remove_file(&program).unwrap();
        std::os::unix::fs::symlink(&other, &deleted).unwrap();
        assert!(mapped_file(pid, &deleted).is_err(), "it is named so by the kernel now");
        fs::rename(&other, &program).unwrap();
        assert!(mapped_file(pid, &program).is_err());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
