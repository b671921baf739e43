//! A compare-and-swap reserves, an addition to the sub-buffer's commit count commits: paper 000, table 1 (the
//! operations) and table 2 (the buffer), paper 002, section 4. With the lock prefix any thread may write;
//! without it only threads of one CPU exclude each other, since an x86 instruction is atomic only with
//! respect to its own CPU.

use crate::Scheme;
use crate::event::{Event, LENGTH, now};
use crate::geometry::Geometry;
use crate::memory::{Bytes, Memory};
use crate::padded::Padded;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// The two operations of the scheme, in one of two kinds.
pub trait Operations: Sync {
    /// Replaces `old` by `new`; false if the word was something else.
    fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool;
    /// Adds.
    fn add(word: &AtomicU64, amount: u64);
}

/// With the lock prefix: for any threads.
pub struct Locked;

impl Operations for Locked {
    #[inline(always)]
    fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
        // Relaxed: it reserves bytes and publishes nothing.
        word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    fn add(word: &AtomicU64, amount: u64) {
        // Release: the event's bytes are visible to a reader that acquires the count.
        word.fetch_add(amount, Ordering::Release);
    }
}

/// Without the lock prefix: for threads that stay on one CPU, and their signal handlers.
pub struct Local;

impl Operations for Local {
    #[inline(always)]
    fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
        let before: u64;
        // SAFETY: one instruction on a word that outlives it; rax holds the expected value and gets the one
        // found.
        unsafe {
            core::arch::asm!(
                "cmpxchg [{word}], {new}",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inout("rax") old => before,
                options(nostack),
            );
        }
        before == old
    }

    #[inline(always)]
    fn add(word: &AtomicU64, amount: u64) {
        // SAFETY: one instruction on a word that outlives it.
        unsafe {
            core::arch::asm!(
                "add [{word}], {amount}",
                word = in(reg) word.as_ptr(),
                amount = in(reg) amount,
                options(nostack),
            );
        }
    }
}

/// A buffer with a write count and a commit count for each sub-buffer.
pub struct CasBuffer<O> {
    memory: Bytes,
    geometry: Geometry,
    write: AtomicU64,
    commits: Box<[Padded<AtomicU64>]>,
    operations: PhantomData<O>,
}

impl<O: Operations> CasBuffer<O> {
    /// An empty buffer.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            memory: Bytes::new(geometry),
            geometry,
            write: AtomicU64::new(0),
            commits: (0..geometry.count()).map(|_| Padded(AtomicU64::new(0))).collect(),
            operations: PhantomData,
        }
    }

    /// Reserves an event's bytes, and the bytes left over before it if it begins a sub-buffer. As in the
    /// papers, the clock is read in each attempt, since stamps must not go backwards, and the number of
    /// attempts is not limited. Nothing is reserved if `stamp` returns `None`: tracing is off.
    #[inline(always)]
    pub(crate) fn reserve(&self, mut stamp: impl FnMut() -> Option<u64>) -> Option<Reserved> {
        loop {
            let old = self.write.load(Ordering::Relaxed);
            let at = self.geometry.place(old, LENGTH as u64);
            let stamp = stamp()?;
            if O::exchange(&self.write, old, at + LENGTH as u64) {
                return Some(Reserved { old, at, stamp });
            }
        }
    }

    /// Writes an event into its reserved bytes and commits it.
    #[inline(always)]
    pub(crate) fn write(&self, reserved: Reserved, tid: u32, values: [u64; 2]) {
        let Reserved { old, at, stamp } = reserved;
        if at != old {
            // SAFETY: reserved; multiples of 4 that differ are 4 apart.
            unsafe { self.memory.fill(self.geometry.offset(old)) }
            O::add(&self.commits[self.geometry.index(old)].0, at - old);
        }
        // SAFETY: reserved.
        unsafe { self.memory.put(self.geometry.offset(at), Event::at(stamp, tid, values)) }
        O::add(&self.commits[self.geometry.index(at)].0, LENGTH as u64);
    }

    /// The events that it holds, if it has not wrapped; `None` if some reserved byte was never committed.
    pub fn into_events(mut self) -> Option<Vec<Event>> {
        let end = self.write.into_inner();
        let committed: u64 = self.commits.iter_mut().map(|count| *count.0.get_mut()).sum();
        (committed == end).then(|| self.memory.events(self.geometry, 0, end))
    }
}

impl<O: Operations> Scheme for CasBuffer<O> {
    #[inline(always)]
    fn log(&self, tid: u32, values: [u64; 2]) {
        if let Some(reserved) = self.reserve(|| Some(now())) {
            self.write(reserved, tid, values);
        }
    }
}

/// What a writer got.
pub(crate) struct Reserved {
    old: u64,
    at: u64,
    stamp: u64,
}
