//! The two sockets of a recorder, in a private folder: programs join by one, the other is for questions and
//! changes.
//!
//! The folder is `tracewing-RANDOM` under `XDG_RUNTIME_DIR`, or under `/tmp`. Its name is no secret; the join
//! socket's name in it is one, 122 random bits that programs get by their environment. Other users cannot
//! list the folder (0711, and of a recorder that is not root's 0700), so to them a connection fails in the
//! kernel, before it reaches the recorder. The kernel lists sockets by the path that they were bound to
//! (`/proc/net/unix`), so the socket is bound under another name, by way of the folder's descriptor, and then
//! renamed. The control socket has a known name and mode 0600.
//!
//! The recorder holds a lock (`flock`) on the folder while it lives; a folder without that lock is the
//! leftover of a killed recorder and removed by the next one. So that a folder of this name is never without
//! its lock, it is made under another name and renamed once it is locked.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs, io};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, chmodat, fchmod, flock, fstat, mkdirat,
    openat, renameat, statat, unlinkat,
};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::{Uid, getuid};
use tracewing_abi::CONTROL_SOCKET;
use tracewing_consumer::identity::random_uuid;

use crate::Error;

const PREFIX: &str = "tracewing-";
/// Of a folder that may not be locked yet.
const UNLOCKED_PREFIX: &str = "tracewing.new-";
/// The join socket's name while it is bound.
const UNNAMED: &str = "join";
/// Programs that may wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 4096;
/// Maximum number of askers that wait for the recorder.
const CONTROL_BACKLOG: i32 = 64;
/// Recorders that a program joins at most (`tracewing_ring::thread::RECORDINGS`).
pub const MOST_RECORDERS: usize = 8;
/// Longest path that fits a socket address (`struct sockaddr_un`).
const LONGEST_PATH: usize = 107;
/// Digits of a random name.
const DIGITS: usize = 32;
/// Time after which no process can still be about to lock a folder.
const SETTLED: Duration = Duration::from_secs(60);
pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The listening sockets. Dropping it removes them and their folder.
pub(crate) struct Listener {
    parent: OwnedFd,
    folder: String,
    lock: OwnedFd,
    path: PathBuf,
    join: OwnedFd,
    control: OwnedFd,
}

impl Listener {
    /// Removes leftovers, makes the folder and listens.
    pub(crate) fn new() -> Result<Self, Error> {
        Self::within(&parent_folder())
    }

    fn within(parent: &Path) -> Result<Self, Error> {
        let name = || random_name().map_err(Error::system("getrandom"));
        let (random, secret) = (name()?, name()?);
        let folder = format!("{PREFIX}{random}");
        let path = parent.join(&folder).join(&secret);
        let made = Self::listen(parent, &format!("{UNLOCKED_PREFIX}{random}"), folder, path);
        made.map_err(|source| Error::Socket { path: parent.join(PREFIX), source })
    }

    fn listen(parent: &Path, unlocked: &str, folder: String, path: PathBuf) -> io::Result<Self> {
        let parent = openat(CWD, parent, FOLDER & !OFlags::NOFOLLOW, Mode::empty())?;
        remove_leftovers(&parent);
        mkdirat(&parent, unlocked, Mode::RWXU)?;
        let made = openat(&parent, unlocked, FOLDER, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|lock| Ok((Self::sockets(&lock, path.file_name().unwrap_or_default())?, lock)))
            .and_then(|made| Ok(renameat(&parent, unlocked, &parent, &folder).map(|()| made)?));
        match made {
            Ok(((join, control), lock)) => Ok(Self { parent, folder, lock, path, join, control }),
            Err(error) => {
                remove(&parent, unlocked, &|_| true);
                Err(error)
            }
        }
    }

