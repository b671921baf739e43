//! `dlclose`, before the C library's: data about what it unloads is no longer valid.

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
