//! [`SlotFifo`]: a wait-free queue of fixed-size slots, many writers, one reader.
//!
//! Source: Brandenburg and Anderson, *Feather-Trace: A Light-Weight Event Tracing Toolkit* (003), section
//! 2.2, Figures 2 and 3. It serves hard real-time code (signal and interrupt handlers included) and works as
//! a message queue between threads. It is separate from the event buffers of this crate: unlike them it lives
//! in the memory of one process, holds one type, and has one order for all CPUs. Every push costs two locked
//! instructions, so events belong in the buffers. `examples/control-loop` is a program that uses it.
//!
//! # Bounded steps
//!
//! No operation loops, waits or retries, whatever other threads do:
//!
//! | operation | at most |
//! |---|---|
//! | [`SlotFifo::try_push`] | three atomic operations and one move of `T` |
//! | [`Reader::pop`] | five atomic operations and one move of `T` |
//! | [`SlotFifo::reader`], dropping a [`Reader`], [`SlotFifo::failed`] | one atomic operation |
//!
//! An atomic operation is one instruction where the processor has fetch-and-add (x86, ARMv8.1, RISC-V A).
//! Elsewhere the compiler turns it into a load-linked/store-conditional loop, and the processor's progress
//! guarantee is the bound.
//!
//! # How it works
//!
//! `free` counts the free slots (the paper's f), `write` and `read` the reservations and the pops (w, r; slot
//! = count modulo N, and N divides 2^32, so that wrapping needs no care), `failed` the failed writes (e). A
//! writer
//!
//! 1. subtracts one from `free`. If none was left it adds one back, counts a failure, and is done;
//! 2. adds one to `write`: the count before is its slot's;
//! 3. moves its value into the slot and marks it ready.
//!
//! The reader looks at slot `read` only. If that slot is ready it moves the value out, clears the mark, and
//! adds one to `free`.
//!
//! Between any two steps any number of other threads may take any number of steps:
//!
//! - *Two writers reserve at once.* Each subtracts its own one from `free`, and gets its own count from
//!   `write`.
//! - *More writers than slots.* At any time free = N + pops - reservations - writers between taking and
//!   putting back, so a writer that found `free` above 0 makes at most N reservations not yet popped: its
//!   slot is empty. One that finds 0 or less fails. It may do so although the reader has freed a slot
//!   meanwhile: a failing writer hides one slot until it has added its one back. Such a failure is counted
//!   like any other.
//! - *Writers overtake each other between steps 1 and 2.* A finds a slot free; then the reader frees another
//!   and B finds it; B gets the earlier count. So A's slot may be the one that was freed *after* A's step 1,
//!   and step 1 does not order A after that pop. Step 2 does: B came after the pop when it added to `write`,
//!   and A comes after B. Hence both steps acquire, and step 2 releases too. (The paper's locked instructions
//!   are full barriers.)
//! - *A later slot is ready before an earlier one.* The reader waits for the earlier one: the order is that
//!   of step 2.
//! - *A signal handler pushes in the middle of a push, a pop, or another handler's push.* It is one more
//!   writer.
//! - *A writer stops for good.* Killed between steps 1 and 2, or between failing and adding back: one slot
//!   fewer, permanently. Killed between 2 and 3: the reader returns the values before that slot, then nothing
//!   more, and writers fail and count once the slots are full. The value is leaked. No step marks a slot
//!   ready whose value is incomplete, so the reader never sees a damaged `T`. A write that fails and is
//!   killed before it counted is not in `failed`.
//!
//! Differences from Figure 3: a slot has two states, since no step needs "busy"; the reader does not compare
//! f with n first, since the mark alone says whether there is a value to read.
//!
//! # What the loom tests catch
//!
//! Each of these faults was inserted, and found by the listed tests of `tests/loom/slot_fifo.rs`:
//!
//! | fault | found by |
//! |---|---|
//! | `free` decremented with relaxed in place of acquire | `a_writer_overtaken…`, `a_writer_that_laps` |
//! | `write` added to with release, acquire or relaxed in place of both | `a_writer_overtaken…`, nothing else |
//! | mark set with relaxed in place of release; or before the value | `a_writer_overtaken…`, `a_writer_that_laps` |
//! | mark read with relaxed in place of acquire | `a_writer_overtaken…`, `a_writer_that_laps` |
//! | `free` incremented by the reader with relaxed in place of release; or before the mark is cleared | `a_writer_overtaken…`, `a_writer_that_laps` |
//! | the mark stays set | all |
//! | reader taken, or dropped, with relaxed | `a_reader_after_another` |
//! | two readers | `a_reader_after_another` |
//! | `free < 0` in place of `free <= 0` | all but `a_reader_after_another` |
//! | a failing writer does not add its one back | `writers_that_fail` |
//! | a failure is not counted | `writers_that_fail`, `a_writer_that_laps` |
//! | values inside are not dropped | `dropped_with_values_inside` |

