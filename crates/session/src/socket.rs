//! The socket by which programs join, in a private folder with a name that nobody can guess.
//!
//! The folder is `tracewing-RANDOM` under `XDG_RUNTIME_DIR`, or under `/tmp`, with mode 0711: whoever was told the name
//! can connect, nobody can list it. The recorder holds a lock (`flock`) on it while it lives; a folder without that lock is
//! the leftover of a killed recorder and removed by the next one. So that a folder of this name is never without its lock,
//! it is made under another name and renamed once it is locked.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::{Pid, Uid, getuid};
use tracewing_consumer::identity::random_uuid;

use crate::Error;

const PREFIX: &str = "tracewing-";
/// Of a folder that may not be locked yet.
const UNLOCKED_PREFIX: &str = "tracewing.new-";
/// Name of the socket in the folder.
pub(crate) const SOCKET: &str = "socket";
/// Programs that may wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// Recorders that a program joins (`tracewing_ring::thread::RECORDINGS`).
const MOST_RECORDERS: usize = 8;
/// Longest path that fits a socket address (`struct sockaddr_un`).
const LONGEST_PATH: usize = 107;
/// Time after which nobody can be about to lock a folder any more.
const SETTLED: Duration = Duration::from_secs(60);

/// The listening socket. Dropping it removes socket and folder.
pub(crate) struct Listener {
    folder: PathBuf,
    path: PathBuf,
    socket: OwnedFd,
    _lock: OwnedFd,
}

/// A program at the other end of a connection, as the kernel vouches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub pid: Pid,
    pub uid: u32,
}

impl Listener {
    /// Removes leftovers, makes the folder and listens.
    pub(crate) fn new() -> Result<Self, Error> {
        let random = random_name().map_err(Error::system("getrandom"))?;
        let parent = parent_folder();
        remove_leftovers(&parent);
        let folder = parent.join(format!("{PREFIX}{random}"));
        let unlocked = parent.join(format!("{UNLOCKED_PREFIX}{random}"));
        let path = folder.join(SOCKET);
        Self::listen(&unlocked, &folder, &path).map_err(|source| {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir(&folder).or_else(|_| fs::remove_dir(&unlocked));
            Error::Socket { path, source }
        })
    }

    fn listen(unlocked: &Path, folder: &Path, path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(unlocked)?;
        let lock = open(unlocked, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(unlocked, folder)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, BACKLOG)?;
        // Only now, and regardless of the umask: processes of other users in the tree join, too.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
        Ok(Self { folder: folder.to_owned(), path: path.to_owned(), socket, _lock: lock })
    }

    /// Where programs connect.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next program that waits.
    pub(crate) fn accept(&self) -> rustix::io::Result<OwnedFd> {
        accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Who connected: process and user at the time of `connect`. `None` if the kernel cannot say, as for a process of
/// another PID namespace.
pub(crate) fn peer(connection: BorrowedFd<'_>) -> Option<Peer> {
    use std::os::fd::AsRawFd;
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: the buffer is a live `ucred` of the length that is told.
    let result = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut len,
        )
    };
    let pid = Pid::from_raw(credentials.pid).filter(|_| result == 0 && credentials.pid > 0)?;
    Some(Peer { pid, uid: credentials.uid })
}

/// Whether a folder's name is one of a recorder that runs, or ran.
pub(crate) fn is_recorders(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PREFIX.as_bytes())
}

/// What to tell programs of where to connect: to the recorder that listens at `own`, and to those that record this one
/// (`outer`, this process's value of [`SOCKET_VARIABLE`](tracewing_abi::SOCKET_VARIABLE)). Also says whether that is more
/// than programs join.
pub(crate) fn sockets(own: &Path, outer: Option<&OsStr>) -> (OsString, bool) {
    let outer =
        outer.map(OsStr::as_bytes).unwrap_or_default().split(|byte| *byte == b':').map(OsStr::from_bytes);
    // Those of recordings that are over are left behind in the environment of who outlives them.
    let living: Vec<&OsStr> = outer.filter(|path| !path.is_empty() && Path::new(path).exists()).collect();
    let all: Vec<&OsStr> = [own.as_os_str()].into_iter().chain(living).collect();
    (all[..all.len().min(MOST_RECORDERS)].join(OsStr::new(":")), all.len() > MOST_RECORDERS)
}

/// Root's programs often become other users, who cannot enter root's runtime folder.
pub(crate) fn parent_folder() -> PathBuf {
    let longest = LONGEST_PATH - "/".len() - PREFIX.len() - 32 - "/".len() - SOCKET.len();
    env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| getuid() != Uid::ROOT && path.is_absolute() && path.as_os_str().len() <= longest)
        .filter(|path| path.is_dir() && !path.as_os_str().as_bytes().contains(&b':'))
        .unwrap_or_else(|| "/tmp".into())
}

fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_unlocked = name.as_bytes().starts_with(UNLOCKED_PREFIX.as_bytes());
        if !is_unlocked && !is_recorders(&name) {
            continue;
        }
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|data| {
            let is_old = || data.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= SETTLED));
            data.is_dir() && data.uid() == getuid().as_raw() && (!is_unlocked || is_old())
        });
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Some(folder) = is_ours.then(|| open(&path, flags, Mode::empty()).ok()).flatten()
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // Only what a recorder makes: a folder with anything else in it stays.
            let _ = fs::remove_file(path.join(SOCKET));
            let _ = fs::remove_dir(&path);
        }
    }
}

fn random_name() -> io::Result<String> {
    random_uuid().map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let listener = Listener::new().unwrap();
        let folder = listener.folder.clone();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o711);
        drop(listener);
        assert!(!folder.exists());
    }

    #[test]
    fn recorders_around_this_one_are_told_to_programs_as_far_as_they_live() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..8).map(|number| folder.path().join(number.to_string())).collect();
        let own = Path::new("/own");
        let told = |outer: &str| {
            let (value, is_more) = sockets(own, Some(OsStr::new(outer)));
            (value.into_string().unwrap(), is_more)
        };
        assert_eq!(sockets(own, None), ("/own".into(), false));
        assert_eq!(told(&format!("::{}:/no/such", paths[0].display())), ("/own".to_owned(), false));
        paths.iter().for_each(|path| fs::write(path, "").unwrap());
        let one = paths[0].display().to_string();
        assert_eq!(told(&format!(":{one}:/no/such")), (format!("/own:{one}"), false));
        let all = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
        let (value, is_more) = told(&all);
        assert_eq!((value.split(':').count(), is_more), (8, true));
        assert!(value.starts_with(&format!("/own:{one}:")));
    }

    #[test]
    fn folders_of_killed_recorders_are_removed_and_those_of_living_ones_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(SOCKET), "").unwrap();
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
        remove_leftovers(parent.path());
        assert!(!killed.exists() && !killed_early.exists());
        assert!(living.exists() && starting.exists() && others.exists());
    }
}
