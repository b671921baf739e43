//! Wakers of tasks that record wakes without memory of their own, neither allocated nor in the task.
//!
//! All of tokio's wakers of tasks share one table of functions, and their data is an address that identifies
//! the task as long as any waker of it exists. A recording waker has the same data and the functions of this
//! module, which forward everything to tokio's. A table maps that address to the user thread, once a waker is
//! kept; if another task has the place, the waker is one of the [`crowd`]'s. The address is where tokio
//! allocated the task, so that the task's future can derive it: the future must be within the first
//! [`ALIGNMENT`] bytes of it, or else the waker is one of the crowd's.

use super::{crowd, record_wake};
use crate::here::{HERE, Here};
use crate::living::Living;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::task::{RawWaker, RawWakerVTable, Waker};
use tracewing::user_thread::UserThread;

/// Places in the table. A task's place is taken if the address of another task differs by a multiple of this,
/// in units of [`ALIGNMENT`].
const PLACES: usize = 1 << 16;
/// Minimum alignment of tokio's tasks, bytes: neighbouring tasks have neighbouring places.
const ALIGNMENT: usize = 128;

static TABLE: [Place; PLACES] =
    [const { Place { task: AtomicUsize::new(0), thread: AtomicU64::new(0) } }; PLACES];

/// The functions of tokio's wakers, as first seen with a task.
static TOKIOS: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// The functions of recording wakers.
static RECORDING: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Maps the wakers of a task to its user thread, from the first kept waker until the task ends.
struct Place {
    /// The data of the task's wakers; 0 while the place is free.
    task: AtomicUsize,
    thread: AtomicU64,
}

fn place(task: usize) -> &'static Place {
    &TABLE[task / ALIGNMENT % PLACES]
}

impl Place {
    fn is_of(&self, task: usize) -> bool {
        self.task.load(Relaxed) == task
    }

    /// Assigns the place to a task, if it is free.
    fn take(&self, task: usize, thread: u64) -> bool {
        // Relaxed: no thread looks for the task until one of its wakers has reached it, after the store
        // below.
        let free = self.task.compare_exchange(0, task, Relaxed, Relaxed).is_ok();
        if free {
            self.thread.store(thread, Release); // with `record_wake_of_task`
        }
        free
    }

    /// Frees the place, if it belongs to this task and user thread.
    fn leave(&self, task: usize, thread: UserThread) -> bool {
        // Relaxed: it belongs to the task from `take` until here, on whatever threads the task ran.
        let own = self.is_of(task) && self.thread.load(Relaxed) == thread.get().get();
        if own {
            self.task.store(0, Relaxed);
        }
        own
    }
}

/// The waker that a task is polled with.
pub(crate) enum TaskWaker<'a> {
    /// tokio's data, with the functions of this module.
    Recording {
        /// Must not be dropped: the data is borrowed.
        waker: ManuallyDrop<Waker>,
        /// What the thread polled before.
        before: (usize, Option<Living>),
        inner: PhantomData<&'a Waker>,
    },
    Own(Waker),
    /// tokio's own; the wake is not recorded.
    Unrecorded(&'a Waker),
}

impl<'a> TaskWaker<'a> {
    /// A waker for the user thread that the task is. tokio polls the task with `inner`, and the future is at
    /// address `within`. It must be given back after the poll.
    #[inline]
    pub(crate) fn lend(living: Living, inner: &'a Waker, within: usize, here: &Here) -> Self {
        let task = inner.data().addr();
        if !is_tokios(inner) || within / ALIGNMENT * ALIGNMENT != task {
            return Self::Own(crowd::waker(living.thread(), inner));
        }
        // SAFETY: the functions need what those of `inner` need, which is borrowed; it is never dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::new(inner.data(), &RECORDING) });
        let before = (here.task.replace(task), here.living.replace(Some(living)));
        Self::Recording { waker, before, inner: PhantomData }
    }

