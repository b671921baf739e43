//! Signals that stop a recording or ask a flight recorder for a snapshot, read from a descriptor instead of
//! interrupting anything.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{io, mem, ptr};

use crate::Error;

/// Signals that ask the recorder to stop, except those that are ignored when it starts, as `nohup` and
/// scripts have it for commands in the background.
const STOPPING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Most signals that wait for a process: one of each of the 64 (`man 7 signal`).
const MOST_PENDING: usize = 64;

/// The signal that asks a flight recorder for a snapshot.
pub(crate) const SNAPSHOT: libc::c_int = libc::SIGUSR2;

/// The stopping signals of this thread, and [`SNAPSHOT`] if it causes snapshots, blocked while this lives.
/// SIGXFSZ is ignored, so that a file size limit is an error of `write` like a full disk.
pub(crate) struct Signals {
    file: OwnedFd,
    before: libc::sigset_t,
    file_size: libc::sighandler_t,
    with_snapshot: bool,
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal {
    pub number: i32,
    /// Sent by a process. Those that the terminal sends reach the recorded command by themselves.
    pub from_process: bool,
}

impl Signals {
    /// Blocks the signals. To be called before other threads start, which would get them instead.
    pub(crate) fn block(with_snapshot: bool) -> Result<Self, Error> {
        // SAFETY: all pointers are to live locals; an all-zero set is a valid one to begin with.
        unsafe {
            let (mut set, mut before) = (mem::zeroed(), mem::zeroed());
            libc::sigemptyset(&mut set);
            let stopping = STOPPING.into_iter().filter(|signal| !is_ignored(*signal));
            for signal in stopping.chain(with_snapshot.then_some(SNAPSHOT)) {
                libc::sigaddset(&mut set, signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            if error != 0 {
                return Err(Error::system("pthread_sigmask")(io::Error::from_raw_os_error(error)));
            }
            let file = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if file < 0 {
                let error = io::Error::last_os_error();
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
                return Err(Error::system("signalfd")(error));
            }
            let file_size = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            Ok(Self { file: OwnedFd::from_raw_fd(file), before, file_size, with_snapshot })
        }
    }

    /// The next signal that waits.
    pub(crate) fn next(&self) -> Option<Signal> {
        const SIZE: usize = mem::size_of::<libc::signalfd_siginfo>();
        let mut bytes = [0; SIZE];
        let read = rustix::io::read(&self.file, &mut bytes).ok()?;
        // SAFETY: the kernel filled in a whole record; every bit pattern is one.
        let info = (read == SIZE)
            .then(|| unsafe { bytes.as_ptr().cast::<libc::signalfd_siginfo>().read_unaligned() })?;
        Some(Signal { number: info.ssi_signo as i32, from_process: info.ssi_code <= 0 })
    }

    /// What the signal mask was: the recorded command's.
    pub(crate) fn mask_before(&self) -> libc::sigset_t {
        self.before
    }

    /// What SIGXFSZ did.
    pub(crate) fn file_size_before(&self) -> libc::sighandler_t {
        self.file_size
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether this process ignores a signal, as `nohup` and scripts have it.
pub fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: only asks, into a live local that any bytes are valid for.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Has the signal for snapshots do nothing, unless its disposition is no longer the default.
fn ignore_snapshot() {
    // SAFETY: a process's own dispositions; no handler is called or replaced.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        if libc::sigaction(SNAPSHOT, ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_DFL {
            libc::signal(SNAPSHOT, libc::SIG_IGN);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A signal that is still pending, or a late request for a snapshot, would end the process after its
        // recording is complete.
        if self.with_snapshot {
            ignore_snapshot();
        }
        // Signals that come faster than they are read end the process, as their sender asks.
        for _ in 0..MOST_PENDING {
            if self.next().is_none() {
                break;
            }
        }
        // SAFETY: the mask is the one that `block` found, as is the handler.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
            libc::signal(libc::SIGXFSZ, self.file_size);
        }
    }
}
