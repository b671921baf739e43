//! Per-thread data: the shadow with the replaced return addresses.
//!
//! Declared in assembly, at a constant distance from the thread pointer: `thread_local!` may allocate in a
//! library.

use core::arch::{asm, global_asm};

use super::shadow::Shadow;

global_asm!(
    ".pushsection .tbss.tracewing_functions, \"awT\", @nobits",
    ".balign 8",
    ".globl __tracewing_functions",
    ".hidden __tracewing_functions",
    ".type __tracewing_functions, @object",
    ".size __tracewing_functions, 8",
    "__tracewing_functions:",
    ".zero 8", // the address of the shadow
    ".popsection",
);

/// Distance of the block from the thread pointer.
#[inline(always)]
fn offset() -> isize {
    let offset;
    // SAFETY: loads one constant from the global offset table; no memory is written and no flag changed.
    unsafe {
        asm!(
            "mov {}, qword ptr [rip + __tracewing_functions@GOTTPOFF]",
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    offset
}

/// The thread's shadow, if it has one.
#[inline(always)]
pub(super) fn shadow() -> Option<&'static Shadow> {
    let shadow: *const Shadow;
    // SAFETY: a word of the thread's own: null, or the argument of `set_shadow`.
    unsafe {
        asm!("mov {}, fs:[{}]", out(reg) shadow, in(reg) offset(), options(nostack, preserves_flags, readonly));
        shadow.as_ref()
    }
}

/// Sets the thread's shadow, or none.
pub(super) fn set_shadow(shadow: Option<&'static Shadow>) {
    let shadow = shadow.map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: a word of the thread's own, to which no reference exists; the references in it are valid
    // permanently.
    unsafe {
        asm!("mov fs:[{}], {}", in(reg) offset(), in(reg) shadow, options(nostack, preserves_flags));
    }
}
