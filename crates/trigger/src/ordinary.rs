//! The functions of `cold` as ordinary calls: where sites are compiled out, and on processors other than
//! x86-64.

use core::mem::{MaybeUninit, offset_of};

use crate::Callee;

/// Runs `run`, the action of a site that is on, out of line.
#[cold]
#[inline(never)]
pub fn cold<F: FnOnce()>(run: F) {
    run();
}

/// Words after the address of their site.
#[repr(C)]
struct Located<const COUNT: usize> {
    site: usize,
    words: [MaybeUninit<u64>; COUNT],
}

/// Stands for the address of the code that calls it, which is not known: 0.
#[inline(always)]
pub fn here() -> usize {
    0
}

/// Calls `T`'s function with `first` and the address of `words`, which lie after the site's address.
///
/// # Safety
/// As for the function.
#[inline(always)]
pub unsafe fn cold_call<T: Callee, const COUNT: usize>(first: *const (), words: [MaybeUninit<u64>; COUNT]) {
    let located = Located { site: here(), words };
    let words = (&raw const located).cast::<u8>().wrapping_add(offset_of!(Located<COUNT>, words));
    // SAFETY: the caller's; the site's address lies before the words, in the same object.
    unsafe { T::call(first, words) }
}

/// Calls `T`'s function with these arguments.
///
/// # Safety
/// As for the function.
#[inline(always)]
pub unsafe fn cold_call_at<T: Callee>(first: *const (), second: *const u8) {
    // SAFETY: the caller's.
    unsafe { T::call(first, second) }
}
