//! A stopped thread: whether it can be borrowed, the call that it makes then, and how it continues.

use std::time::{Duration, Instant};

use tracewing_abi::attach::{RED_ZONE, Saved, UNFINISHED};
use tracewing_programs::image::Process;

use crate::filter::{self, SystemCall};
use crate::restart::{alone, is_interrupted_in_vain, restart, resumed};
use crate::status::{Sleeping, Status};
use crate::threads::rank;
use crate::tracee::{NoStop, Registers, Stop, Tracee, is_64_bit};
use crate::{Refusal, Target};

/// How long a borrowed thread may take for the call.
pub(crate) const CALLING: Duration = Duration::from_secs(2);
/// All signals, but the one by which glibc has each thread change its user (`SIGSETXID`, nptl(7)): the thread
/// that changes it waits for the others, with a lock that the call may need.
const BLOCKED: u64 = !(1 << (33 - 1));
/// Size of a signal set with which `rt_sigprocmask` does nothing but fail.
const NO_SIZE: u64 = 0;
/// Flags at a function's entry: interrupts on, which user space cannot change, and nothing else.
const CLEAR_FLAGS: u64 = 0x202;

/// A stopped thread, and its registers as they were.
pub(crate) struct Stopped<'a> {
    target: &'a Target,
    tracee: Tracee,
    tid: i32,
    registers: Registers,
}

/// A thread that can be borrowed, and has a block.
pub(crate) struct Fit {
    /// The block's address.
    block: u64,
    mask: u64,
    /// How many filters it has.
    pub(crate) filters: usize,
}

impl<'a> Stopped<'a> {
    /// Takes a thread that has stopped.
    pub(crate) fn new(target: &'a Target, tracee: Tracee, tid: i32) -> Result<Self, Refusal> {
        let registers = tracee.registers().map_err(target.failed("PTRACE_GETREGS"))?;
        Ok(Self { target, tracee, tid, registers })
    }

    /// Looks whether it can be borrowed for these calls, and writes its block.
    pub(crate) fn fit(&self, process: &Process, calls: &[SystemCall]) -> Result<Option<Fit>, Refusal> {
        if !is_64_bit(&self.registers) {
            return Err(Refusal::Bits(self.target.pid()));
        }
        if !self.can_be_borrowed(process)? {
            return Ok(None);
        }
        let is_filtered =
            Status::of_thread(self.target.pid(), self.tid).is_none_or(|status| status.seccomp != 0);
        let filters = if is_filtered { self.check_filters(calls)? } else { 0 };
        let mask = self.tracee.mask().map_err(self.target.failed("PTRACE_GETSIGMASK"))?;
        let below = self.registers.rsp.wrapping_sub(RED_ZONE + size_of::<Saved>() as u64);
        let block = below & !(align_of::<Saved>() as u64 - 1);
        // Its stack may end there.
        let has_room = self.write(block, &alone(&self.registers, mask)).is_ok();
        Ok(has_room.then_some(Fit { block, mask, filters }))
    }

    fn can_be_borrowed(&self, process: &Process) -> Result<bool, Refusal> {
        let Registers { rdi, rsi, rdx, r10, r8, r9, rsp, .. } = self.registers;
        let number = self.registers.orig_rax.cast_signed();
        let call = Sleeping { number, arguments: [rdi, rsi, rdx, r10, r8, r9], stack_pointer: rsp };
        let can_wait = restart(&self.registers).is_some()
            && rank(self.target.pid(), &call, self.target.pidfd()).is_some();
        Ok(can_wait && !self.is_signalled()? && !crate::signal_frame::is_in_handler(process, rsp))
    }

    /// Whether a signal waits for it: that is to be seen by the call, whose `EINTR` the program expects.
    fn is_signalled(&self) -> Result<bool, Refusal> {
        let pid = self.target.pid();
        let status = Status::of_thread(pid, self.tid).ok_or(Refusal::Gone(pid))?;
        Ok(status.pending & !status.blocked != 0)
    }

    /// Looks whether the thread's filters let the calls through, and gives how many it has.
    fn check_filters(&self, calls: &[SystemCall]) -> Result<usize, Refusal> {
        let pid = self.target.pid();
        let filters =
            filter::filters(&self.tracee).map_err(|source| Refusal::UnknownFilter { pid, source })?;
        match filter::refused(&filters, calls) {
            None => Ok(filters.len()),
            Some(call) => Err(Refusal::Filtered { pid, call }),
        }
    }

