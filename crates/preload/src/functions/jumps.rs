//! Functions that are left without returning while their return addresses are replaced: by `longjmp`, by an
//! exception, or because their thread ends.
//!
//! An unwinder has to find the stack unchanged, so all addresses are restored first. The next function that
//! begins, or the handler of a C++ exception, replaces them again: the frames between the throw and that
//! point are gone. The C library cancels threads by internal calls that cannot be intercepted here: its
//! unwinder ends at the first such function.

use core::arch::naked_asm;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use tracewing::Event as _;

use super::fentry::{hook, record};
use super::registers::saved;
use super::{Exit, thread};

/// Exports functions that call a function with the stack pointer and the value that `$second` loads into rsi,
/// and then jump to the next function of that name.
macro_rules! before {
    ($($name:ident, $next:ident: $call:path, [$($second:literal),*];)*) => {
        $(
            static $next: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

            /// # Safety
            /// As for the function of this name.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "cmp qword ptr [rip + {next}], 0",
                    "jne 2f",
                    "call {find_all}", // the library has not been loaded for good
                    "mov rdi, [rsp + 16]",
                    "2:",
                    $($second,)*
                    "lea rdi, [rsp + 24]",
                    "call {call}",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp qword ptr [rip + {next}]",
                    call = sym $call,
                    next = sym $next,
                    find_all = sym find_all,
                )
            }
        )*

        /// Finds the next functions. Must be called while the library is loaded.
        pub(super) extern "C" fn find_all() {
            $(find(&$next, stringify!($name));)*
        }
    };
}

// The place of the stack pointer in a `jmp_buf`, and its encoding there: glibc's jmpbuf-offsets.h and
// pointer_guard.h.
before! {
    longjmp, LONGJMP: jumps, ["mov rsi, [rdi + 48]", "ror rsi, 17", "xor rsi, fs:[48]"];
    _longjmp, LONGJMP_BSD: jumps, ["mov rsi, [rdi + 48]", "ror rsi, 17", "xor rsi, fs:[48]"];
    siglongjmp, SIGLONGJMP: jumps, ["mov rsi, [rdi + 48]", "ror rsi, 17", "xor rsi, fs:[48]"];
    __longjmp_chk, LONGJMP_CHECKED: jumps, ["mov rsi, [rdi + 48]", "ror rsi, 17", "xor rsi, fs:[48]"];
    _Unwind_RaiseException, RAISE: unwinds, [];
    _Unwind_Resume, RESUME: unwinds, [];
    _Unwind_Resume_or_Rethrow, RETHROW: unwinds, [];
    _Unwind_ForcedUnwind, FORCED: unwinds, [];
    pthread_exit, EXIT: unwinds, [];
    __cxa_begin_catch, CATCH: catches, [];
}

fn find(next: &AtomicPtr<c_void>, name: &str) {
    let mut text = [0; 32];
    text[..name.len()].copy_from_slice(name.as_bytes());
    if let Ok(name) = CStr::from_bytes_until_nul(&text) {
        // SAFETY: a NUL-terminated name.
        next.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }, Relaxed);
    }
}

/// The thread continues with the stack pointer `to`.
extern "C" fn jumps(from: usize, to: usize) {
    if let Some(shadow) = thread::shadow() {
        shadow.leave(from..to, |function| record(Exit::class(), function));
    }
}

/// The stack is about to be unwound from here.
extern "C" fn unwinds(from: usize) {
    if let Some(shadow) = thread::shadow() {
        // SAFETY: the caller is on that stack.
        unsafe { shadow.restore(from, hook()) };
    }
}

/// The caller at `from` catches an exception.
extern "C" fn catches(from: usize) {
    if let Some(shadow) = thread::shadow().filter(|shadow| shadow.is_restored()) {
        // SAFETY: the caller is on that stack.
        saved(|| unsafe { shadow.replace(from, hook(), |function| record(Exit::class(), function)) });
    }
}