    /// Locks the folder, which no other process can enter yet, and makes the sockets in it.
    fn sockets(folder: &OwnedFd, secret: &OsStr) -> io::Result<(OwnedFd, OwnedFd)> {
        flock(folder, FlockOperation::NonBlockingLockExclusive)?;
        let listener = |name: &str, backlog| -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            bind(&socket, &within(folder, name)?)?;
            listen(&socket, backlog)?;
            Ok(socket)
        };
        let (join, control) = (listener(UNNAMED, BACKLOG)?, listener(CONTROL_SOCKET, CONTROL_BACKLOG)?);
        renameat(folder, UNNAMED, folder, secret)?;
        // Regardless of the umask. Root's programs become other users, which join, too.
        let is_root = getuid() == Uid::ROOT;
        let mode = |others, owner| Mode::from_raw_mode(if is_root { others } else { owner });
        chmodat(folder, CONTROL_SOCKET, mode(0o600, 0o600), AtFlags::empty())?;
        chmodat(folder, secret, mode(0o666, 0o600), AtFlags::empty())?;
        fchmod(folder, mode(0o711, 0o700))?;
        Ok((join, control))
    }

    /// Where programs connect.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where programs wait to be accepted.
    pub(crate) fn join(&self) -> BorrowedFd<'_> {
        self.join.as_fd()
    }

    /// Where askers wait.
    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        remove_sockets(&self.lock);
        let _ = unlinkat(&self.parent, &self.folder, AtFlags::REMOVEDIR);
    }
}

/// The next connection that waits at a listening socket.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// The address of a socket in an open folder, whatever its path has become.
pub(crate) fn within(folder: &OwnedFd, name: &str) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// Whether a folder's name is one of a recorder that runs, or ran.
pub(crate) fn is_recorders(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PREFIX.as_bytes())
}

/// The addresses for programs to connect to: of the recorder that listens at `own`, and of those that record
/// this one (`outer`, this process's value of [`SOCKET_VARIABLE`](tracewing_abi::SOCKET_VARIABLE)), at most
/// as many as programs join; and the number of all.
pub(crate) fn sockets(own: &Path, outer: Option<&OsStr>) -> (OsString, usize) {
    let outer =
        outer.map(OsStr::as_bytes).unwrap_or_default().split(|byte| *byte == b':').map(OsStr::from_bytes);
    // Those of recordings that are over stay in the environment of processes that outlive them.
    let living: Vec<&OsStr> = outer.filter(|path| !path.is_empty() && Path::new(path).exists()).collect();
    let all: Vec<&OsStr> = [own.as_os_str()].into_iter().chain(living).collect();
    (all[..all.len().min(MOST_RECORDERS)].join(OsStr::new(":")), all.len())
}

/// Root's programs often become other users, which cannot enter root's runtime folder.
pub(crate) fn parent_folder() -> PathBuf {
    let longest = LONGEST_PATH - "/".len() - PREFIX.len() - DIGITS - "/".len() - DIGITS;
    env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| getuid() != Uid::ROOT && path.is_absolute() && path.as_os_str().len() <= longest)
        .filter(|path| is_private(path) && !path.as_os_str().as_bytes().contains(&b':'))
        .unwrap_or_else(|| "/tmp".into())
}

/// Whether a path is a folder of ours that others cannot write to.
pub(crate) fn is_private(path: &Path) -> bool {
    fs::metadata(path)
        .is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw() && data.mode() & 0o022 == 0)
}

/// Removes folders of recorders that were killed: only folders of our own, by their descriptors, and only
/// sockets of our own in them.
fn remove_leftovers(parent: &OwnedFd) {
    let Ok(entries) = Dir::read_from(parent) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let is_unlocked = name.as_bytes().starts_with(UNLOCKED_PREFIX.as_bytes());
        if is_unlocked || is_recorders(name) {
            remove(parent, name, &|data| !is_unlocked || age(data) >= SETTLED);
        }
    }
}