    /// Has it call the entry. Gives the function's result.
    pub(crate) fn call(&self, entry: u64, Fit { block, .. }: &Fit) -> Result<i64, Refusal> {
        let at_entry = Registers {
            rip: entry,
            rdi: *block,
            rsi: self.target.recorder_inside(),
            rsp: *block,
            rax: 0,
            orig_rax: u64::MAX, // in no call: the kernel repeats none
            eflags: CLEAR_FLAGS,
            ..self.registers
        };
        self.tracee.set_registers(&at_entry).map_err(self.target.failed("PTRACE_SETREGS"))?;
        self.tracee.set_mask(BLOCKED).map_err(self.target.failed("PTRACE_SETSIGMASK"))?;
        self.finish(*block)
    }

    /// Lets it go after its call. The one in which it was interrupted continues, of whose time-out this much
    /// has passed.
    pub(crate) fn give_back(self, fit: &Fit, waited: impl FnOnce() -> Duration) -> Result<(), Refusal> {
        self.tracee.set_mask(fit.mask).map_err(self.target.failed("PTRACE_SETSIGMASK"))?;
        self.let_go(waited())
    }

    /// Lets it go without a call. Where the stop would have its system call return, it makes that again, of
    /// whose time-out this much has passed.
    pub(crate) fn leave(self, waited: Duration) -> Result<(), Refusal> {
        let is_in_vain = is_64_bit(&self.registers) && is_interrupted_in_vain(&self.registers);
        if is_in_vain && !self.is_signalled()? { self.let_go(waited) } else { Ok(()) }
    }

    fn let_go(self, waited: Duration) -> Result<(), Refusal> {
        let Self { target, tracee, registers, .. } = self;
        let registers = resumed(&registers, waited);
        tracee.set_registers(&registers).map_err(target.failed("PTRACE_SETREGS"))?;
        tracee.detach().map_err(target.failed("PTRACE_DETACH"))
    }

    /// Lets it run to the entry's last call, and has that fail: it stops where the kernel looks for signals,
    /// as it was stopped before. Gives the function's result.
    fn finish(&self, block: u64) -> Result<i64, Refusal> {
        let failed = |call| self.target.failed(call);
        let until = Instant::now() + CALLING;
        let mask = block + tracewing_abi::attach::at::MASK as u64;
        loop {
            self.tracee.run_to_call().map_err(failed("PTRACE_SYSCALL"))?;
            if self.stop(until)? != Stop::Call {
                continue;
            }
            let registers = self.tracee.registers().map_err(failed("PTRACE_GETREGS"))?;
            let is_last = registers.orig_rax == libc::SYS_rt_sigprocmask.cast_unsigned()
                && registers.rsi == mask
                && registers.rax.cast_signed() == -i64::from(libc::ENOSYS);
            if !is_last {
                continue;
            }
            // Not by a number of no call, which a filter for system calls would be asked about.
            let skipped = Registers { r10: NO_SIZE, ..registers };
            self.tracee.set_registers(&skipped).map_err(failed("PTRACE_SETREGS"))?;
            self.tracee.interrupt().map_err(failed("PTRACE_INTERRUPT"))?;
            self.tracee.run().map_err(failed("PTRACE_CONT"))?;
            while self.stop(until)? != Stop::Interrupted {
                self.tracee.run().map_err(failed("PTRACE_CONT"))?;
            }
            let result = self.read_result(block).map_err(failed("process_vm_readv"))?;
            return Ok(result);
        }
    }

    /// The next stop. All signals are blocked but those that have the process stop or its user changed, and
    /// those that the thread itself causes, which are its end.
    fn stop(&self, until: Instant) -> Result<Stop, Refusal> {
        let pid = self.target.pid();
        self.tracee.wait(until).map_err(|error| match error {
            NoStop::Ended => Refusal::Gone(pid),
            NoStop::Late => Refusal::Late(pid),
        })
    }

    fn write(&self, address: u64, saved: &Saved) -> std::io::Result<()> {
        let local = libc::iovec {
            iov_base: std::ptr::from_ref(saved).cast_mut().cast(),
            iov_len: size_of::<Saved>(),
        };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of::<Saved>() };
        let pid = self.target.pid();
        // SAFETY: the kernel reads `saved`, which is live and plain data; the other address is the target's.
        let written = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(written, size_of::<Saved>())
    }

    fn read_result(&self, block: u64) -> std::io::Result<i64> {
        let mut result = UNFINISHED;
        let local = libc::iovec { iov_base: (&raw mut result).cast(), iov_len: size_of::<i64>() };
        let address = block + tracewing_abi::attach::at::RESULT as u64;
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of::<i64>() };
        let pid = self.target.pid();
        // SAFETY: the kernel writes to `result`, for which all bytes are values.
        let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(read, size_of::<i64>()).map(|()| result)
    }
}

fn whole(done: isize, wanted: usize) -> std::io::Result<()> {
    match usize::try_from(done) {
        Ok(done) if done == wanted => Ok(()),
        Ok(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(std::io::Error::last_os_error()),
    }
}
