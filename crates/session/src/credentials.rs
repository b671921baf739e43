//! The process at the other end of a connection, confirmed by the kernel, and pinned so that its id cannot
//! mean another one.
//!
//! The kernel keeps process id and effective user of the moment of `connect` (`SO_PEERCRED`). The pidfd is
//! that process's own (`SO_PEERPIDFD`, Linux 6.5); on older kernels one is opened by the id. Either way, what
//! `/proc` says about the id is only used if the pidfd shows afterwards that the process lives: then both are
//! about one process. An id that was reused before the pidfd was opened gains nothing, since all users of the
//! process found must be the user that connected.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid as KernelPid, PidfdFlags, pidfd_open};
use tracewing_proc::Status;
use tracewing_units::Pid;

/// `SO_PEERPIDFD` of the kernel's `asm-generic/socket.h`.
const PEER_PIDFD: libc::c_int = 77;

/// A process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Process id in the recorder's namespace; always positive.
    pub pid: Pid,
    /// Effective user id when it connected.
    pub uid: u32,
}

/// Process and user at the time of `connect`, or of `listen`. `None` if the kernel cannot say, as for a
/// process of another PID namespace.
pub(crate) fn peer(connection: BorrowedFd<'_>) -> Option<Peer> {
    let credentials = credentials(connection)?;
    (credentials.pid > 0).then_some(Peer { pid: Pid(credentials.pid), uid: credentials.uid })
}

/// The user at the other end of a connection: that of `connect`, or of `listen`. `None` if the kernel cannot
/// say.
pub fn user_of(connection: BorrowedFd<'_>) -> Option<u32> {
    credentials(connection).map(|credentials| credentials.uid)
}

fn credentials(connection: BorrowedFd<'_>) -> Option<libc::ucred> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    option(connection, libc::SO_PEERCRED, &mut credentials).ok()?;
    Some(credentials)
}

/// The pidfd of the process that connected. `None` if it is dead.
pub(crate) fn pin(connection: BorrowedFd<'_>, peer: Peer) -> Option<OwnedFd> {
    try_pin(connection, peer).ok()
}

/// As [`pin`].
///
/// # Errors
/// The process is dead, or this one has too many descriptors.
pub(crate) fn try_pin(connection: BorrowedFd<'_>, peer: Peer) -> rustix::io::Result<OwnedFd> {
    pin_by(PEER_PIDFD, connection, peer)
}

/// By an option of the socket, which older kernels do not have.
fn pin_by(peer_pidfd: libc::c_int, connection: BorrowedFd<'_>, peer: Peer) -> rustix::io::Result<OwnedFd> {
    let mut descriptor: libc::c_int = -1;
    match option(connection, peer_pidfd, &mut descriptor) {
        // SAFETY: the kernel has just made the descriptor for this call.
        Ok(()) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        Err(libc::ENOPROTOOPT) => {
            let pid = KernelPid::from_raw(peer.pid.0).ok_or(Errno::SRCH)?;
            pidfd_open(pid, PidfdFlags::empty())
        }
        Err(error) => Err(Errno::from_raw_os_error(error)),
    }
}

/// Whether the pinned process lives, and its real, effective and saved user are all the one that connected.
pub(crate) fn is_one_user(peer: Peer, pidfd: &OwnedFd) -> bool {
    users(peer.pid) == Some([peer.uid; 3]) && is_alive(pidfd)
}

/// Whether the process of a pidfd lives: the descriptor becomes readable with its death.
pub(crate) fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut file = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut file, Some(&now)) == Ok(0)
}

/// Real, effective and saved user of a process.
pub(crate) fn users(pid: Pid) -> Option<[u32; 3]> {
    let [real, effective, saved, _] = Status::of(pid)?.users()?;
    Some([real, effective, saved])
}

fn option<T>(connection: BorrowedFd<'_>, name: libc::c_int, value: &mut T) -> Result<(), i32> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the buffer is live and of the length that is given.
    let result = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut *value).cast(),
            &raw mut len,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{getpid, getuid};
    use std::os::fd::AsFd;

    #[test]
    fn a_process_is_pinned_with_its_users() {
        let flags = SocketFlags::CLOEXEC;
        let (one, _other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let peer = peer(one.as_fd()).unwrap();
        assert_eq!((peer.pid, peer.uid), (Pid(getpid().as_raw_nonzero().get()), getuid().as_raw()));
        const NO_OPTION: libc::c_int = 10_000;
        for option in [PEER_PIDFD, NO_OPTION] {
            let pidfd = pin_by(option, one.as_fd(), peer).unwrap();
            assert!(is_alive(&pidfd) && is_one_user(peer, &pidfd));
            assert!(!is_one_user(Peer { uid: peer.uid + 1, ..peer }, &pidfd));
        }
    }

    #[test]
    fn a_dead_process_has_no_users() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_unsigned(child.id());
        let pidfd = pidfd_open(KernelPid::from_raw(pid.0).unwrap(), PidfdFlags::empty()).unwrap();
        let peer = Peer { pid, uid: getuid().as_raw() };
        assert!(is_one_user(peer, &pidfd));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_one_user(peer, &pidfd));
    }
}
