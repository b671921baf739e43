//! A page beside a region: where children count what they lose that have not got the region by `fork`, and
//! none of their own.
//!
//! It is a file of its own, of which nothing leads to the region's. What a child writes here can say
//! something about losses of children, and nothing else.

use crate::atomic::Ordering::Relaxed;
use crate::atomic::{AtomicU32, AtomicU64};
use crate::region::{Loss, PAGE, STATE_CLOSED, STATE_OPEN};

/// Bytes of the file.
pub const SIZE: usize = PAGE;

/// What lies in the page; all zero until the recorder has begun it.
#[derive(Default)]
#[cfg_attr(not(loom), repr(C))]
pub struct Children {
    /// As [`RegionHeader::state`](crate::region::RegionHeader::state), which children do not see.
    pub state: AtomicU32,
    _pad: u32,
    /// As [`RegionHeader::majors`](crate::region::RegionHeader::majors).
    pub majors: AtomicU64,
    /// Events lost by children, cumulative, never reset; a counter per [`Loss`].
    pub lost: [AtomicU64; Loss::COUNT],
}

const _: () = assert!(size_of::<Children>() <= SIZE);

impl Children {
    /// The recorder has begun to look at it.
    pub fn open(&self) {
        self.state.store(STATE_OPEN, Relaxed); // orders nothing: the other words are counters, and a wish
    }

    /// The recorder has stopped looking at it.
    pub fn close(&self) {
        self.state.store(STATE_CLOSED, Relaxed);
    }

    /// Whether the recorder looks at it.
    pub fn is_open(&self) -> bool {
        self.state.load(Relaxed) == STATE_OPEN
    }

    /// Counts a lost event.
    pub fn count(&self, loss: Loss) {
        self.lost[loss as usize].fetch_add(1, Relaxed);
    }

    /// The counters.
    pub fn lost(&self) -> [u64; Loss::COUNT] {
        Loss::ALL.map(|loss| self.lost[loss as usize].load(Relaxed))
    }
}
