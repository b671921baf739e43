//! K42's scheme: Wisniewski and Rosenburg (paper 004), Figure 2, with the counters `buffersProduced`,
//! `buffersConsumed` and `bufferCount` as paper 002, section 2, describes them. It is here to be measured,
//! and to be shown wrong.
//!
//! The papers' words, and ours: K42's *buffer* is a sub-buffer, `index` the write position, `traceReserve` is
//! [`K42::reserve`], `traceReserveSlow` [`K42::reserve_slow`], `traceCommit` [`K42::commit`]. Figure 2 leaves
//! open when a new buffer's count is zeroed and `buffersProduced` incremented; 002 says of the latter "upon
//! buffer space reservation for an event crossing a K42 buffer boundary", and 004 of the former "during the
//! start new buffer code": the writer that has moved the index does both, immediately.
//!
//! # The race
//! A buffer is treated as complete when it has been left and its count is a multiple of its size. So is zero:
//! a buffer whose events are all reserved and none of them committed looks complete, and the consumer reads
//! what was never written. `tests/k42.rs` lets loom find it. (002: "it would make an uncommitted K42 buffer
//! appear as fully committed"; LTTng's counts are free-running and compared with the lap that is expected,
//! Equation 1.)

use crate::Scheme;
use crate::atomic::{AtomicU64, Ordering};
use crate::event::{Event, LENGTH, now};
use crate::geometry::Geometry;
use crate::memory::{Bytes, Memory};
use crate::padded::Padded;

/// One CPU's buffers.
pub struct K42<M> {
    memory: M,
    geometry: Geometry,
    index: AtomicU64,
    buffers_produced: AtomicU64,
    buffers_consumed: AtomicU64,
    buffer_counts: Box<[Padded<AtomicU64>]>,
}

impl<M: Memory> K42<M> {
    /// Empty buffers in some memory.
    pub fn new(geometry: Geometry, memory: M) -> Self {
        Self {
            memory,
            geometry,
            index: AtomicU64::new(0),
            buffers_produced: AtomicU64::new(0),
            buffers_consumed: AtomicU64::new(0),
            buffer_counts: (0..geometry.count()).map(|_| Padded(AtomicU64::new(0))).collect(),
        }
    }

    /// Where the events are.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// `traceLog`: reserve, write, commit.
    #[inline(always)]
    pub fn log_event(&self, tid: u32, values: [u64; 2]) {
        let (index, stamp) = self.reserve(LENGTH as u64);
        // SAFETY: reserved.
        unsafe { self.memory.put(self.geometry.offset(index), Event::at(stamp, tid, values)) }
        self.commit(index, LENGTH as u64);
    }

    /// `traceReserve`: the index of the reserved bytes, and the time, read again in each attempt so that it
    /// never goes backwards in a buffer.
    #[inline(always)]
    fn reserve(&self, length: u64) -> (u64, u64) {
        loop {
            let old = self.index.load(Ordering::Relaxed);
            if !self.geometry.fits(old, length) {
                return self.reserve_slow(length);
            }
            let stamp = now();
            if self.compare_and_store(old, old + length) {
                return (old, stamp);
            }
        }
    }

    /// `traceReserveSlow`: moves to the next buffer, unless another writer was faster, and fills up the one
    /// it leaves.
    #[cold]
    #[inline(never)]
    fn reserve_slow(&self, length: u64) -> (u64, u64) {
        loop {
            let old = self.index.load(Ordering::Relaxed);
            let at = self.geometry.place(old, length);
            let stamp = now();
            if !self.compare_and_store(old, at + length) {
                continue;
            }
            if at != old {
                self.start_new_buffer(at);
                // SAFETY: reserved; multiples of 4 that differ are 4 apart.
                unsafe { self.memory.fill(self.geometry.offset(old)) }
                self.commit(old, at - old);
            }
            return (at, stamp);
        }
    }

    fn start_new_buffer(&self, at: u64) {
        self.buffer_counts[self.geometry.index(at)].0.store(0, Ordering::Relaxed);
        // Release: pairs with the load in `completed`.
        self.buffers_produced.fetch_add(1, Ordering::Release);
    }

    #[inline(always)]
    fn compare_and_store(&self, old: u64, new: u64) -> bool {
        self.index.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// `traceCommit`: adds to the buffer's count.
    #[inline(always)]
    fn commit(&self, index: u64, length: u64) {
        // Release: pairs with the load in `completed`, for which the bytes are there then.
        self.buffer_counts[self.geometry.index(index)].0.fetch_add(length, Ordering::Release);
    }

    /// The consumer: the number of the next buffer to read, if the counters say that it is complete.
    pub fn completed(&self) -> Option<u64> {
        let consumed = self.buffers_consumed.load(Ordering::Relaxed);
        // Acquire: pairs with `start_new_buffer`.
        if self.buffers_produced.load(Ordering::Acquire) == consumed {
            return None;
        }
        // Acquire: pairs with `commit`.
        let count = self.buffer_counts[(consumed % self.geometry.count()) as usize].0.load(Ordering::Acquire);
        count.is_multiple_of(self.geometry.sub_buffer()).then_some(consumed)
    }

    /// The consumer has read the buffer that [`Self::completed`] named.
    pub fn consumed(&self) {
        self.buffers_consumed.fetch_add(1, Ordering::Relaxed);
    }

    /// How many bytes have been reserved, with what no event fitted into.
    pub fn reserved(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }
}

impl K42<Bytes> {
    /// The events that it holds, if it has not wrapped; `None` if the count of a buffer is not what it should
    /// be.
    pub fn into_events(mut self) -> Option<Vec<Event>> {
        let end = self.reserved();
        let committed: u64 = self.buffer_counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum();
        (committed == end).then(|| self.memory.events(self.geometry, 0, end))
    }
}

impl Scheme for K42<Bytes> {
    #[inline(always)]
    fn log(&self, tid: u32, values: [u64; 2]) {
        self.log_event(tid, values);
    }
}
