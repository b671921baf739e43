//! A thread that this thread traces: stops, registers, signal mask (`ptrace(2)`).
//!
//! All calls come from one thread of the recorder, since the kernel ties a tracee to a thread. When that
//! thread ends, or the recorder is killed, the kernel lets the tracee run.

use std::cell::Cell;
use std::io;
use std::ptr::null_mut;
use std::time::Instant;

use tracewing_units::Tid;

/// Registers of a stopped thread.
pub(crate) type Registers = libc::user_regs_struct;

/// Code segment of 64-bit programs (Linux, arch/x86/include/asm/segment.h, `__USER_CS`).
const CODE_64: u64 = 0x33;

/// Why a thread has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was interrupted, or its process is stopped.
    Interrupted,
    /// A signal is about to be delivered.
    Signal,
}

/// Why there is no stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoStop {
    /// The thread has ended.
    Ended,
    /// The thread has not stopped in time.
    Late,
}

/// A traced thread. Dropping it lets it run if it is stopped.
pub(crate) struct Tracee {
    tid: libc::pid_t,
    /// The signal that it has stopped to get, which it gets when it continues; 0: none.
    signal: Cell<libc::c_int>,
}

impl Tracee {
    /// Begins to trace a thread, which runs on.
    pub(crate) fn seize(tid: Tid) -> io::Result<Self> {
        request(libc::PTRACE_SEIZE, tid.0, 0, 0)?;
        Ok(Self { tid: tid.0, signal: Cell::new(0) })
    }

    /// Has it stop, in a system call as a signal without a handler would.
    pub(crate) fn interrupt(&self) -> io::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.tid, 0, 0)
    }

    /// A stop that has come already.
    pub(crate) fn stopped(&self) -> Result<Option<Stop>, NoStop> {
        let mut status = 0;
        // SAFETY: `status` is an integer of ours.
        match unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            0 => Ok(None),
            waited if waited == self.tid => self.stop(status).map(Some),
            _ => Err(NoStop::Ended),
        }
    }

    /// The stop that a status of `waitpid` reports; an error where the thread has ended.
    fn stop(&self, status: libc::c_int) -> Result<Stop, NoStop> {
        if !libc::WIFSTOPPED(status) {
            return Err(NoStop::Ended);
        }
        if status >> 16 == libc::PTRACE_EVENT_STOP {
            return Ok(Stop::Interrupted);
        }
        self.signal.set(libc::WSTOPSIG(status));
        Ok(Stop::Signal)
    }

    /// Whether it has stopped for a fault of its own, which it does not get then.
    pub(crate) fn take_fault(&self) -> bool {
        // SAFETY: all-zero is a valid `siginfo_t`.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let is_known = request(libc::PTRACE_GETSIGINFO, self.tid, 0, (&raw mut info).addr()).is_ok();
        let is_fault = matches!(self.signal.get(), libc::SIGSEGV | libc::SIGBUS | libc::SIGILL);
        // The kernel's; what processes send has other codes.
        let is_its_own = is_known && is_fault && info.si_code > 0;
        if is_its_own {
            self.signal.set(0);
        }
        is_its_own
    }

    /// Waits for a stop. The [`Alarm`](crate::alarm::Alarm) of this thread has to ring by then.
    pub(crate) fn wait(&self, until: Instant) -> Result<Stop, NoStop> {
        loop {
            let mut status = 0;
            // SAFETY: `status` is an integer of ours.
            let waited = unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL) };
            if waited == self.tid {
                return self.stop(status);
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(NoStop::Ended);
            }
            if Instant::now() >= until {
                return Err(NoStop::Late);
            }
        }
    }

    /// Runs until it is interrupted or gets a signal.
    pub(crate) fn run(&self) -> io::Result<()> {
        self.proceed(libc::PTRACE_CONT)
    }

    /// Has it continue in a way, with the signal that it has stopped for.
    fn proceed(&self, way: libc::c_uint) -> io::Result<()> {
        request(way, self.tid, 0, self.signal.take() as usize)
    }

    pub(crate) fn registers(&self) -> io::Result<Registers> {
        // SAFETY: all-zero is a valid `user_regs_struct`.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.tid, 0, (&raw mut registers).addr())?;
        Ok(registers)
    }

    /// Gives it other registers.
    pub(crate) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        request(libc::PTRACE_SETREGS, self.tid, 0, std::ptr::from_ref(registers).addr())
    }

    /// The signals that it blocks; inside calls such as `ppoll`, those that it blocks outside of them.
    pub(crate) fn mask(&self) -> io::Result<u64> {
        let mut mask = 0_u64;
        request(libc::PTRACE_GETSIGMASK, self.tid, size_of::<u64>(), (&raw mut mask).addr())?;
        Ok(mask)
    }

    /// Gives it another signal mask.
    pub(crate) fn set_mask(&self, mask: u64) -> io::Result<()> {
        request(libc::PTRACE_SETSIGMASK, self.tid, size_of::<u64>(), (&raw const mask).addr())
    }

    pub(crate) fn detach(self) -> io::Result<()> {
        let result = self.proceed(libc::PTRACE_DETACH);
        std::mem::forget(self);
        result
    }

    /// One of its seccomp filters, the newest first; `None` after the oldest.
    pub(crate) fn filter(&self, index: usize) -> io::Result<Option<Vec<libc::sock_filter>>> {
        /// Of `linux/ptrace.h`.
        const SECCOMP_GET_FILTER: libc::c_uint = 0x420c;
        let call = |data: *mut libc::sock_filter| {
            // SAFETY: the kernel writes the filter to `data`, which is null or has room for all of it: a
            // filter never changes.
            let result = unsafe { libc::ptrace(SECCOMP_GET_FILTER, self.tid, index, data) };
            usize::try_from(result).map_err(|_| io::Error::last_os_error())
        };
        let len = match call(null_mut()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            len => len?,
        };
        let mut filter = vec![libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; len];
        call(filter.as_mut_ptr())?;
        Ok(Some(filter))
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // One that has not stopped runs, and is let go when this thread ends.
        let _ = self.proceed(libc::PTRACE_DETACH);
    }
}

/// Whether these are registers of a 64-bit program.
pub(crate) fn is_64_bit(registers: &Registers) -> bool {
    registers.cs == CODE_64
}

/// A request whose answer is none but success.
fn request(what: libc::c_uint, tid: libc::pid_t, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: requests with a pointer are given one to a live value of the type that they read or write, by
    // the callers above; the others take numbers.
    let result = unsafe { libc::ptrace(what, tid, address, data) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