    /// Ends the loan after the poll. Returns the user thread, whose waker may be kept now.
    #[inline]
    pub(crate) fn give_back(&self, living: Living, here: &Here) -> Living {
        match self {
            Self::Recording { before: (task, before), .. } => {
                here.task.set(*task);
                here.living.replace(*before).unwrap_or(living)
            }
            Self::Own(_) => living.kept(),
            Self::Unrecorded(_) => living,
        }
    }
}

impl Deref for TaskWaker<'_> {
    type Target = Waker;

    #[inline]
    fn deref(&self) -> &Waker {
        match self {
            Self::Recording { waker, .. } => waker,
            Self::Own(waker) => waker,
            Self::Unrecorded(waker) => waker,
        }
    }
}

/// Whether a waker is one of tokio's own for its tasks.
fn is_tokios(waker: &Waker) -> bool {
    let functions = ptr::from_ref(waker.vtable()).cast_mut();
    // Relaxed: the table that it points to existed before the program ran.
    let known = match TOKIOS.load(Relaxed) {
        null if null.is_null() => TOKIOS
            .compare_exchange(null, functions, Relaxed, Relaxed)
            .map_or_else(|known| known, |_| functions),
        known => known,
    };
    ptr::eq(known, functions)
}

/// Retires the task whose future is at address `within`: its wakers record nothing any more.
pub(crate) fn retire_within(within: usize, thread: UserThread) {
    // Relaxed: the task's own wakers have stored it, if any of them records.
    if TOKIOS.load(Relaxed).is_null() {
        return;
    }
    let task = within / ALIGNMENT * ALIGNMENT;
    if !place(task).leave(task, thread) {
        crowd::retire(thread);
    }
}

/// Records the wake of a task, by its waker's data, if the task has not ended.
fn record_wake_of_task(task: *const ()) {
    let (task, place) = (task.addr(), place(task.addr()));
    if place.is_of(task) {
        // With `take`: whichever user thread this is, the second look sees its task, or a later one. It
        // cannot be this task's again: no other task has this address while it has a waker.
        let thread = place.thread.load(Acquire);
        if place.is_of(task) {
            record_wake_of(thread);
        }
    } else if let Some(living) = polled(task) {
        record_wake(living.thread());
    }
}

fn record_wake_of(thread: u64) {
    UserThread::from_number(thread).into_iter().for_each(record_wake);
}

/// The user thread that this thread polls with a recording waker of this data.
fn polled(task: usize) -> Option<Living> {
    HERE.with(|here| here.living.get().filter(|_| here.task.get() == task))
}

/// Whether a task that is polled here has its place: it takes the place with its first kept waker, unless
/// another task has it.
fn has_place(task: usize, living: Living) -> bool {
    let place = place(task);
    if living.is_kept() {
        return place.is_of(task);
    }
    HERE.with(|here| here.living.set(Some(living.kept())));
    place.take(task, living.thread().get().get())
}

