//! A helper as a process: how it begins, and how it ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    Pid as KernelPid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use tracewing_units::Pid;

/// Where a helper has its first descriptor after the standard ones.
const FIRST: RawFd = 3;

/// How long the end of a process that was killed is waited for.
const DYING: Duration = Duration::from_secs(1);

/// A child process that is known by its pidfd.
#[derive(Debug)]
pub(crate) struct Child {
    pid: KernelPid,
    pidfd: OwnedFd,
    is_reaped: bool,
}

impl Child {
    /// Forks. `body` runs in the child, which ends with it.
    pub(crate) fn fork(body: impl FnOnce()) -> io::Result<Self> {
        // SAFETY: the child runs Rust code, which needs locks that other threads may have at this moment.
        // Those of the C library's memory are made free by `fork` itself; the standard library has none that
        // this crate's code and threads need.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let is_whole = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
            // SAFETY: ends the child, without what the recorder has registered for its own end.
            unsafe { libc::_exit(if is_whole { 0 } else { 101 }) };
        }
        let pid = KernelPid::from_raw(pid).ok_or_else(io::Error::last_os_error)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { pid, pidfd, is_reaped: false }),
            Err(error) => {
                // It is this process's child, and not reaped: the number is its own.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
                Err(error.into())
            }
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid(self.pid.as_raw_nonzero().get())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.is_reaped || is_readable(&self.pidfd, Duration::ZERO)
    }

    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Readable once it has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Has the kernel forget it, if it has ended, and returns whether it has.
    pub(crate) fn try_reap(&mut self) -> bool {
        let has_ended = self.has_ended();
        if has_ended {
            self.end(Duration::ZERO);
        }
        has_ended
    }

    /// Waits until it has ended, kills it if that takes longer than `patience`, and has the kernel forget it.
    ///
    /// A process that waits for a file system may end only once this has answered (a FUSE daemon, for
    /// example, which has taken the request): it is left to a later call, or to the parent that it gets.
    pub(crate) fn end(&mut self, patience: Duration) {
        if self.is_reaped {
            return;
        }
        if !is_readable(&self.pidfd, patience) {
            self.kill();
            if !is_readable(&self.pidfd, DYING) {
                return;
            }
        }
        let reap = || waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        let _ = rustix::io::retry_on_intr(reap);
        self.is_reaped = true;
    }
}

/// What a child has to be rid of, and its descriptors, now at their places.
///
/// - It ends with the thread of the process that has started it (`parent`: that one's process id).
/// - Signals of the terminal and of service managers reach the recorder, which decides.
/// - Of the descriptors it keeps these.
pub(crate) fn settle(files: &[BorrowedFd<'_>], parent: Pid) -> io::Result<Vec<OwnedFd>> {
    block_signals();
    // A packet's number of descriptors is limited.
    let end = FIRST + files.len() as RawFd;
    // Their numbers may be among those that are replaced next; the copies are closed with the rest.
    let copy = |file: BorrowedFd<'_>| -> io::Result<RawFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(file, end)?.into_raw_fd())
    };
    let null = {
        let file = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        copy(file.as_fd())?
    };
    let copies = files.iter().map(|file| copy(*file)).collect::<io::Result<Vec<_>>>()?;
    for number in 0..FIRST {
        // SAFETY: numbers of descriptors. No code of the helper owns these three.
        unsafe { libc::dup2(null, number) };
    }
    let mut kept = Vec::new();
    for (copy, number) in copies.into_iter().zip(FIRST..) {
        // SAFETY: as above: what had the number is the recorder's, whose values are never dropped here.
        kept.push(unsafe {
            if libc::dup3(copy, number, libc::O_CLOEXEC) < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(number)
        });
    }
    close_above(end - 1)?;
    end_with(parent)?;
    Ok(kept)
}

/// Has the kernel end this process with the thread that has started it. The kernel forgets that when the
/// process becomes another user.
pub(crate) fn end_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let has_parent = rustix::process::getppid().is_some_and(|pid| Pid(pid.as_raw_nonzero().get()) == parent);
    // It has ended before it could be watched.
    if has_parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// Closes all descriptors above a number.
fn close_above(last: RawFd) -> io::Result<()> {
    // SAFETY: numbers; what had them is the recorder's, whose values are never dropped here.
    if unsafe { libc::syscall(libc::SYS_close_range, last + 1, u32::MAX, 0) } == 0 {
        return Ok(());
    }
    // Before Linux 5.9.
    let names =
        std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers: Vec<RawFd> = names.filter_map(|name| name.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > last) {
        // SAFETY: as above; that of the list itself is closed by now.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// All signals but those of faults: one that is sent to the recorder's group is meant for the recorder.
fn block_signals() {
    // SAFETY: sets that live through the calls; the first call initialises them.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGSYS] {
            libc::sigdelset(&raw mut set, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Whether a descriptor becomes readable within a time. A pidfd does with the end of its process.
pub(crate) fn is_readable(file: &OwnedFd, patience: Duration) -> bool {
    wait_for(file.as_fd(), PollFlags::IN, patience)
}

pub(crate) fn wait_for(file: BorrowedFd<'_>, what: PollFlags, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let rest = until.saturating_duration_since(Instant::now());
        let rest = Timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(file, what)], Some(&rest)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