/// Removes a folder, if it is ours, without a lock, and `may`.
fn remove(parent: &OwnedFd, name: impl rustix::path::Arg + Copy, may: &dyn Fn(&rustix::fs::Stat) -> bool) {
    let Ok(folder) = openat(parent, name, FOLDER | OFlags::NONBLOCK, Mode::empty()) else { return };
    let is_ours = fstat(&folder).is_ok_and(|data| data.st_uid == getuid().as_raw() && may(&data));
    if is_ours && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
        remove_sockets(&folder);
        // A folder with anything else in it stays, and so does what has taken its place by now, unless it is
        // empty.
        let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

fn remove_sockets(folder: &OwnedFd) {
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|data| {
            FileType::from_raw_mode(data.st_mode) == FileType::Socket && data.st_uid == getuid().as_raw()
        });
        if is_ours {
            let _ = unlinkat(folder, entry.file_name(), AtFlags::empty());
        }
    }
}

fn age(data: &rustix::fs::Stat) -> Duration {
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(data.st_mtime).unwrap_or(0));
    modified.elapsed().unwrap_or_default()
}

fn random_name() -> io::Result<String> {
    random_uuid().map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_socket_or_folder_is_left() {
        let parent = tempfile::tempdir().unwrap();
        let listener = Listener::within(parent.path()).unwrap();
        let folder = listener.path().parent().unwrap().to_owned();
        let is_root = getuid() == Uid::ROOT;
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, if is_root { 0o711 } else { 0o700 });
        assert_eq!(fs::metadata(folder.join(CONTROL_SOCKET)).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        drop(listener);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_kernels_list_of_sockets_does_not_have_the_secret() {
        let parent = tempfile::tempdir().unwrap();
        let listener = Listener::within(parent.path()).unwrap();
        let secret = listener.path().file_name().unwrap().to_str().unwrap();
        let list = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(list.contains(CONTROL_SOCKET) && !list.contains(secret));
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(listener.path()).unwrap()).unwrap();
        accept(listener.join()).unwrap();
        let list = fs::read_to_string("/proc/net/unix").unwrap();
        assert!(!list.contains(secret), "once a program has connected");
    }

    #[test]
    fn programs_get_the_live_recorders_around_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..8).map(|number| folder.path().join(number.to_string())).collect();
        let own = Path::new("/own");
        let list_with = |outer: &str| {
            let (value, all) = sockets(own, Some(OsStr::new(outer)));
            (value.into_string().unwrap(), all)
        };
        assert_eq!(sockets(own, None), ("/own".into(), 1));
        assert_eq!(list_with(&format!("::{}:/no/such", paths[0].display())), ("/own".to_owned(), 1));
        paths.iter().for_each(|path| fs::write(path, "").unwrap());
        let one = paths[0].display().to_string();
        assert_eq!(list_with(&format!(":{one}:/no/such")), (format!("/own:{one}"), 2));
        let all = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
        let (value, all) = list_with(&all);
        assert_eq!((value.split(':').count(), all), (8, 9));
        assert!(value.starts_with(&format!("/own:{one}:")));
    }

    #[test]
    fn folders_of_killed_recorders_are_removed_and_those_of_living_ones_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            drop(std::os::unix::net::UnixListener::bind(path.join(CONTROL_SOCKET)).unwrap());
            let folder = fs::File::open(&path).unwrap();
            folder.set_modified(std::time::SystemTime::now() - age).unwrap();
            path
        };
        let killed = make("tracewing-0", Duration::ZERO);
        let killed_early = make("tracewing.new-0", 2 * SETTLED);
        let living = make("tracewing-1", 2 * SETTLED);
        let starting = make("tracewing.new-2", Duration::ZERO);
        let others = make("something-else", 2 * SETTLED);
        let lock = fs::File::open(&living).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        // Whatever else lies in such a folder is not ours to remove; nor is what a link leads to.
        let foreign = make("tracewing-3", 2 * SETTLED);
        fs::write(foreign.join("letter"), "").unwrap();
        std::os::unix::fs::symlink(&others, parent.path().join("tracewing-4")).unwrap();
        let folder = fs::File::open(parent.path()).unwrap();
        remove_leftovers(&folder.into());
        assert!(!killed.exists() && !killed_early.exists());
        assert!(living.exists() && starting.exists());
        assert!(others.join(CONTROL_SOCKET).exists() && foreign.join("letter").exists());
    }
}
