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

/// Increments a number in the calling thread's own block and returns its old value; a signal handler cannot
/// intervene.
#[inline(always)]
pub fn count(number: &AtomicU64) -> u64 {
    number.fetch_add(1, Relaxed)
}

/// `None`: without the sequences of protocol `Publish` a registration is useless.
pub fn rseq_of_libc() -> Option<isize> {
    None
}

/// `None`: only the sequences of protocol `Publish` need the offset.
pub fn entry_offset(_slot: usize) -> Option<isize> {
    None
}
