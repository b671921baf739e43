//! `dlclose`, in front of the C library's: of what it has unloaded, nothing that was known is true any more.

use core::ffi::{c_int, c_void};

use crate::next::pass_on;
use crate::{functions, seen};

/// # Safety
/// As for `dlclose`.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn dlclose(object: *mut c_void) -> c_int {
    let answer = pass_on!(DLCLOSE(object));
    functions::forget_unloaded();
    seen::forget_all();
    answer
}
