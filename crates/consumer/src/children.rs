//! The recorder's side of the page on which children without a region count their losses
//! (`tracewing_abi::children`).

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use tracewing_abi::children::{Children, SIZE};
use tracewing_abi::region::Loss;

use crate::Error;
use crate::memory::SharedMemory;

/// The page of one region.
pub(crate) struct ChildLosses(SharedMemory);

impl ChildLosses {
    /// A page without losses, with these major classes enabled.
    ///
    /// # Errors
    /// The kernel refuses the file or the mapping.
    pub(crate) fn new(majors: u64) -> Result<Self, Error> {
        let this = Self(SharedMemory::named("tracewing-children", SIZE)?);
        this.set_majors(majors);
        this.page().open();
        Ok(this)
    }

    fn page(&self) -> &Children {
        // SAFETY: the mapping is as large, aligned to a page, and lives as long as `self`; the page consists
        // of atomics, for which any bytes are valid, and which other processes may change at any time.
        unsafe { self.0.base().cast::<Children>().as_ref() }
    }

    pub(crate) fn set_majors(&self, majors: u64) {
        self.page().majors.store(majors, Relaxed); // a mask, which orders nothing
    }

    pub(crate) fn close(&self) {
        self.page().close();
    }

    pub(crate) fn lost(&self) -> [u64; Loss::COUNT] {
        self.page().lost()
    }

    /// A descriptor to be passed to a program.
    ///
    /// # Errors
    /// There are too many open files.
    pub(crate) fn for_writers(&self) -> std::io::Result<OwnedFd> {
        self.0.for_writers()
    }

    /// Whether a process can write to it.
    pub(crate) fn has_writers(&self) -> bool {
        self.0.has_writers()
    }
}
