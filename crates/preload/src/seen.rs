//! What was described lately: a table of numbers that is shared by all threads, without a lock.
//!
//! What is known is told again once a sub-buffer was opened, so that a flight recorder, which overwrites
//! whole ones, has it as long as it has what needs it; when a recording has begun, or wants something else;
//! in a forked child; and when an object was unloaded, since another one may be at its addresses.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tracewing::dynamic::opened;

/// Places in a table, of which each number may have [`PLACES`]; whatever finds none is told every time.
const SIZE: usize = 4096;
const PLACES: usize = 8;

/// In a cache line that is seldom written to, since every event that is recorded reads it.
#[repr(align(64))]
struct Round(AtomicU32);

static ROUND: Round = Round(AtomicU32::new(0));

/// All is new from now on. Callable in a forked child.
pub(crate) fn forget_all() {
    ROUND.0.fetch_add(1, Relaxed);
}

/// A number, never 0, that is another one as soon as all is to be told again: both parts only grow.
#[inline(always)]
pub(crate) fn round() -> u64 {
    const NOT_0: u64 = 1 << 32;
    NOT_0 | u64::from(ROUND.0.load(Relaxed).wrapping_add(opened())) // a thread sees its own; others order nothing by it
}

/// A table.
pub(crate) struct Seen([Place; SIZE]);

struct Place {
    /// 0: none yet.
    number: AtomicU64,
    /// In which round it was told last; 0: in none.
    told: AtomicU64,
}

impl Seen {
    pub(crate) const fn new() -> Self {
        Self([const { Place { number: AtomicU64::new(0), told: AtomicU64::new(0) } }; SIZE])
    }

    /// Whether `number`, which is not 0, is to be told now. Of several threads that ask at a time one is told
    /// so, or, when it is new, sometimes two; no other memory goes with the table's, which therefore needs no
    /// ordering.
    pub(crate) fn is_due(&self, number: u64) -> bool {
        let now = round(); // before it is told: that may open a sub-buffer
        let first = number as usize;
        for place in (0..PLACES).map(|step| &self.0[first.wrapping_add(step) % SIZE]) {
            let found =
                place.number.compare_exchange(0, number, Relaxed, Relaxed).unwrap_or_else(|found| found);
            if found == 0 || found == number {
                let told = place.told.load(Relaxed);
                return told != now && place.told.compare_exchange(told, now, Relaxed, Relaxed).is_ok();
            }
        }
        true
    }
}
