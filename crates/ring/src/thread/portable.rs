//! The thread's block through the standard library.
//!
//! In a library loaded by `dlopen` a thread's first access may allocate, which a signal handler must not.

use super::Mark;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

std::thread_local! {
    static MARK: Mark = const { Mark::new() };
}

/// Runs `use_it` on the calling thread's block.
pub fn with<R>(use_it: impl FnOnce(&Mark) -> R) -> R {
    MARK.with(use_it)
}

/// Adds one to a number in the calling thread's own block, and gives what it was: a signal handler cannot
/// come between.
#[inline(always)]
pub fn count(number: &AtomicU64) -> u64 {
    number.fetch_add(1, Relaxed)
}

/// Without the sequences of protocol `Publish` there is no use for a registration.
pub fn rseq_of_libc() -> Option<isize> {
    None
}

/// Without the sequences of protocol `Publish` nobody asks.
pub fn entry_offset(_slot: usize) -> Option<isize> {
    None
}
