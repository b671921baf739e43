//! The replaced return addresses, by which functions' ends are noticed.
//!
//! Each belongs to its place on a stack. Places are compared, not only counted: a function returns to the
//! address of its own place, whatever has happened to others, and a thread may switch between stacks of its
//! own. `jumps` reports functions that a jump leaves; functions that are left otherwise (a child of `vfork`
//! that executes another program) stay until their place is used again.
//!
//! A shadow belongs to one thread, whose signal handlers may run between any two instructions: they find, and
//! leave, whole entries. `pool` has the shadows of all threads.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*, compiler_fence};

/// Maximum number of nested functions.
const DEPTH: usize = 1 << 16;

/// A replaced return address. Only the owning thread changes its words, unless the stack belongs to another
/// thread.
struct Entry {
    /// The place of the address; 0 while the entry is written, and in free entries; [`GONE`] if the function
    /// has ended below another entry.
    place: AtomicUsize,
    /// The original return address.
    back: AtomicUsize,
    /// The function that it belongs to.
    function: AtomicUsize,
}

/// Not a place on a stack: the function has been left, or has returned on another stack.
const GONE: usize = 1;

/// A thread's shadow. The order of fields matters: a CPU confuses words whose addresses differ by whole
/// pages, and stalls; so the words that each call needs are not at the page offsets of the first entries.
#[repr(C)]
pub(super) struct Shadow {
    pub(super) is_used: AtomicBool,
    /// The place where an exception was thrown, after which no address is replaced; 0 if there is none.
    thrown: AtomicUsize,
    depth: AtomicUsize,
    pub(super) next: AtomicPtr<Shadow>,
    entries: [Entry; DEPTH],
}

impl Shadow {
    /// Removes all functions, because the thread ends.
    pub(super) fn clear(&self) {
        for entry in &self.entries[..self.depth.swap(0, Relaxed)] {
            entry.place.store(0, Relaxed);
        }
        self.thrown.store(0, Relaxed);
    }

    /// Adds a function whose return address is at `place` and will be replaced next. `is_first`: the address
    /// has not been replaced before. Returns whether there is room.
    #[inline(always)]
    pub(super) fn begin(&self, place: usize, back: usize, function: usize, is_first: bool) -> bool {
        let mut depth = self.depth.load(Relaxed);
        // The function that had this place before is gone.
        while is_first && depth > 0 && self.entries[depth - 1].place.load(Relaxed) == place {
            depth -= 1;
            self.drop_last(depth);
        }
        let Some(entry) = self.entries.get(depth) else { return false };
        // A signal handler that runs now leaves the entry alone, and adds its own above it.
        self.depth.store(depth + 1, Relaxed);
        compiler_fence(Release); // with signal handlers of this thread: the depth first
        entry.back.store(back, Relaxed);
        entry.function.store(function, Relaxed);
        compiler_fence(Release); // with the same: the place last
        entry.place.store(place, Relaxed);
        true
    }

    /// Removes the function whose return address was at `place`; returns the original address and the
    /// function.
    #[inline(always)]
    pub(super) fn end(&self, place: usize) -> Option<(usize, usize)> {
        let last = self.depth.load(Relaxed).wrapping_sub(1);
        let Some(entry) = self.entries.get(last).filter(|entry| entry.place.load(Relaxed) == place) else {
            return self.end_within(place);
        };
        let found = entry.found();
        self.drop_last(last);
        self.trim(last);
        Some(found)
    }

    /// The same for a place on a stack of this thread to which another thread has switched.
    #[cold]
    pub(super) fn end_elsewhere(&self, place: usize) -> Option<(usize, usize)> {
        let entries = self.entries[..self.depth.load(Relaxed).min(DEPTH)].iter();
        let mut there = entries.filter(|entry| entry.place.load(Relaxed) == place);
        there.next().map(|entry| {
            entry.place.store(GONE, Relaxed);
            entry.found()
        })
    }

    /// The same for an entry that is not the last: the others are on another stack, or were left.
    #[cold]
    #[inline(never)]
    fn end_within(&self, place: usize) -> Option<(usize, usize)> {
        let entries = self.entries[..self.depth.load(Relaxed)].iter().rev();
        let mut there = entries.filter(|entry| entry.place.load(Relaxed) == place);
        there.next().map(|entry| {
            entry.place.store(GONE, Relaxed);
            entry.found()
        })
    }

    /// Frees the last entry, which has this index.
    #[inline(always)]
    fn drop_last(&self, index: usize) {
        self.entries[index].place.store(0, Relaxed);
        compiler_fence(Release); // before a signal handler can use it
        self.depth.store(index, Relaxed);
    }

    #[inline(always)]
    fn trim(&self, mut depth: usize) {
        while depth > 0 && self.entries[depth - 1].place.load(Relaxed) == GONE {
            depth -= 1;
            self.drop_last(depth);
        }
    }

    /// Removes functions whose places are in the range, because they will not return. Calls `left` with each,
    /// the innermost first.
    pub(super) fn leave(&self, places: core::ops::Range<usize>, mut left: impl FnMut(usize)) {
        let depth = self.depth.load(Relaxed);
        for entry in self.entries[..depth].iter().rev() {
            if places.contains(&entry.place.load(Relaxed)) {
                entry.place.store(GONE, Relaxed);
                left(entry.function.load(Relaxed));
            }
        }
        self.trim(depth);
    }

    /// Restores all return addresses from `place` on, for code that reads the stack.
    ///
    /// # Safety
    /// The stack that the thread is on is above `place`; `hook` is the address that replaced them.
    pub(super) unsafe fn restore(&self, place: usize, hook: usize) {
        let _ = self.thrown.compare_exchange(0, place, Relaxed, Relaxed);
        // A place that was replaced twice (a call instead of a return) gets its first address last.
        for entry in self.entries[..self.depth.load(Relaxed)].iter().rev() {
            // SAFETY: the caller's.
            unsafe { entry.exchange(hook, entry.back.load(Relaxed), place) };
        }
    }

    /// Whether the return addresses are the original ones.
    #[inline(always)]
    pub(super) fn is_restored(&self) -> bool {
        self.thrown.load(Relaxed) != 0
    }

    /// Replaces all remaining addresses after an exception was caught, when a function begins whose return
    /// address is at `place`. Calls `left` with functions that were left, the innermost first.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn replace(&self, place: usize, hook: usize, left: impl FnMut(usize)) {
        let thrown = self.thrown.swap(0, Relaxed);
        self.leave(thrown..place.saturating_add(1), left);
        for entry in &self.entries[..self.depth.load(Relaxed)] {
            // SAFETY: the caller's.
            unsafe { entry.exchange(entry.back.load(Relaxed), hook, place) };
        }
    }
}

impl Entry {
    /// The original address, and the function.
    #[inline(always)]
    fn found(&self) -> (usize, usize) {
        (self.back.load(Relaxed), self.function.load(Relaxed))
    }

    /// Writes `new` to its place, if the place is above `above` and contains `old`.
    ///
    /// # Safety
    /// The stack that the thread is on is above `above`.
    unsafe fn exchange(&self, old: usize, new: usize, above: usize) {
        let place = self.place.load(Relaxed);
        if place > above {
            let place = ptr::with_exposed_provenance_mut::<usize>(place);
            // SAFETY: the place of a return address of this thread, above its position on its stack (the
            // caller's).
            unsafe {
                if place.read_volatile() == old {
                    place.write_volatile(new);
                }
            }
        }
    }
}