use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::*;

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};

/// A wait-free queue of `N` slots, many writers, one reader. See the [module](self) for how it works and how
/// many steps each operation takes.
///
/// Values come out in the order in which their slots were reserved, so one thread's values come out in the
/// order in which it pushed them.
///
/// ```
/// use tracewing_ring::slot_fifo::SlotFifo;
///
/// static MESSAGES: SlotFifo<u32, 4> = SlotFifo::new();
///
/// let mut reader = MESSAGES.reader().expect("there is no other reader");
/// MESSAGES.try_push(7).unwrap();
/// assert_eq!(reader.pop(), Some(7));
/// assert_eq!(reader.pop(), None);
/// ```
pub struct SlotFifo<T, const N: usize> {
    /// Free slots; below 0 while failed writers have not added theirs back.
    free: AtomicI32,
    /// Slots reserved since the beginning, wrapping.
    write: AtomicU32,
    /// Values popped since the beginning, wrapping. Changed by the reader only.
    read: AtomicU32,
    /// Whether there is a [`Reader`].
    reading: AtomicBool,
    failed: AtomicU64,
    slots: [Slot<T>; N],
}

struct Slot<T> {
    /// Whether `value` is present and not yet popped.
    ready: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The reading end of a [`SlotFifo`]; at most one exists at any time.
pub struct Reader<'a, T, const N: usize> {
    fifo: &'a SlotFifo<T, N>,
}

impl<T, const N: usize> SlotFifo<T, N> {
    /// Counts modulo 2^32 must be counts modulo `N` too; `free` must hold `N` minus every writer there can
    /// be.
    const CAPACITY: u32 = {
        assert!(N.is_power_of_two() && N <= 1 << 30, "a slot FIFO's capacity is a power of two up to 2^30");
        N as u32
    };

    /// An empty queue. A capacity that is not a power of two, or above 2^30, does not compile.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            free: AtomicI32::new(Self::CAPACITY as i32),
            write: AtomicU32::new(0),
            read: AtomicU32::new(0),
            reading: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            slots: [const { Slot { ready: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) } };
                N],
        }
    }

    /// An empty queue (loom's atomics cannot be made at compile time).
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            free: AtomicI32::new(Self::CAPACITY as i32),
            write: AtomicU32::new(0),
            read: AtomicU32::new(0),
            reading: AtomicBool::new(false),
            failed: AtomicU64::new(0),
            slots: core::array::from_fn(|_| Slot {
                ready: AtomicBool::new(false),
                value: UnsafeCell::new(MaybeUninit::uninit()),
            }),
        }
    }

    /// Appends a value (the paper's `start_write` and `finish_write`). Any number of threads and signal
    /// handlers may call it at any time.
    ///
    /// # Errors
    /// No slot was free, or failing writers hid all free ones at that moment. The value is returned, and the
    /// failure is counted.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), T> {
        // Acquire, with the reader's release add in `pop`: its accesses to the slots that it freed come
        // first.
        if self.free.fetch_sub(1, Acquire) <= 0 {
            self.free.fetch_add(1, Relaxed);
            self.failed.fetch_add(1, Relaxed);
            return Err(value);
        }
        // Release and acquire, each with the other in the writers that came before and after: the pop that
        // freed this slot may have been seen by one of them only.
        let slot = self.slot(self.write.fetch_add(1, AcqRel));
        slot.value.with_mut(|place| {
            // SAFETY: the slot is this writer's alone. Reservations not yet popped are at most N (`free`), so
            // no other writer has it; the reader waits for `ready`; and its last pop from here was seen with
            // the two acquires.
            unsafe { (*place).write(value) };
        });
        slot.ready.store(true, Release); // with the acquire load in `pop`: the value is there
        Ok(())
    }

    /// The reading end, unless there is one already.
    pub fn reader(&self) -> Option<Reader<'_, T, N>> {
        // Acquire, with the release store of the reader before: its pops come first.
        let taken = self.reading.swap(true, Acquire);
        (!taken).then_some(Reader { fifo: self })
    }

    /// Calls of [`Self::try_push`] that failed since the beginning; exact, except for calls that have not
    /// returned.
    pub fn failed(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// `N`: the number of slots.
    pub const fn capacity(&self) -> usize {
        N
    }

    fn slot(&self, count: u32) -> &Slot<T> {
        &self.slots[(count % Self::CAPACITY) as usize]
    }
}

