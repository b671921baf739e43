//! A sequence lock around the state that a writer reads and others may change (whether tracing is on, the
//! clock's base), and a locked compare-and-swap to reserve: paper 000, table 2, column "sequence lock and
//! CAS", which RCU and the local compare-and-swap replaced. DTrace protects its clock this way. A writer that
//! interrupts the control's owner would wait permanently; the paper gives that deadlock as the reason against
//! it.

use crate::Scheme;
use crate::cas::{CasBuffer, Locked};
use crate::event::{Event, now};
use crate::geometry::Geometry;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A buffer whose writers read their control data under a sequence lock.
pub struct SeqlockBuffer {
    /// Odd while the control data change.
    sequence: AtomicU64,
    enabled: AtomicU64,
    /// Added to the time stamp counter.
    clock_base: AtomicU64,
    buffer: CasBuffer<Locked>,
}

impl SeqlockBuffer {
    /// An empty buffer, switched on.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            enabled: AtomicU64::new(1),
            clock_base: AtomicU64::new(0),
            buffer: CasBuffer::new(geometry),
        }
    }

    /// Changes the control data; one caller at a time.
    pub fn control(&self, enabled: bool, clock_base: u64) {
        self.sequence.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `read`: a reader that sees one of the new values sees the odd sequence.
        fence(Ordering::Release);
        self.enabled.store(enabled.into(), Ordering::Relaxed);
        self.clock_base.store(clock_base, Ordering::Relaxed);
        // Release: a reader that acquires the even sequence sees the new values.
        self.sequence.fetch_add(1, Ordering::Release);
    }

    /// The time; `None` if tracing is off.
    #[inline(always)]
    fn read(&self) -> Option<u64> {
        loop {
            // Acquire: pairs with the last store of `control`.
            let before = self.sequence.load(Ordering::Acquire);
            let enabled = self.enabled.load(Ordering::Relaxed) != 0;
            let time = now().wrapping_add(self.clock_base.load(Ordering::Relaxed));
            // Acquire: pairs with the fence of `control`.
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                return enabled.then_some(time);
            }
            core::hint::spin_loop();
        }
    }

    /// The events that it holds, if it has not wrapped; `None` if some reserved byte was never committed.
    pub fn into_events(self) -> Option<Vec<Event>> {
        self.buffer.into_events()
    }
}

impl Scheme for SeqlockBuffer {
    #[inline(always)]
    fn log(&self, tid: u32, values: [u64; 2]) {
        if let Some(reserved) = self.buffer.reserve(|| self.read()) {
            self.buffer.write(reserved, tid, values);
        }
    }
}
