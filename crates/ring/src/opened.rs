//! How many sub-buffers this process has opened: for who tells something once in each, so that a flight
//! recorder, which overwrites whole sub-buffers, has it as long as it has what needs it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// In a cache line that nobody else writes to, since every event that asks reads it.
#[repr(align(64))]
struct Count(AtomicU32);

static OPENED: Count = Count(AtomicU32::new(0));

/// A number that is another one after a sub-buffer was opened, on whatever CPU and in whatever recording.
#[inline(always)]
pub fn opened() -> u32 {
    OPENED.0.load(Relaxed) // a thread sees its own; others order nothing by it
}

/// A sub-buffer is open.
pub(crate) fn note() {
    OPENED.0.fetch_add(1, Relaxed);
}