/// tokio's waker for the same task.
///
/// # Safety
/// `task` is the data of a recording waker, and the caller uses the result only as it may use that waker.
unsafe fn tokios(task: *const ()) -> Waker {
    // SAFETY: not null since `take` has stored it, before any recording waker existed; a constant of the
    // program.
    let functions: &'static RawWakerVTable = unsafe { &*TOKIOS.load(Relaxed) };
    // SAFETY: the caller's; `lend` has seen these functions with this data.
    unsafe { Waker::new(task, functions) }
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn clone(task: *const ()) -> RawWaker {
    // SAFETY: the caller's; not dropped.
    let waker = ManuallyDrop::new(unsafe { tokios(task) });
    // A waker that is kept, of a task that is being polled.
    if let Some(living) = polled(task.addr())
        && !has_place(task.addr(), living)
    {
        return raw(crowd::waker(living.thread(), &waker));
    }
    let clone = (*waker).clone();
    match clone.will_wake(&waker) {
        true => RawWaker::new(ManuallyDrop::new(clone).data(), &RECORDING),
        false => raw(clone),
    }
}

/// The raw parts of a waker.
fn raw(waker: Waker) -> RawWaker {
    let waker = ManuallyDrop::new(waker);
    RawWaker::new(waker.data(), waker.vtable())
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn wake(task: *const ()) {
    record_wake_of_task(task);
    // SAFETY: the caller's.
    unsafe { tokios(task) }.wake();
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn wake_by_ref(task: *const ()) {
    record_wake_of_task(task);
    // SAFETY: the caller's; not dropped.
    ManuallyDrop::new(unsafe { tokios(task) }).wake_by_ref();
}

/// # Safety
/// As for [`RawWakerVTable::new`].
unsafe fn drop_waker(task: *const ()) {
    // SAFETY: the caller's.
    drop(unsafe { tokios(task) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    static FUNCTIONS: RawWakerVTable =
        RawWakerVTable::new(|task| RawWaker::new(task, &FUNCTIONS), |_| {}, |_| {}, |_| {});

    fn waker(address: usize) -> Waker {
        // SAFETY: functions that do nothing with the data.
        unsafe { Waker::new(ptr::without_provenance(address), &FUNCTIONS) }
    }

    fn thread(number: u64) -> UserThread {
        UserThread::from_number(number).unwrap()
    }

    #[test]
    fn a_place_is_one_tasks_until_it_ends() {
        let place = &Place { task: AtomicUsize::new(0), thread: AtomicU64::new(0) };
        assert!(place.take(ALIGNMENT, 1) && !place.take(2 * ALIGNMENT, 2));
        assert!(!place.leave(2 * ALIGNMENT, thread(2)) && !place.leave(ALIGNMENT, thread(2)));
        assert!(place.leave(ALIGNMENT, thread(1)));
        assert!(place.take(2 * ALIGNMENT, 2));
    }

    #[test]
    fn the_crowd_serves_a_waker_with_unknown_functions() {
        // tokio's functions are known from here on.
        poll_and_cancel(Kept::default());
        let (inner, thread) = (waker(ALIGNMENT), thread(1 << 40));
        let lent = HERE.with(|here| TaskWaker::lend(thread.into(), &inner, ALIGNMENT, here));
        assert!(matches!(&lent, TaskWaker::Own(_)));
        HERE.with(|here| assert!(lent.give_back(thread.into(), here).is_kept()));
        let again = HERE.with(|here| TaskWaker::lend(thread.into(), &inner, ALIGNMENT, here));
        assert!(lent.will_wake(&again));
        retire_within(ALIGNMENT, thread);
    }

    /// A task that keeps its waker and never ends by itself.
    #[derive(Default)]
    struct Kept(Option<Waker>);

    const NUMBER: u64 = 1 << 41;

    impl Future for Kept {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            let mut living = Living::from(thread(NUMBER));
            if self.0.is_some() {
                living = living.kept();
            }
            let within = ptr::from_ref(&*self).addr();
            let lent = HERE.with(|here| TaskWaker::lend(living, context.waker(), within, here));
            assert!(matches!(&lent, TaskWaker::Recording { .. }), "tokio has tasks laid out in another way");
            let again = self.0.replace(lent.clone());
            let (data, place) = (lent.data().addr(), place(lent.data().addr()));
            assert!(place.is_of(data) && place.thread.load(Relaxed) == NUMBER);
            assert!(again.is_none_or(|again| again.will_wake(&lent)));
            HERE.with(|here| assert!(lent.give_back(living, here).is_kept()));
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            let place = place(self.0.as_ref().unwrap().data().addr());
            retire_within(ptr::from_ref(self).addr(), thread(NUMBER));
            assert_eq!(place.task.load(Relaxed), 0);
        }
    }

    fn poll_and_cancel(task: Kept) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let task = tokio::spawn(task);
            tokio::task::yield_now().await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        });
    }

    #[test]
    fn a_cancelled_task_leaves_its_place() {
        poll_and_cancel(Kept::default());
    }
}
