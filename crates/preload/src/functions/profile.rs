//! What programs built with `-pg` have the C library do besides: sample the program counter and write `gmon.out`. While functions
//! are recorded, nobody does.

use core::ffi::c_void;
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static BEGIN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static END: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Leaves it to the C library: nobody has asked for functions.
pub(super) fn pass_on() {
    for (next, name) in [(&BEGIN, c"__monstartup"), (&END, c"_mcleanup")] {
        // SAFETY: a NUL-terminated name.
        next.store(unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }, Relaxed);
    }
}

/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn __monstartup(low: usize, high: usize) {
    let next = BEGIN.load(Relaxed); // of code, which nobody has written
    if !next.is_null() {
        // SAFETY: the C library's function of this type; its obligations are the caller's.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(usize, usize)>(next)(low, high) }
    }
}

/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn _mcleanup() {
    let next = END.load(Relaxed);
    if !next.is_null() {
        // SAFETY: as above.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(next)() }
    }
}
