//! The same buffer protected by a mutex: what a program does that writes its own log. Paper 000, table 2,
//! uses a spin lock with interrupts off, paper 002, table 6, interrupts off alone; user space has neither,
//! and a mutex is at least as cheap as masking signals by a system call. It must not be used in signal
//! handlers.

use crate::Scheme;
use crate::event::{Event, LENGTH, now};
use crate::geometry::Geometry;
use crate::memory::{Bytes, Memory};
use std::sync::{Mutex, PoisonError};

/// A buffer with one lock.
pub struct MutexBuffer {
    memory: Bytes,
    geometry: Geometry,
    position: Mutex<u64>,
}

impl MutexBuffer {
    /// An empty buffer.
    pub fn new(geometry: Geometry) -> Self {
        Self { memory: Bytes::new(geometry), geometry, position: Mutex::new(0) }
    }

    /// The events that it holds, if it has not wrapped.
    pub fn into_events(mut self) -> Vec<Event> {
        let position = self.position.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.memory.events(self.geometry, 0, position)
    }
}

impl Scheme for MutexBuffer {
    #[inline(always)]
    fn log(&self, tid: u32, values: [u64; 2]) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.geometry.place(*position, LENGTH as u64);
        if at != *position {
            // SAFETY: after the last event and before the next sub-buffer; different multiples of 4 are at
            // least 4 apart.
            unsafe { self.memory.fill(self.geometry.offset(*position)) }
        }
        // SAFETY: `place` keeps events inside a sub-buffer, and the lock excludes other writers.
        unsafe { self.memory.put(self.geometry.offset(at), Event::at(now(), tid, values)) }
        *position = at + LENGTH as u64;
    }
}
