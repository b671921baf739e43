//! How many sub-buffers this process has opened. It lets callers re-emit definitions once per sub-buffer, so
//! that a flight recorder, which overwrites whole sub-buffers, keeps a definition as long as the events that
//! need it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// In a cache line of its own, since every event that asks reads it.
#[repr(align(64))]
struct Count(AtomicU32);

static OPENED: Count = Count(AtomicU32::new(0));

/// A number that changes whenever a sub-buffer is opened, on any CPU and in any recording.
#[inline(always)]
pub fn opened() -> u32 {
    OPENED.0.load(Relaxed) // a thread sees its own; others order nothing by it
}

/// Notes that a sub-buffer was opened.
pub(crate) fn note() {
    OPENED.0.fetch_add(1, Relaxed);
}
