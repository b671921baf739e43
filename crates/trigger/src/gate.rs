//! A gate that any number of threads enter and leave; one thread closes it and then waits until it is empty.
//!
//! An entering thread increments one of several counters, usually its own, then checks whether the gate is
//! open, and leaves again if it is not. The closing thread first marks the gate closed, then polls each
//! counter, by an atomic addition of 0, until it was 0 once.
//!
//! Additions to one counter are ordered. So between a thread that enters (`+1`, then check) and the closer
//! (close, then `+0`), one sees the other:
//!
//! - `+1` before `+0`: the closer sees the count, and waits. It then sees 0 only after that thread's `-1`,
//!   hence after everything that the thread did inside.
//! - `+0` before `+1`: the thread sees everything that the closer did before, finds the gate closed, and
//!   leaves. It may find the gate open again, if it was opened since: then everything before the opening is
//!   visible, too.
//!
//! Once a counter was 0 after the closing, it counts only threads that find the gate closed; so the counters
//! may be polled one after the other. The duration is bounded by the threads inside and those that had seen
//! the gate open just before: other threads do not count themselves at all.
//!
//! Accesses to different words need no further order, so nothing here is sequentially consistent.
//! `tests/loom.rs` runs this file through all interleavings.

use tracewing_abi::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of counters of a gate.
pub(crate) const SHARDS: usize = if cfg!(loom) { 2 } else { 8 };

/// A counter in a cache line of its own.
#[repr(align(64))]
struct Shard(AtomicU32);

pub(crate) struct Gate {
    open: AtomicBool,
    inside: [Shard; SHARDS],
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { open: AtomicBool::new(false), inside: core::array::from_fn(|_| Shard(AtomicU32::new(0))) }
    }

    pub(crate) fn open(&self) {
        // Release: pairs with `enter`, for what the opener prepared inside.
        self.open.store(true, Ordering::Release);
    }

    /// Enters if the gate is open; then [`leave`](Self::leave) must follow, with the same shard.
    #[inline]
    pub(crate) fn enter(&self, shard: usize) -> bool {
        if !self.open.load(Ordering::Relaxed) {
            return false;
        }
        // Acquire: pairs with the release in `count`, so that the closing before it is seen below.
        self.inside[shard].0.fetch_add(1, Ordering::Acquire);
        // Acquire: pairs with `open`.
        if self.open.load(Ordering::Acquire) {
            return true;
        }
        self.leave(shard);
        false
    }

    #[inline]
    pub(crate) fn leave(&self, shard: usize) {
        // Release: pairs with the acquire in `count`.
        self.inside[shard].0.fetch_sub(1, Ordering::Release);
    }

    /// Closes the gate to new threads; threads inside stay inside.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    /// Number of threads counted in a shard. For the closer, after [`close`](Self::close).
    pub(crate) fn count(&self, shard: usize) -> u32 {
        // Release: pairs with the acquire in `enter`. Acquire: pairs with the release in `leave`.
        self.inside[shard].0.fetch_add(0, Ordering::AcqRel)
    }
}