impl<T, const N: usize> Reader<'_, T, N> {
    /// Takes the oldest value (the paper's `read`). `None` if the queue is empty or the writer of the oldest
    /// slot has not finished.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let count = self.fifo.read.load(Relaxed);
        let slot = self.fifo.slot(count);
        // Acquire, with the release store in `try_push`: the value is there.
        if !slot.ready.load(Acquire) {
            return None;
        }
        // SAFETY: the mark says that a writer has moved a value in and is done with the slot; this is the
        // only reader, and it moves the value out once, since it clears the mark before any writer can get
        // the slot again.
        let value = slot.value.with(|place| unsafe { (*place).assume_init_read() });
        slot.ready.store(false, Relaxed);
        self.fifo.read.store(count.wrapping_add(1), Relaxed);
        // Release, with the acquires in `try_push`: the value is out and the mark is off before the slot is
        // reserved.
        self.fifo.free.fetch_add(1, Release);
        Some(value)
    }

    /// As [`SlotFifo::failed`].
    pub fn failed(&self) -> u64 {
        self.fifo.failed()
    }

    /// As [`SlotFifo::capacity`].
    pub const fn capacity(&self) -> usize {
        N
    }
}

impl<T, const N: usize> Drop for Reader<'_, T, N> {
    fn drop(&mut self) {
        self.fifo.reading.store(false, Release); // with the acquire swap in `reader`: this reader's pops come first
    }
}

impl<T, const N: usize> Drop for SlotFifo<T, N> {
    /// Drops the values that were pushed and not popped, oldest first. A value whose writer was killed is
    /// leaked.
    fn drop(&mut self) {
        let oldest = self.read.load(Relaxed);
        for count in 0..Self::CAPACITY {
            let slot = self.slot(oldest.wrapping_add(count));
            if slot.ready.load(Relaxed) {
                // SAFETY: the mark says that a value is there; no other thread has access any more.
                slot.value.with_mut(|place| unsafe { (*place).assume_init_drop() });
            }
        }
    }
}

impl<T, const N: usize> Default for SlotFifo<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> fmt::Debug for SlotFifo<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotFifo")
            .field("capacity", &N)
            .field("failed", &self.failed())
            .finish_non_exhaustive()
    }
}

impl<T, const N: usize> fmt::Debug for Reader<'_, T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(self.fifo).finish()
    }
}

// SAFETY: threads that share the queue only move whole values through it, each out at most once: `T` needs to
// be `Send`, and no thread gets a reference to a value inside.
unsafe impl<T: Send, const N: usize> Sync for SlotFifo<T, N> {}
// SAFETY: as above; the queue owns its values.
unsafe impl<T: Send, const N: usize> Send for SlotFifo<T, N> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap() {
        let fifo = SlotFifo::<u32, 4>::new();
        for count in [&fifo.read, &fifo.write] {
            count.store(u32::MAX - 2, Relaxed);
        }
        let mut reader = fifo.reader().unwrap();
        for value in 0..10 {
            fifo.try_push(value).unwrap();
            fifo.try_push(value + 100).unwrap();
            assert_eq!((reader.pop(), reader.pop(), reader.pop()), (Some(value), Some(value + 100), None));
        }
    }
}
