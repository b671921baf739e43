//! The return addresses that were replaced, so that functions come by when they end.
//!
//! Each belongs to the place on a stack where it was. Places are compared, not only counted: a function
//! returns to where its own place says, whatever has become of others, and a thread may switch between stacks
//! of its own. What is left by a jump is told by `jumps`; what is left otherwise (a child of `vfork` that
//! executes something else) stays until its place is used again.
//!
//! A shadow belongs to one thread, whose signal handlers may come between any two instructions: they find,
//! and leave behind, whole entries. `pool` has those of all threads.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*, compiler_fence};

/// Functions in each other, at most.
const DEPTH: usize = 1 << 16;

/// A replaced return address. All words change in their thread only, unless the stack is another's.
struct Entry {
    /// Where it was; 0 while the entry is made, and in those that are free; [`GONE`] where another is above
    /// it.
    place: AtomicUsize,
    /// What it was.
    back: AtomicUsize,
    /// Whose it was.
    function: AtomicUsize,
}

/// No place on a stack: the function has been left, or has returned on another stack.
const GONE: usize = 1;

/// A thread's. In this order: the processor takes words for one whose addresses differ by pages only, and
/// waits; so those that each call needs do not lie as the first entries do.
#[repr(C)]
pub(super) struct Shadow {
    pub(super) is_used: AtomicBool,
    /// Where an exception was thrown, since when none is replaced; 0 unless there is one.
    thrown: AtomicUsize,
    depth: AtomicUsize,
    pub(super) next: AtomicPtr<Shadow>,
    entries: [Entry; DEPTH],
}

impl Shadow {
    /// Forgets all functions: the thread ends.
    pub(super) fn clear(&self) {
        for entry in &self.entries[..self.depth.swap(0, Relaxed)] {
            entry.place.store(0, Relaxed);
        }
        self.thrown.store(0, Relaxed);
    }

    /// A function has begun whose return address was at `place`, and is replaced next. `is_first`: nobody has
    /// replaced it before. Gives whether there is room.
    #[inline(always)]
    pub(super) fn begin(&self, place: usize, back: usize, function: usize, is_first: bool) -> bool {
        let mut depth = self.depth.load(Relaxed);
        // Whoever had the place is not there any more.
        while is_first && depth > 0 && self.entries[depth - 1].place.load(Relaxed) == place {
            depth -= 1;
            self.drop_last(depth);
        }
        let Some(entry) = self.entries.get(depth) else { return false };
        // A signal handler that comes now leaves the entry alone, and puts its own above it.
        self.depth.store(depth + 1, Relaxed);
        compiler_fence(Release); // with signal handlers of this thread: the depth first
        entry.back.store(back, Relaxed);
        entry.function.store(function, Relaxed);
        compiler_fence(Release); // with the same: the place last
        entry.place.store(place, Relaxed);
        true
    }

    /// A function returns whose return address was at `place`: what that was, and whose.
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

    /// The same for another thread, which is on a stack that this one was on.
    #[cold]
    pub(super) fn end_elsewhere(&self, place: usize) -> Option<(usize, usize)> {
        let entries = self.entries[..self.depth.load(Relaxed).min(DEPTH)].iter();
        let mut there = entries.filter(|entry| entry.place.load(Relaxed) == place);
        there.next().map(|entry| {
            entry.place.store(GONE, Relaxed);
            entry.found()
        })
    }

    /// The same where it is not the last one: others are on another stack, or have been left.
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

    /// The last entry, which has this index, is free.
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

    /// Functions whose places are in the range will not return. `left` is told which, the innermost first.
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

    /// Puts all return addresses back to where they were, for someone who reads the stack, from `place` on.
    ///
    /// # Safety
    /// The stack that the thread is on is above `place`; `hook` is what the addresses were replaced by.
    pub(super) unsafe fn restore(&self, place: usize, hook: usize) {
        let _ = self.thrown.compare_exchange(0, place, Relaxed, Relaxed);
        // A place that was replaced twice (a call in place of a return) gets its first address last.
        for entry in self.entries[..self.depth.load(Relaxed)].iter().rev() {
            // SAFETY: the caller's.
            unsafe { entry.exchange(hook, entry.back.load(Relaxed), place) };
        }
    }

    /// Whether the return addresses are where they were.
    #[inline(always)]
    pub(super) fn is_restored(&self) -> bool {
        self.thrown.load(Relaxed) != 0
    }

    /// Somebody has caught the exception, and now calls a function whose return address is at `place`:
    /// replaces all that are left. `left` is told of functions that are not, the innermost first.
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
    /// What it was, and whose.
    #[inline(always)]
    fn found(&self) -> (usize, usize) {
        (self.back.load(Relaxed), self.function.load(Relaxed))
    }

    /// Writes `new` to its place, if that is above `above` and `old` is there.
    ///
    /// # Safety
    /// The stack that the thread is on is above `above`.
    unsafe fn exchange(&self, old: usize, new: usize, above: usize) {
        let place = self.place.load(Relaxed);
        if place > above {
            let place = ptr::with_exposed_provenance_mut::<usize>(place);
            // SAFETY: the place of a return address of this thread's, above where it is on its stack (the
            // caller's).
            unsafe {
                if place.read_volatile() == old {
                    place.write_volatile(new);
                }
            }
        }
    }
}
