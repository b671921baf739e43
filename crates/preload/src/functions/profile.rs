//! The C library's own use of `-pg`: it samples the program counter and writes `gmon.out`. That is left out
//! while functions are recorded.
//!
//! Programs start it before any library is ready, including this one, so nothing here is prepared.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracewing_abi::functions::FUNCTIONS_VARIABLE;

/// Whether it was left to the C library, because functions are not recorded.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The C library's function.
fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a NUL-terminated name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!next.is_null()).then_some(next)
}

/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn __monstartup(low: usize, high: usize) {
    if std::env::var_os(FUNCTIONS_VARIABLE).is_none()
        && let Some(next) = next(c"__monstartup")
    {
        HAS_BEGUN.store(true, Relaxed); // for the same thread, or one that it starts
        // SAFETY: the C library's function of this type; its obligations are the caller's.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(usize, usize)>(next)(low, high) }
    }
}

/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn _mcleanup() {
    if HAS_BEGUN.load(Relaxed)
        && let Some(next) = next(c"_mcleanup")
    {
        // SAFETY: as above.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(next)() }
    }
}
