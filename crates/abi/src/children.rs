//! A page that accompanies a region. Children that did not inherit the region by `fork` and have none of
//! their own count their lost events here.
//!
//! It is a separate file from which the region cannot be reached. What a child writes here can only affect
//! the numbers of events that children lose.

use crate::atomic::Ordering::Relaxed;
use crate::atomic::{AtomicU32, AtomicU64};
use crate::region::{Loss, PAGE, STATE_CLOSED, STATE_OPEN};

/// Bytes of the file.
pub const SIZE: usize = PAGE;

/// The page's contents; all zero until the recorder opens it.
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
    /// Called when the recorder begins to read the page.
    pub fn open(&self) {
        self.state.store(STATE_OPEN, Relaxed); // orders nothing: the other words are counters, and a mask
    }

    /// Called when the recorder has stopped reading the page.
    pub fn close(&self) {
        self.state.store(STATE_CLOSED, Relaxed);
    }

    /// Whether the recorder reads the page.
    pub fn is_open(&self) -> bool {
        self.state.load(Relaxed) == STATE_OPEN
    }

    /// Counts a lost event.
    pub fn count(&self, loss: Loss) {
        self.lost[loss as usize].fetch_add(1, Relaxed);
    }

    /// Number of lost events by cause, in the order of [`Loss::ALL`].
    pub fn lost(&self) -> [u64; Loss::COUNT] {
        Loss::ALL.map(|loss| self.lost[loss as usize].load(Relaxed))
    }
}
