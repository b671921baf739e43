//! The socket at which a service is asked: the one that systemd passes (`LISTEN_FDS`), or its own.
//!
//! A socket of root has mode 0660 and the group `tracewing`, if there is one in `/etc/group`, otherwise
//! 0600; that of another user 0600. It lies in a folder that only its user can write to. It is bound by way
//! of the folder's descriptor, and no link is followed: what lies in its place is replaced only if it is a
//! socket of this user that no process listens at.

use anyhow::{Context, Result, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, chmodat, chownat, fstat, openat, statat, unlinkat,
};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use tracewing_files::Exclusive;
use tracewing_session::open_folder;

/// Where the service of the machine is asked.
pub const OF_MACHINE: &str = "/run/tracewing/control";
/// The name of the socket in its folder, and that of the one that systemd passes.
const NAME: &str = "control";
/// The members of this group may ask root's service.
pub const GROUP: &str = "tracewing";
const GROUPS: &str = "/etc/group";
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// A listening socket; its own is removed when this is dropped.
pub struct Socket {
    socket: OwnedFd,
    own: Option<Own>,
}

/// Where a socket of its own lies.
struct Own {
    folder: OwnedFd,
    name: OsString,
    inode: u64,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Socket {
    /// The one that systemd has passed, if it has.
    pub fn passed() -> Result<Option<Self>> {
        let passed = sd_notify::listen_fds_with_names().context("cannot use LISTEN_FDS")?;
        let passed: Vec<_> = passed.collect();
        if passed.is_empty() {
            return Ok(None);
        }
        let named = passed.iter().find(|(_, name)| name == NAME);
        let (number, _) = named.with_context(|| {
            format!("LISTEN_FDS has no socket with the name {NAME} (FileDescriptorName={NAME})")
        })?;
        // SAFETY: LISTEN_PID is this process: the descriptor was passed to it for this use, and nothing else
        // in it takes it.
        let socket = unsafe { OwnedFd::from_raw_fd(*number) };
        let is_one = socket_domain(&socket) == Ok(AddressFamily::UNIX)
            && socket_type(&socket) == Ok(SocketType::SEQPACKET)
            && socket_acceptconn(&socket) == Ok(true);
        ensure!(is_one, "the socket {NAME} of LISTEN_FDS is not one that listens (ListenSequentialPacket=)");
        ioctl_fionbio(&socket, true)?;
        Ok(Some(Self { socket, own: None }))
    }

    /// One at the default place of this user.
    pub fn at_default() -> Result<Self> {
        let folder = open_folder().context("this user has no folder tracewing in /run or XDG_RUNTIME_DIR")?;
        Self::within(folder, NAME.as_ref()).context("cannot listen at tracewing/control there")
    }

    /// One at this path.
    pub fn at(path: &Path) -> Result<Self> {
        let name = path.file_name().with_context(|| format!("{} has no name", path.display()))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, parent, flags, Mode::empty());
        Self::within(folder.with_context(|| format!("cannot open {}", parent.display()))?, name)
    }

    fn within(folder: OwnedFd, name: &OsStr) -> Result<Self> {
        let data = fstat(&folder)?;
        let is_own = data.st_uid == geteuid().as_raw() && data.st_mode & 0o022 == 0;
        ensure!(is_own, "its folder is another user's, or others can write to it");
        // Of two services that begin, the second one finds the socket of the first.
        let locked = Exclusive::wait(&folder).context("cannot lock its folder")?;
        let (socket, inode) = Self::within_locked(&folder, name)?;
        drop(locked);
        Ok(Self { socket, own: Some(Own { folder, name: name.to_owned(), inode }) })
    }

    fn within_locked(folder: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, u64)> {
        let address = address(folder, name)?;
        match entry(folder, name) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
            Ok(data) => {
                let is_socket = FileType::from_raw_mode(data.st_mode) == FileType::Socket;
                ensure!(
                    is_socket && data.st_uid == geteuid().as_raw(),
                    "what lies there is not a socket of this user"
                );
                match connect(seqpacket()?, &address) {
                    Err(Errno::CONNREFUSED) => unlinkat(folder, name, AtFlags::empty())?,
                    _ => bail!("another process listens there"),
                }
            }
        }
        let socket = seqpacket()?;
        bind(&socket, &address)?;
        let inode = entry(folder, name)?.st_ino;
        // Nothing can connect yet, with whatever mode the socket was made.
        let group = if geteuid().is_root() { group(GROUP) } else { None };
        let is_for_group = group.is_some_and(|group| {
            chownat(folder, name, None, Some(Gid::from_raw(group)), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        });
        let mode = if is_for_group { 0o660 } else { 0o600 };
        chmodat(folder, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        Ok((socket, inode))
    }

    /// Whether a connection waits at a socket that was passed: it has started this process.
    pub fn has_started_this(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.own.is_none() && poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&now)) == Ok(1)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(Own { folder, name, inode }) = &self.own
            && entry(folder, name).is_ok_and(|data| data.st_ino == *inode)
        {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

fn entry(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<Stat> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn seqpacket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

fn address(folder: &OwnedFd, name: &OsStr) -> Result<SocketAddrUnix> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    SocketAddrUnix::new(path).context("its name is too long")
}

/// The number of a group.
pub fn group(name: &str) -> Option<u32> {
    let groups = std::fs::read_to_string(GROUPS).ok()?;
    fields(&groups).find(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

/// The name of a group, or its number.
pub fn group_name(number: u32) -> String {
    let groups = std::fs::read_to_string(GROUPS).unwrap_or_default();
    let text = number.to_string();
    let found = fields(&groups).find(|fields| fields.get(2) == Some(&&*text));
    found.and_then(|fields| Some((*fields.first()?).to_owned())).unwrap_or(text)
}

fn fields(groups: &str) -> impl Iterator<Item = Vec<&str>> {
    groups.lines().map(|line| line.split(':').collect())
}
