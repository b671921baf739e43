//! What was described lately: a table of numbers that is shared by all threads, without a lock.
//!
//! What is known is told again after a second, so that a flight recorder, whose oldest events are gone, a recording
//! that has begun in between, and one that has lost an event have it, too.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Places in a table, of which each number may have [`PLACES`]; whatever finds none is told every time.
const SIZE: usize = 4096;
const PLACES: usize = 8;

/// Nanoseconds for which a description counts.
const VALID: i64 = 1_000_000_000;

/// Descriptions before this time do not count: those of a recording that has ended, or of the parent process.
static SINCE: AtomicI64 = AtomicI64::new(0);

/// All is new from now on. Callable in a forked child.
pub(crate) fn forget_all() {
    SINCE.store(now(), Relaxed);
}

/// A table.
pub(crate) struct Seen([Place; SIZE]);

struct Place {
    /// 0: none yet.
    number: AtomicU64,
    /// When it was told last.
    at: AtomicI64,
}

impl Seen {
    pub(crate) const fn new() -> Self {
        Self([const { Place { number: AtomicU64::new(0), at: AtomicI64::new(i64::MIN) } }; SIZE])
    }

    /// Whether `number`, which is not 0, is to be told now. Of several threads that ask at a time one is told so, or, when it is
    /// new, sometimes two; no other memory goes with the table's, which therefore needs no ordering.
    pub(crate) fn is_due(&self, number: u64) -> bool {
        let now = now();
        let first = number as usize;
        for place in (0..PLACES).map(|step| &self.0[first.wrapping_add(step) % SIZE]) {
            let found =
                place.number.compare_exchange(0, number, Relaxed, Relaxed).unwrap_or_else(|found| found);
            if found == 0 || found == number {
                let at = place.at.load(Relaxed);
                let is_valid = at > SINCE.load(Relaxed) && now.saturating_sub(at) < VALID;
                return !is_valid && place.at.compare_exchange(at, now, Relaxed, Relaxed).is_ok();
            }
        }
        true
    }
}

/// Nanoseconds of a clock that is cheap to read, and as precise as a tick of the kernel.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
