//! A gate through which any number of threads go in and out, and which one thread closes and then sees empty.
//!
//! Who goes in counts itself in one of several counters, its own thread's mostly, then looks whether the gate
//! is open, and out again if it is not. Who closes it stores that first, then looks at each counter until it
//! was 0 once, by an atomic addition of 0.
//!
//! Additions to one counter have an order. So of a thread that goes in (`+1`, then look) and the closer
//! (close, then `+0`) one finds the other:
//!
//! - `+1` before `+0`: the closer sees the count, and waits. It then sees 0 only behind that thread's `-1`,
//!   hence after all that the thread did inside.
//! - `+0` before `+1`: the thread sees what the closer did before, finds the gate closed, and goes. It may
//!   find the gate open again, if it was opened since: then all that came before the opening is there, too.
//!
//! A counter that was 0 once after the closing counts, from then on, only threads that find the gate closed;
//! so the counters may be looked at one after the other. How long that takes is bounded by those inside and
//! those that had seen the gate open just before: others do not count themselves at all.
//!
//! No order of accesses to different words is needed beyond that, so nothing here is sequentially consistent.
//! `tests/loom.rs` runs this file through all interleavings.

use tracewing_abi::atomic::{AtomicBool, AtomicU32, Ordering};

/// Counters of a gate.
pub(crate) const SHARDS: usize = if cfg!(loom) { 2 } else { 8 };

/// A counter with a cache line of its own.
#[repr(align(64))]
struct Shard(AtomicU32);

pub(crate) struct Gate {
    open: AtomicBool,
    inside: [Shard; SHARDS],
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self { open: AtomicBool::new(false), inside: core::array::from_fn(|_| Shard(AtomicU32::new(0))) }
    }

    pub(crate) fn open(&self) {
        // Release: pairs with `enter`, for what the opener has prepared inside.
        self.open.store(true, Ordering::Release);
    }

    /// Goes in, if the gate is open; then [`leave`](Self::leave) must follow, with the same shard.
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

    /// Nobody comes in any more, but those that have come are there.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    /// How many are counted in a shard. Of the closer, after [`close`](Self::close).
    pub(crate) fn count(&self, shard: usize) -> u32 {
        // Release: pairs with the acquire in `enter`. Acquire: pairs with the release in `leave`.
        self.inside[shard].0.fetch_add(0, Ordering::AcqRel)
    }
}
