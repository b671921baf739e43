//! Wakers of tasks that tell wakes without memory of their own.
//!
//! All of tokio's wakers of tasks have one table of functions, and as data an address that stands for the task as long as there
//! is any waker of it. A telling one has the same data and the functions here, which pass everything on to tokio's. Which
//! user thread the task is stands in a table by that address.

use super::{Lent, tell};
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::task::{RawWaker, RawWakerVTable, Waker};
use tracewing::user_thread::UserThread;

/// Tasks that have a place at most; a task finds its own taken if another's address is a multiple of this, in
/// units of [`ALIGNMENT`], away.
const PLACES: usize = 1 << 16;
/// tokio aligns tasks to this many bytes at least, so that neighbours have neighbouring places.
const ALIGNMENT: usize = 128;

static TABLE: [Place; PLACES] =
    [const { Place { task: AtomicUsize::new(0), thread: AtomicU64::new(0) } }; PLACES];

/// The functions of tokio's wakers: those that a task was first seen with.
static TOKIOS: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// The functions of telling wakers.
static TELLING: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Where the wakers of a task find the user thread.
pub(crate) struct Place {
    /// The data of the task's wakers, 0 where nobody has the place.
    task: AtomicUsize,
    thread: AtomicU64,
}

fn place(task: usize) -> &'static Place {
    &TABLE[task / ALIGNMENT % PLACES]
}

impl Place {
    /// The place of a task, which is polled with this waker, if it is free.
    pub fn take(waker: &Waker, thread: UserThread) -> Option<&'static Self> {
        let functions = ptr::from_ref(waker.vtable()).cast_mut();
        if ptr::eq(functions, &TELLING) {
            return None;
        }
        // Relaxed: what is behind the pointer was there before the program ran.
        let known = TOKIOS.compare_exchange(ptr::null_mut(), functions, Relaxed, Relaxed);
        if known.is_err_and(|known| known != functions) {
            return None;
        }
        let task = waker.data().addr();
        let place = place(task);
        // Relaxed: nobody looks for the task before the store below has reached them with one of its wakers.
        place.task.compare_exchange(0, task, Relaxed, Relaxed).ok()?;
        place.thread.store(thread.get().get(), Release); // with `told`
        Some(place)
    }

    /// The telling waker of the task, if this is the one behind it.
    pub fn lend<'a>(&self, behind: &'a Waker) -> Option<Lent<'a>> {
        let same =
            self.task.load(Relaxed) == behind.data().addr() && ptr::eq(behind.vtable(), TOKIOS.load(Relaxed));
        // SAFETY: the functions need what those of `behind` need, which is borrowed.
        same.then(|| unsafe { Lent::new(behind.data(), &TELLING) })
    }

    /// The task has ended: its wakers tell nothing any more.
    pub fn leave(&self) {
        self.task.store(0, Relaxed); // its own until here
    }
}

/// Tells the wake of a task by its waker's data, if it has not ended.
fn told(task: *const ()) {
    let place = place(task.addr());
    let is_its = || place.task.load(Relaxed) == task.addr();
    if !is_its() {
        return;
    }
    // With `take`: whoever's thread this is, the second look sees that one's task, or a later one. It cannot be this
    // task's again, whose address nobody else has as long as it has a waker.
    let thread = place.thread.load(Acquire);
    if is_its()
        && let Some(thread) = NonZeroU64::new(thread).map(UserThread::from)
    {
        tell(thread);
    }
}

/// tokio's waker.
///
/// # Safety
/// `task` is the data of a telling waker; what is done to the result is what may be done to that.
unsafe fn behind(task: *const ()) -> Waker {
    // SAFETY: not null since `take` has stored it, of which telling wakers come; a constant of the program's.
    let functions: &'static RawWakerVTable = unsafe { &*TOKIOS.load(Relaxed) };
    // SAFETY: the caller's; `lend` has seen these functions with this data.
    unsafe { Waker::new(task, functions) }
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn clone(task: *const ()) -> RawWaker {
    // SAFETY: the caller's; what is not to be dropped is not.
    let (waker, clone) = unsafe {
        let waker = ManuallyDrop::new(behind(task));
        let clone = ManuallyDrop::new((*waker).clone());
        (waker, clone)
    };
    let functions = if clone.will_wake(&waker) { &TELLING } else { clone.vtable() };
    RawWaker::new(clone.data(), functions)
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn wake(task: *const ()) {
    told(task);
    // SAFETY: the caller's.
    unsafe { behind(task) }.wake();
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn wake_by_ref(task: *const ()) {
    told(task);
    // SAFETY: the caller's; not dropped.
    ManuallyDrop::new(unsafe { behind(task) }).wake_by_ref();
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn drop_waker(task: *const ()) {
    // SAFETY: the caller's.
    drop(unsafe { behind(task) });
}

#[cfg(test)]
mod tests {
    use super::*;

    static FUNCTIONS: RawWakerVTable =
        RawWakerVTable::new(|task| RawWaker::new(task, &FUNCTIONS), |_| {}, |_| {}, |_| {});

    #[test]
    fn a_place_is_one_tasks_until_it_leaves() {
        let waker = |address: usize| {
            // SAFETY: functions that do nothing with the data.
            unsafe { Waker::new(ptr::without_provenance(address), &FUNCTIONS) }
        };
        let thread = || UserThread::from(NonZeroU64::MIN);
        let (one, other) = (waker(ALIGNMENT), waker(ALIGNMENT + ALIGNMENT * PLACES));
        let place = Place::take(&one, thread()).unwrap();
        assert!(Place::take(&other, thread()).is_none());
        assert!(place.lend(&other).is_none());
        let lent = place.lend(&one).unwrap();
        let clone = lent.clone();
        assert!(clone.will_wake(&lent) && !clone.will_wake(&one));
        assert!(Place::take(&clone, thread()).is_none(), "a telling waker behind a telling one");
        place.leave();
        assert!(Place::take(&other, thread()).is_some());
        clone.wake();
    }
}
