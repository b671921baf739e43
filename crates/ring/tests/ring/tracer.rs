//! Children that the tests step through a restartable sequence, instruction by instruction (ptrace(2)).
//!
//! Every stop aborts a sequence, so plain stepping never reaches its end. [`Tracee::step_inside`] clears
//! `rseq_cs` before each step, which keeps the kernel from seeing a sequence at all, and answers the check
//! before the commit in the kernel's place. [`Tracee::rearm`] puts `rseq_cs` back: what follows is what
//! happens to a thread interrupted at exactly this instruction.

use std::ptr::null_mut;

use tracewing_ring::thread;

use crate::machine;

/// Offset of `rseq_cs` in `struct rseq`.
const RSEQ_CS: u64 = 8;

/// The kernel's description of a sequence (`struct rseq_cs`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// Always 0.
    pub version: u32,
    /// Always 0.
    pub flags: u32,
    /// First instruction.
    pub start: u64,
    /// Length, bytes.
    pub len: u64,
    /// Address at which the thread continues after an abort.
    pub abort: u64,
}

/// A stopped child.
pub struct Tracee {
    pid: i32,
    area: u64,
    /// The sequence that the child is in, and its descriptor's address; children have the parent's addresses.
    pub sequence: Option<(u64, Descriptor)>,
}

/// Stops the calling child for its tracer.
pub fn stop() {
    // SAFETY: stops this process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Makes the calling child traceable by its parent, and stops it.
pub fn accept() {
    // SAFETY: concerns only this process.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) };
    stop();
}

impl Tracee {
    /// A child that has called [`accept`] and is about to run the code after it.
    pub fn new(run: impl FnOnce() -> i32) -> Self {
        let pid = machine::fork(run);
        let status = machine::wait(pid);
        assert!(libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGSTOP, "{status:#x}");
        // When a test panics, its children die with it.
        let kill = libc::PTRACE_O_EXITKILL as usize as *mut u8;
        // SAFETY: an option of the caller's stopped tracee.
        unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, null_mut::<u8>(), kill) };
        let offset = thread::rseq_of_libc().expect("tests skip without rseq");
        let mut this = Self { pid, area: 0, sequence: None };
        this.area = this.registers().fs_base.wrapping_add_signed(offset as i64);
        this
    }

    pub fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: plain data, filled by the kernel for the stopped tracee.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            let got = libc::ptrace(libc::PTRACE_GETREGS, self.pid, null_mut::<u8>(), &mut registers);
            assert_eq!(got, 0);
            registers
        }
    }

    fn set_registers(&self, registers: &libc::user_regs_struct) {
        // SAFETY: as above, in the other direction.
        let set = unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.pid, null_mut::<u8>(), registers) };
        assert_eq!(set, 0);
    }

    fn peek(&self, address: u64) -> u64 {
        // SAFETY: reads the tracee's memory, not ours.
        unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, self.pid, address as *mut u8, null_mut::<u8>()) as u64 }
    }

    fn set_rseq_cs(&self, value: u64) {
        let address = (self.area + RSEQ_CS) as *mut u8;
        // SAFETY: writes the tracee's memory, not ours.
        let set = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, self.pid, address, value as *mut u8) };
        assert_eq!(set, 0);
    }

    /// Runs one instruction as a debugger does; returns the child's status if it has ended.
    pub fn step(&self) -> Option<i32> {
        self.resume(libc::PTRACE_SINGLESTEP, 0);
        let status = machine::wait(self.pid);
        (!libc::WIFSTOPPED(status)).then_some(status)
    }

    /// Steps until the next instruction is the first of a sequence.
    pub fn step_to_sequence(&mut self) {
        loop {
            assert_eq!(self.step(), None, "ended before it came to a sequence");
            let descriptor = self.peek(self.area + RSEQ_CS);
            if descriptor != 0 {
                let word = |index: u64| self.peek(descriptor + 8 * index);
                let (start, len, abort) = (word(1), word(2), word(3));
                self.sequence = Some((descriptor, Descriptor { version: 0, flags: 0, start, len, abort }));
                if self.inside() {
                    return;
                }
            }
        }
    }

    /// Whether the next instruction belongs to the sequence.
    pub fn inside(&self) -> bool {
        let at = self.registers().rip;
        self.sequence.is_some_and(|(_, sequence)| at.wrapping_sub(sequence.start) < sequence.len)
    }

    /// Runs one instruction of the sequence; `false` if it was the last one, the commit.
    pub fn step_inside(&self) -> bool {
        let (_, sequence) = self.sequence.expect("in a sequence");
        let before = self.registers();
        self.set_rseq_cs(0);
        assert_eq!(self.step(), None);
        let at = self.registers().rip;
        if at == sequence.abort {
            // The check before the commit: as if `rseq_cs` had been found unchanged.
            const ZERO_FLAG: u64 = 1 << 6;
            self.set_registers(&libc::user_regs_struct { eflags: before.eflags | ZERO_FLAG, ..before });
            assert_eq!(self.step(), None);
        }
        let inside = self.inside();
        assert!(inside || self.registers().rip == sequence.start + sequence.len, "left before the commit");
        inside
    }

    /// Makes it a sequence again for the kernel, which aborts it if the tracee was inside.
    pub fn rearm(&self) {
        self.set_rseq_cs(self.sequence.expect("in a sequence").0);
    }

    /// Hides the sequence from the kernel, as a probe or displaced stepping does.
    pub fn disarm(&self) {
        self.set_rseq_cs(0);
    }

    fn resume(&self, how: libc::c_uint, signal: i32) {
        let signal = signal as usize as *mut u8;
        // SAFETY: resumes the caller's stopped tracee.
        let resumed = unsafe { libc::ptrace(how, self.pid, null_mut::<u8>(), signal) };
        assert_eq!(resumed, 0);
    }

    /// Resumes the child, beginning with this signal's handler (0: none), and returns its exit code.
    pub fn finish(self, signal: i32) -> i32 {
        self.resume(libc::PTRACE_CONT, signal);
        let status = machine::wait(self.pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    /// Kills the child at its current instruction.
    pub fn kill(self) {
        machine::kill(self.pid);
    }
}
