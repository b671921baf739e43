//! Conversion of strings from and to C.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::fmt::Display;

/// A text from C, empty for `NULL`; invalid UTF-8 is replaced.
///
/// # Safety
/// `text` is `NULL` or a string, which stays unchanged.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Cow<'a, str> {
    match text.is_null() {
        true => Cow::Borrowed(""),
        // SAFETY: the caller's.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    }
}

/// Writes a message, truncated to `size` bytes, with a NUL.
///
/// # Safety
/// `to` is `NULL` or points to `size` writable bytes.
pub(crate) unsafe fn write_message(message: &dyn Display, to: *mut c_char, size: usize) {
    if to.is_null() || size == 0 {
        return;
    }
    let message = message.to_string();
    let length = message.floor_char_boundary(size - 1);
    // SAFETY: the caller's; the length is less than that.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(message.as_ptr(), length);
        to.add(length).write(0);
    }
}
