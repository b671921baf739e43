//! `vfork` and `clone`, in front of the C library's: the crate `tracewing`, which defines them in programs that link it, has
//! to notice children that run on their parent's memory.

use core::arch::naked_asm;
use core::ffi::c_int;

/// # Safety
/// As for `vfork`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn vfork() -> c_int {
    naked_asm!("jmp {}", sym tracewing::dynamic::children::vfork)
}

/// # Safety
/// As for `clone`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn clone() -> c_int {
    naked_asm!("jmp {}", sym tracewing::dynamic::children::clone)
}
