//! How an interrupted system call continues.
//!
//! An interrupted call returns one of the kernel's internal codes, for which the kernel repeats it when no
//! handler runs: with its arguments, or, where it has a time-out, from the time that is left
//! (`restart_syscall`). `epoll_wait` and some others return `EINTR` to the program instead (`signal(7)`,
//! "Interruption of system calls"): these are repeated here.

use std::time::Duration;

use tracewing_abi::attach::{FLAGS, Saved};

use crate::tracee::Registers;

/// Codes of interrupted calls (Linux, include/linux/errno.h).
const RESTART_SYS: i64 = -512;
const RESTART_NO_INTR: i64 = -513;
const RESTART_NO_HANDLER: i64 = -514;
const RESTART_BLOCK: i64 = -516;
const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// Bytes of the instruction `syscall`.
const INSTRUCTION: u64 = 2;

/// How the call in which a thread was stopped continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    /// The kernel repeats it.
    Kernel,
    /// It would return `EINTR`, and is repeated here.
    Repeated,
}

/// How a stopped thread's call continues; `None` where it has returned something, or the thread is in none.
pub(crate) fn restart(registers: &Registers) -> Option<Restart> {
    let in_call = registers.orig_rax.cast_signed() >= 0;
    match registers.rax.cast_signed() {
        RESTART_SYS | RESTART_NO_INTR | RESTART_NO_HANDLER | RESTART_BLOCK if in_call => {
            Some(Restart::Kernel)
        }
        INTERRUPTED if in_call => Some(Restart::Repeated),
        _ => None,
    }
}

/// Whether a call returns `EINTR` after every handler, also of those with `SA_RESTART` (signal(7)).
fn returns_after_handlers(registers: &Registers) -> bool {
    matches!(registers.rax.cast_signed(), RESTART_NO_HANDLER | RESTART_BLOCK | INTERRUPTED)
}

/// Whether a call would return `EINTR` that was interrupted for nothing, and has done nothing yet. `close`
/// may have closed its descriptor, the number of which may be another file's when it is repeated.
pub(crate) fn is_interrupted_in_vain(registers: &Registers) -> bool {
    restart(registers) == Some(Restart::Repeated) && registers.orig_rax != libc::SYS_close.cast_unsigned()
}

/// Registers with which a recorder resumes the thread: the kernel then continues as without the stop.
/// `waited` is the time for which a repeated system call has already waited.
pub(crate) fn resumed(registers: &Registers, waited: Duration) -> Registers {
    let mut resumed = *registers;
    if restart(registers) == Some(Restart::Repeated) {
        resumed.rax = registers.orig_rax;
        resumed.rip = registers.rip.wrapping_sub(INSTRUCTION);
        resumed.orig_rax = u64::MAX; // in no call: the kernel repeats nothing
        let time_out = registers.r10 as i32;
        let has_time_out =
            matches!(registers.orig_rax.cast_signed(), libc::SYS_epoll_wait | libc::SYS_epoll_pwait);
        if has_time_out && time_out >= 0 {
            let waited = i32::try_from(waited.as_millis()).unwrap_or(i32::MAX);
            resumed.r10 = time_out.saturating_sub(waited).max(0) as u64;
        }
    }
    resumed
}

/// Registers with which the thread continues without a recorder, in user space: it makes the system call that
/// the kernel would have made, unless a signal that the program handles (`caught`) has arrived meanwhile.
pub(crate) fn alone(registers: &Registers, mask: u64, caught: u64) -> Saved {
    let Registers { r15, r14, r13, r12, rbp, rbx, r10, r9, r8, rdx, rsi, rdi, rsp, .. } = *registers;
    let call = match registers.rax.cast_signed() {
        RESTART_BLOCK => libc::SYS_restart_syscall.cast_unsigned(),
        _ => registers.orig_rax,
    };
    Saved {
        general: [r15, r14, r13, r12, rbp, rbx, r10, r9, r8, call, rdx, rsi, rdi],
        rsp,
        flags: registers.eflags & FLAGS,
        rip: registers.rip.wrapping_sub(INSTRUCTION),
        mask,
        handled: if returns_after_handlers(registers) { caught } else { 0 },
        result: tracewing_abi::attach::UNFINISHED,
        progress: tracewing_abi::attach::CALLING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITED: Duration = Duration::from_millis(30);

    fn interrupted(call: i64, result: i64) -> Registers {
        // SAFETY: all-zero is a valid `user_regs_struct`.
        let zero: Registers = unsafe { std::mem::zeroed() };
        Registers {
            orig_rax: call.cast_unsigned(),
            rax: result.cast_unsigned(),
            rip: 0x1002,
            rsp: 0x8000,
            ..zero
        }
    }

    #[test]
    fn the_kernel_repeats_what_it_can() {
        for code in [RESTART_SYS, RESTART_NO_INTR, RESTART_NO_HANDLER, RESTART_BLOCK] {
            let registers = interrupted(libc::SYS_poll, code);
            assert_eq!(restart(&registers), Some(Restart::Kernel));
            assert_eq!(resumed(&registers, WAITED).rip, 0x1002);
        }
        for (call, result) in [(libc::SYS_poll, 1), (libc::SYS_poll, 0), (-1, RESTART_SYS), (-1, INTERRUPTED)]
        {
            assert_eq!(restart(&interrupted(call, result)), None, "{call} {result}");
        }
    }

    #[test]
    fn a_call_that_would_return_is_repeated() {
        let registers = interrupted(libc::SYS_epoll_wait, INTERRUPTED);
        let resumed = resumed(&registers, WAITED);
        assert_eq!(
            (resumed.rax, resumed.rip, resumed.orig_rax),
            (libc::SYS_epoll_wait as u64, 0x1000, u64::MAX)
        );
        let in_vain = |call, result| is_interrupted_in_vain(&interrupted(call, result));
        assert!(in_vain(libc::SYS_semtimedop, INTERRUPTED));
        assert!(!in_vain(libc::SYS_close, INTERRUPTED) && !in_vain(libc::SYS_semtimedop, -11));
    }

    #[test]
    fn a_time_out_is_what_is_left_of_it() {
        let left = |call, time_out: i32| {
            let registers = Registers { r10: time_out as u32 as u64, ..interrupted(call, INTERRUPTED) };
            resumed(&registers, WAITED).r10 as i32
        };
        for call in [libc::SYS_epoll_wait, libc::SYS_epoll_pwait] {
            assert_eq!([100, 30, 10, -1].map(|time_out| left(call, time_out)), [70, 0, 0, -1]);
        }
        // The same register is the size of a set there.
        assert_eq!(left(libc::SYS_rt_sigtimedwait, 8), 8);
    }

    #[test]
    fn alone_a_thread_makes_the_call_of_the_kernel() {
        let call = |code| alone(&interrupted(libc::SYS_poll, code), 5, 0).general[9].cast_signed();
        assert_eq!(call(RESTART_BLOCK), libc::SYS_restart_syscall);
        assert_eq!(call(RESTART_NO_HANDLER), libc::SYS_poll);
        // It may be repeated after a handler, or not.
        let handled = |code| alone(&interrupted(libc::SYS_read, code), 5, 9).handled;
        assert_eq!(
            [RESTART_SYS, RESTART_NO_INTR, RESTART_NO_HANDLER, RESTART_BLOCK].map(handled),
            [0, 0, 9, 9]
        );
    }
}
