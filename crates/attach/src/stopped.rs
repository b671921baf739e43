//! A stopped thread: whether it can be borrowed, the call that it makes then, and how it continues.

use std::time::{Duration, Instant};

use tracewing_abi::attach::{CALLING, RED_ZONE, Saved, WAITING, at};
use tracewing_proc::{Sleeping, Status};
use tracewing_programs::image::Process;
use tracewing_units::Tid;

use crate::filter::{self, SystemCall};
use crate::restart::{alone, is_interrupted_in_vain, restart, resumed};
use crate::threads::rank;
use crate::tracee::{NoStop, Registers, Stop, Tracee, is_64_bit};
use crate::{Refusal, Target};

/// How long a borrowed thread may take for the call.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks whether it has made the call.
const GLANCE: Duration = Duration::from_micros(20);
/// All signals except two kinds. `SIGSETXID`, by which glibc has each thread change its user (nptl(7)): the
/// thread that changes it waits for the others, with a lock that the call may need. And signals of faults:
/// the kernel would reset the program's handlers if they were blocked.
const BLOCKED: u64 = !(bit(33) | bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL));
/// Bytes of code in which the entry is, with room to spare.
const ENTRY: u64 = 512;
/// Flags at a function's entry: interrupts on, which user space cannot change, and nothing else.
const CLEAR_FLAGS: u64 = 0x202;

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// A stopped thread, and its registers as they were.
pub(crate) struct Stopped<'a> {
    target: &'a Target,
    tracee: Tracee,
    tid: Tid,
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
    pub(crate) fn new(target: &'a Target, tracee: Tracee, tid: Tid) -> Result<Self, Refusal> {
        let registers = tracee.registers().map_err(target.failed("PTRACE_GETREGS"))?;
        Ok(Self { target, tracee, tid, registers })
    }

    /// Looks whether it can be borrowed for these calls, and writes its block.
    pub(crate) fn fit(&self, process: &Process, calls: &[SystemCall]) -> Result<Option<Fit>, Refusal> {
        if !is_64_bit(&self.registers) {
            return Err(Refusal::Bits(self.target.pid()));
        }
        let status = self.status()?;
        // A pending signal must interrupt the system call: the program expects its `EINTR`.
        if status.is_signalled() || !self.can_be_borrowed(process) {
            return Ok(None);
        }
        let filters = if status.is_filtered() { self.check_filters(calls)? } else { 0 };
        let mask = self.tracee.mask().map_err(self.target.failed("PTRACE_GETSIGMASK"))?;
        let below = self.registers.rsp.wrapping_sub(RED_ZONE + size_of::<Saved>() as u64);
        let block = below & !(align_of::<Saved>() as u64 - 1);
        let caught = if status.is_filtered() { 0 } else { status.caught() };
        // Its stack may end there.
        let has_room = self.write(block, &alone(&self.registers, mask, caught)).is_ok();
        Ok(has_room.then_some(Fit { block, mask, filters }))
    }

    fn can_be_borrowed(&self, process: &Process) -> bool {
        let Registers { rdi, rsi, rdx, r10, r8, r9, rsp, rip, .. } = self.registers;
        let (number, arguments) = (self.registers.orig_rax.cast_signed(), [rdi, rsi, rdx, r10, r8, r9]);
        let call = Sleeping { number, arguments, stack_pointer: rsp, returns_to: rip };
        restart(&self.registers).is_some()
            && rank(self.target.pid(), &call, self.target.pidfd()).is_some()
            && !crate::signal_frame::is_in_handler(process, rsp)
    }

    fn status(&self) -> Result<Status, Refusal> {
        let pid = self.target.pid();
        Status::of_thread(pid, self.tid).ok_or(Refusal::Gone(pid))
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
    pub(crate) fn call(&self, entry: u64, fit: &Fit) -> Result<i64, Refusal> {
        let Fit { block, .. } = fit;
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
        self.finish(fit)
    }

    /// Takes back a call that has ended in a fault, as where the object is unloaded at this moment.
    fn take_back(&self, Fit { mask, .. }: &Fit) -> Refusal {
        let registers = resumed(&self.registers, Duration::ZERO);
        let restored = self.tracee.set_registers(&registers).and_then(|()| self.tracee.set_mask(*mask));
        match restored {
            Ok(()) => Refusal::Fault(self.target.pid()),
            Err(error) => self.target.failed("PTRACE_SETREGS")(error),
        }
    }

    /// Releases the thread after its call. The system call that was interrupted continues; `waited` of its
    /// time-out has passed.
    pub(crate) fn give_back(
        self,
        entry: u64,
        fit: &Fit,
        waited: impl FnOnce() -> Duration,
    ) -> Result<(), Refusal> {
        if !self.is_waiting(entry, fit.block)? {
            return self.tracee.detach().map_err(self.target.failed("PTRACE_DETACH"));
        }
        self.tracee.set_mask(fit.mask).map_err(self.target.failed("PTRACE_SETSIGMASK"))?;
        self.let_go(waited())
    }

    /// Whether it is in the entry still, and waits to be restored. One that has waited for too long restores
    /// itself, and overwrites the block.
    fn is_waiting(&self, entry: u64, block: u64) -> Result<bool, Refusal> {
        let registers = self.tracee.registers().map_err(self.target.failed("PTRACE_GETREGS"))?;
        let [_, progress] = self.read(block).map_err(self.target.failed("process_vm_readv"))?;
        let is_in_entry = registers.rip.wrapping_sub(entry) < ENTRY && registers.rbx == block;
        Ok(is_in_entry && progress == WAITING)
    }

    /// Releases the thread without a call. If the stop would make its system call return, the system call is
    /// repeated; `waited` of its time-out has passed.
    pub(crate) fn leave(self, waited: Duration) -> Result<(), Refusal> {
        let is_in_vain = is_64_bit(&self.registers) && is_interrupted_in_vain(&self.registers);
        if is_in_vain && !self.status()?.is_signalled() { self.let_go(waited) } else { Ok(()) }
    }

    fn let_go(self, waited: Duration) -> Result<(), Refusal> {
        let Self { target, tracee, registers, .. } = self;
        let registers = resumed(&registers, waited);
        tracee.set_registers(&registers).map_err(target.failed("PTRACE_SETREGS"))?;
        tracee.detach().map_err(target.failed("PTRACE_DETACH"))
    }

    /// Lets it run until the function has returned, and stops it then. Gives the function's result.
    fn finish(&self, fit: &Fit) -> Result<i64, Refusal> {
        let block = fit.block;
        let pid = self.target.pid();
        let failed = |call| self.target.failed(call);
        let until = Instant::now() + PATIENCE;
        self.tracee.run().map_err(failed("PTRACE_CONT"))?;
        let result = loop {
            std::thread::sleep(GLANCE);
            // Where its process is stopped, it runs all the same, as one whose recorder is killed.
            if let Some(stop) = self.tracee.stopped().map_err(|_| Refusal::Gone(pid))? {
                if stop == Stop::Signal && self.tracee.take_fault() {
                    return Err(self.take_back(fit));
                }
                self.tracee.run().map_err(failed("PTRACE_CONT"))?;
            }
            let [result, progress] = self.read(block).map_err(failed("process_vm_readv"))?;
            if progress != CALLING {
                break result.cast_signed();
            }
            if Instant::now() > until {
                return Err(Refusal::Late(pid));
            }
        };
        self.tracee.interrupt().map_err(failed("PTRACE_INTERRUPT"))?;
        while self.stop(until)? != Stop::Interrupted {
            self.tracee.run().map_err(failed("PTRACE_CONT"))?;
        }
        Ok(result)
    }

    /// Waits for the next stop. All signals are blocked except those that stop the process or change its
    /// user, and those of faults, which can no longer occur.
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
        let pid = self.target.pid().0;
        // SAFETY: the kernel reads `saved`, which is live and plain data; the other address is the target's.
        let written = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(written, size_of::<Saved>())
    }

    /// The block's [`Saved::result`] and [`Saved::progress`].
    fn read(&self, block: u64) -> std::io::Result<[u64; 2]> {
        const _: () = assert!(at::PROGRESS == at::RESULT + size_of::<u64>());
        let mut read = [0_u64; 2];
        let local = libc::iovec { iov_base: (&raw mut read).cast(), iov_len: size_of_val(&read) };
        let address = block + at::RESULT as u64;
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of_val(&read) };
        let pid = self.target.pid().0;
        // SAFETY: the kernel writes to `read`, for which all bytes are values.
        let len = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(len, size_of_val(&read)).map(|()| read)
    }
}

fn whole(done: isize, wanted: usize) -> std::io::Result<()> {
    match usize::try_from(done) {
        Ok(done) if done == wanted => Ok(()),
        Ok(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(std::io::Error::last_os_error()),
    }
}
