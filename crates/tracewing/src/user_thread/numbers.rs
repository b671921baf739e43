//! Numbers that are unique in the process. Each thread takes them in blocks, so that threads seldom meet.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracewing_ring::thread;

/// Number of ids that a thread takes at a time: a block. The first one of a block is never used.
pub(super) const BLOCK: u64 = 64;
/// In a thread's block of memory: which of a block's numbers is next, and above that the block, counted from
/// 1.
const WHICH: u32 = 16;

/// The next number of the calling thread, whose own `next` is; `blocks` counts those that threads have taken.
#[inline]
pub(super) fn next(blocks: &AtomicU64, next: &AtomicU64) -> NonZeroU64 {
    let count = thread::count(next);
    let number = match (count >> WHICH, count % (1 << WHICH)) {
        (block @ 1.., which @ 1..BLOCK) => (block - 1) * BLOCK + which,
        // A signal handler that interrupts this takes a block of its own; the store below forgets the rest of
        // that block.
        _ => {
            let block = blocks.fetch_add(1, Relaxed) + 1;
            next.store(block << WHICH | 2, Relaxed);
            (block - 1) * BLOCK + 1
        }
    };
    NonZeroU64::new(number).expect("a count that starts at 1 does not reach 2^64")
}
