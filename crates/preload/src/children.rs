//! `vfork`, `clone`, `pthread_setname_np`, `prctl` and `syscall`, before the C library's: the crate
//! `tracewing`, which defines them in programs that link it, has to notice children that run in their
//! parent's memory, names of threads, and filters for system calls.

use core::arch::naked_asm;
use core::ffi::{c_int, c_long};

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

/// # Safety
/// As for `pthread_setname_np`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn pthread_setname_np() -> c_int {
    naked_asm!("jmp {}", sym tracewing::dynamic::children::pthread_setname_np)
}

/// # Safety
/// As for `prctl`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn prctl() -> c_int {
    naked_asm!("jmp {}", sym tracewing::dynamic::children::prctl)
}

/// # Safety
/// As for `syscall`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn syscall() -> c_long {
    naked_asm!("jmp {}", sym tracewing::dynamic::children::syscall)
}
