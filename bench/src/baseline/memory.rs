//! Where the schemes put their events: bytes that writers share, guarded by nothing but what the schemes hand
//! out.

use crate::event::{Event, LENGTH};
use crate::geometry::Geometry;
use core::cell::UnsafeCell;

/// Takes events at offsets. A trait, so that K42's scheme can be checked with memory that loom watches.
pub trait Memory {
    /// Stores an event.
    ///
    /// # Safety
    /// The caller alone may write `offset .. offset + LENGTH` now, and that lies in the memory.
    unsafe fn put(&self, offset: usize, event: Event);

    /// Marks space that is too small for an event, with a header if there is room for one.
    ///
    /// # Safety
    /// Only the caller may write `offset .. offset + 4` now, and that lies in the memory.
    unsafe fn fill(&self, offset: usize);
}

/// Ordinary memory, every page of it touched.
pub struct Bytes(Box<[UnsafeCell<u8>]>);

// SAFETY: a writer owns the bytes that it writes (`Memory`'s contract), a reader has exclusive access to the
// memory (`&mut`).
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Memory for a buffer.
    pub fn new(geometry: Geometry) -> Self {
        // Not zero: the allocator would give pages that do not exist before the first store.
        Self((0..geometry.total()).map(|_| UnsafeCell::new(0xff)).collect())
    }

    /// The events between two positions that are at most the buffer's size apart.
    pub fn events(&mut self, geometry: Geometry, from: u64, to: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut position = geometry.place(from, LENGTH as u64);
        while position < to {
            events.push(self.get(geometry.offset(position)));
            position = geometry.place(position + LENGTH as u64, LENGTH as u64);
        }
        events
    }

    fn get(&mut self, offset: usize) -> Event {
        let mut bytes = [0; LENGTH];
        for (byte, cell) in bytes.iter_mut().zip(&mut self.0[offset..offset + LENGTH]) {
            *byte = *cell.get_mut();
        }
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[at + i]));
        let tid = u32::from_le_bytes(core::array::from_fn(|i| bytes[8 + i]));
        Event { header: word(0), tid, values: [word(12), word(20)] }
    }
}

impl Memory for Bytes {
    #[inline(always)]
    unsafe fn put(&self, offset: usize, event: Event) {
        debug_assert!(offset + LENGTH <= self.0.len());
        // SAFETY: in the memory and this caller's alone, by the contract; UnsafeCell<u8> is a byte that may
        // change.
        unsafe {
            let at = self.0.as_ptr().add(offset).cast::<u8>().cast_mut();
            at.cast::<u64>().write_unaligned(event.header);
            at.add(8).cast::<u32>().write_unaligned(event.tid);
            at.add(12).cast::<u64>().write_unaligned(event.values[0]);
            at.add(20).cast::<u64>().write_unaligned(event.values[1]);
        }
    }

    unsafe fn fill(&self, offset: usize) {
        debug_assert!(offset + 4 <= self.0.len());
        // SAFETY: as in `put`.
        unsafe { self.0.as_ptr().add(offset).cast::<u32>().cast_mut().write_unaligned(0) }
    }
}
