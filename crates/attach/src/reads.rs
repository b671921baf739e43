//! Whether a wait for data can be interrupted without effect. It cannot if the socket or terminal has a
//! time-out: the time-out would begin again, or the wait would return `EINTR`. It cannot either if the wait
//! may already have received a part of the data, which it would return.
//!
//! Only sockets and devices of the process are copied, since examining or closing a file can take as long as
//! its file system likes.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
use tracewing_units::Pid;

/// Whether a wait for data from a process's descriptor can be interrupted.
pub(crate) fn can_be_interrupted(pid: Pid, pidfd: BorrowedFd<'_>, number: i32) -> bool {
    let link = format!("/proc/{pid}/fd/{number}");
    let Ok(path) = fs::read_link(&link) else { return false };
    let copy = || pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty());
    match path.as_os_str().as_bytes() {
        [b's', b'o', b'c', b'k', b'e', b't', b':', ..] => copy().is_ok_and(|socket| takes_the_first(&socket)),
        [b'/', ..] => match kind(&link) {
            FileType::Fifo => true,
            FileType::CharacterDevice => copy().is_ok_and(|device| !waits_for_characters(&device)),
            // Of files, only a file system of another program's keeps readers waiting, and would ask it.
            _ => false,
        },
        // Pipes, and what the kernel makes: timers, counters, watches.
        _ => true,
    }
}

/// The type of a file, from the kernel's cache, without a request to a file system.
fn kind(path: &str) -> FileType {
    statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE)
        .map_or(FileType::Unknown, |status| FileType::from_raw_mode(status.stx_mode.into()))
}

/// Whether a receiver waits for no more than the first byte, and for as long as it takes.
fn takes_the_first(socket: &OwnedFd) -> bool {
    let time_out: Option<libc::timeval> = option(socket, libc::SO_RCVTIMEO);
    let least: Option<libc::c_int> = option(socket, libc::SO_RCVLOWAT);
    time_out.is_some_and(|limit| (limit.tv_sec, limit.tv_usec) == (0, 0))
        && least.is_none_or(|least| least <= 1)
}

/// A socket's option; `None` where it has none.
fn option<T>(socket: &OwnedFd, name: libc::c_int) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut size = size_of::<T>() as libc::socklen_t;
    let place = value.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `size` bytes to it.
    let got = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, place, &raw mut size) };
    // SAFETY: the types of these options are numbers, for which all bytes are values.
    (got == 0).then(|| unsafe { value.assume_init() })
}

/// Whether a device is a terminal whose readers wait for a number of characters, or a time (`termios(3)`,
/// "Canonical and noncanonical mode").
fn waits_for_characters(device: &OwnedFd) -> bool {
    let mut settings = MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: the settings are the C library's, which writes them; all bytes are values.
    let settings = unsafe {
        let got = libc::tcgetattr(device.as_raw_fd(), settings.as_mut_ptr());
        (got == 0).then(|| settings.assume_init())
    };
    settings.is_some_and(|settings| {
        let is_by_lines = settings.c_lflag & libc::ICANON != 0;
        !is_by_lines && (settings.c_cc[libc::VMIN] > 1 || settings.c_cc[libc::VTIME] > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::{PidfdFlags, getpid, pidfd_open};
    use std::fs::File;
    use std::os::fd::AsFd;

    fn can(file: &impl AsRawFd) -> bool {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        can_be_interrupted(Pid(getpid().as_raw_nonzero().get()), pidfd.as_fd(), file.as_raw_fd())
    }

    fn set<T>(socket: &OwnedFd, name: libc::c_int, value: T) {
        let (place, size) = ((&raw const value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: a value of that size.
        let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, place, size) };
        assert_eq!(set, 0);
    }

    #[test]
    fn sockets_with_time_outs_or_least_sizes_are_left_alone() {
        let pair =
            || socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let (timed, partial) = (pair(), pair());
        assert!(can(&timed.0) && can(&partial.0));
        set(&timed.0, libc::SO_RCVTIMEO, libc::timeval { tv_sec: 1, tv_usec: 0 });
        set(&partial.0, libc::SO_RCVLOWAT, 8);
        assert!(!can(&timed.0) && !can(&partial.0));
    }

    #[test]
    fn files_of_file_systems_are_left_alone() {
        let (pipe, _other) = rustix::pipe::pipe().unwrap();
        assert!(can(&pipe) && can(&File::open("/dev/zero").unwrap()));
        assert!(!can(&File::open("/proc/self/exe").unwrap()) && !can(&-1));
    }
}
