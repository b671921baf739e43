//! Recently described numbers: a table that all threads share, without a lock.
//!
//! A number is described again after a sub-buffer was opened, so that a flight recorder, which overwrites
//! whole ones, keeps the description as long as the events that need it; after a recording has begun, or has
//! changed its rules; in a forked child; and after an object was unloaded, since another one may be at its
//! addresses.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tracewing::dynamic::opened;

/// Places in a table; each number may be in [`PLACES`] of them, and one that finds none is described every
/// time.
const SIZE: usize = 4096;
const PLACES: usize = 8;

/// In a cache line that is seldom written, since every recorded event reads it.
#[repr(align(64))]
struct Round(AtomicU32);

static ROUND: Round = Round(AtomicU32::new(0));

/// Makes every number new. May be called in a forked child.
pub(crate) fn forget_all() {
    ROUND.0.fetch_add(1, Relaxed);
}

/// A number, never 0, that changes as soon as everything must be described again: both parts only grow.
#[inline(always)]
pub(crate) fn round() -> u64 {
    const NOT_0: u64 = 1 << 32;
    NOT_0 | u64::from(ROUND.0.load(Relaxed).wrapping_add(opened())) // a thread sees its own; others order nothing by it
}

/// A table of recent numbers.
pub(crate) struct Seen([Place; SIZE]);

struct Place {
    /// 0: free.
    number: AtomicU64,
    /// The round in which it was last described; 0: never.
    described: AtomicU64,
}

impl Seen {
    pub(crate) const fn new() -> Self {
        Self([const { Place { number: AtomicU64::new(0), described: AtomicU64::new(0) } }; SIZE])
    }

    /// Whether `number`, which is not 0, must be described now. Of several threads that ask at the same time,
    /// one gets `true`, or sometimes two if the number is new. The table guards no other memory, and
    /// therefore needs no ordering.
    pub(crate) fn is_due(&self, number: u64) -> bool {
        let now = round(); // before the description: that may open a sub-buffer
        let first = number as usize;
        for place in (0..PLACES).map(|step| &self.0[first.wrapping_add(step) % SIZE]) {
            let found =
                place.number.compare_exchange(0, number, Relaxed, Relaxed).unwrap_or_else(|found| found);
            if found == 0 || found == number {
                let described = place.described.load(Relaxed);
                return described != now
                    && place.described.compare_exchange(described, now, Relaxed, Relaxed).is_ok();
            }
        }
        true
    }
}
