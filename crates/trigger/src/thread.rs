//! One pointer per thread, reached without a call and without allocating: `thread_local!` may allocate at a
//! thread's first access when the code lies in a library loaded by `dlopen`, and that access may be in a
//! signal handler. So it is declared in assembly with the initial-exec model, at a constant distance from the
//! thread pointer; the loader finds room for its eight bytes in the surplus that the C library reserves for
//! that purpose.
//!
//! The symbol is hidden: each copy of this crate has its own. Only [`current`] uses it, which is not generic
//! and thus always in the same object as the symbol.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ffi::c_void;

global_asm!(
    ".pushsection .tbss.tracewing_trigger, \"awT\", @nobits",
    ".balign 8",
    ".globl __tracewing_trigger_thread_1",
    ".hidden __tracewing_trigger_thread_1",
    ".type __tracewing_trigger_thread_1, @object",
    ".size __tracewing_trigger_thread_1, 8",
    "__tracewing_trigger_thread_1:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's own pointer: null at its start.
#[inline(never)]
pub(crate) fn current() -> *const Cell<*const c_void> {
    let block;
    // SAFETY: adds a constant from the global offset table to the thread pointer, as the platform's
    // thread-local storage requires; no memory is written.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {block}, qword ptr fs:[0]",
            "add {block}, qword ptr [rip + __tracewing_trigger_thread_1@GOTTPOFF]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {distance}, :gottprel:__tracewing_trigger_thread_1",
            "ldr {distance}, [{distance}, #:gottprel_lo12:__tracewing_trigger_thread_1]",
            "mrs {block}, tpidr_el0",
            "add {block}, {block}, {distance}",
            distance = out(reg) _,
            block = lateout(reg) block,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    block
}
