//! Wakers of tasks that tell wakes without memory of their own, neither allocated nor in the task.
//!
//! All of tokio's wakers of tasks have one table of functions, and as data an address that stands for the
//! task as long as there is any waker of it. A telling one has the same data and the functions here, which
//! pass everything on to tokio's. Which user thread the task is stands in a table by that address, once a
//! waker is kept; where another task has the place, the waker is one of the [`crowd`]'s. That address is
//! where tokio has allocated the task, so that its future, too, knows it: it lies in the first [`ALIGNMENT`]
//! bytes, or else the waker is one of the crowd's.

use super::{crowd, tell};
use crate::here::{HERE, Here};
use crate::living::Living;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
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

/// Where the wakers of a task find the user thread, from the first that is kept until the task ends.
struct Place {
    /// The data of the task's wakers, 0 where nobody has the place.
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

    /// Gives it to a task, if it is free.
    fn take(&self, task: usize, thread: u64) -> bool {
        // Relaxed: nobody looks for the task before the store below has reached them with one of its wakers.
        let free = self.task.compare_exchange(0, task, Relaxed, Relaxed).is_ok();
        if free {
            self.thread.store(thread, Release); // with `told`
        }
        free
    }

    /// Takes it from the task, if it is this one's.
    fn leave(&self, task: usize, thread: UserThread) -> bool {
        // Relaxed: its own from `take` until here, on whatever threads the task ran.
        let own = self.is_of(task) && self.thread.load(Relaxed) == thread.get().get();
        if own {
            self.task.store(0, Relaxed);
        }
        own
    }
}

/// The waker that a task is polled with.
pub(crate) enum TaskWaker<'a> {
    /// tokio's data, with the functions here.
    Telling {
        /// Not to be dropped.
        waker: ManuallyDrop<Waker>,
        /// What the thread polled before.
        before: (usize, Option<Living>),
        behind: PhantomData<&'a Waker>,
    },
    /// An allocated one.
    Own(Waker),
    /// tokio's.
    Untold(&'a Waker),
}

impl<'a> TaskWaker<'a> {
    /// A waker for the user thread that the task is, which is polled with tokio's waker `behind`, and whose
    /// future lies at address `within`. To be given back after the poll.
    #[inline]
    pub fn lend(living: Living, behind: &'a Waker, within: usize, here: &Here) -> Self {
        let task = behind.data().addr();
        if !is_tokios(behind) || within / ALIGNMENT * ALIGNMENT != task {
            return Self::Own(crowd::waker(living.thread(), behind));
        }
        // SAFETY: the functions need what those of `behind` need, which is borrowed; it is never dropped.
        let waker = ManuallyDrop::new(unsafe { Waker::new(behind.data(), &TELLING) });
        let before = (here.task.replace(task), here.living.replace(Some(living)));
        Self::Telling { waker, before, behind: PhantomData }
    }

    /// The poll of the task is over. Gives what it was lent for, which may be kept now.
    #[inline]
    pub fn give_back(&self, living: Living, here: &Here) -> Living {
        match self {
            Self::Telling { before: (task, before), .. } => {
                here.task.set(*task);
                here.living.replace(*before).unwrap_or(living)
            }
            Self::Own(_) => living.kept(),
            Self::Untold(_) => living,
        }
    }
}

impl Deref for TaskWaker<'_> {
    type Target = Waker;

    #[inline]
    fn deref(&self) -> &Waker {
        match self {
            Self::Telling { waker, .. } => waker,
            Self::Own(waker) => waker,
            Self::Untold(waker) => waker,
        }
    }
}

/// Whether a waker is one of tokio's own for its tasks.
fn is_tokios(waker: &Waker) -> bool {
    let functions = ptr::from_ref(waker.vtable()).cast_mut();
    // Relaxed: what is behind the pointer was there before the program ran.
    let known = match TOKIOS.load(Relaxed) {
        null if null.is_null() => TOKIOS
            .compare_exchange(null, functions, Relaxed, Relaxed)
            .map_or_else(|known| known, |_| functions),
        known => known,
    };
    ptr::eq(known, functions)
}

/// The task whose future lies at address `within` ends: its wakers tell nothing any more.
pub(crate) fn retire_within(within: usize, thread: UserThread) {
    // Relaxed: the task's own wakers have stored it, if it has any that tell.
    if TOKIOS.load(Relaxed).is_null() {
        return;
    }
    let task = within / ALIGNMENT * ALIGNMENT;
    if !place(task).leave(task, thread) {
        crowd::retire(thread);
    }
}

/// Tells the wake of a task by its waker's data, if it has not ended.
fn told(task: *const ()) {
    let (task, place) = (task.addr(), place(task.addr()));
    if place.is_of(task) {
        // With `take`: whoever's thread this is, the second look sees that one's task, or a later one. It
        // cannot be this task's again, whose address nobody else has as long as it has a waker.
        let thread = place.thread.load(Acquire);
        if place.is_of(task) {
            tell_number(thread);
        }
    } else if let Some(living) = polled(task) {
        tell(living.thread());
    }
}

fn tell_number(thread: u64) {
    UserThread::from_number(thread).into_iter().for_each(tell);
}

/// Who is being polled on this thread with a telling waker of this data.
fn polled(task: usize) -> Option<Living> {
    HERE.with(|here| here.living.get().filter(|_| here.task.get() == task))
}

/// Whether a task that is being polled here has its place: it takes it with the first waker that is kept,
/// unless another one has it.
fn has_place(task: usize, living: Living) -> bool {
    let place = place(task);
    if living.is_kept() {
        return place.is_of(task);
    }
    HERE.with(|here| here.living.set(Some(living.kept())));
    place.take(task, living.thread().get().get())
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
    // SAFETY: the caller's; not dropped.
    let waker = ManuallyDrop::new(unsafe { behind(task) });
    // One that is kept, of a task that is being polled.
    if let Some(living) = polled(task.addr())
        && !has_place(task.addr(), living)
    {
        return raw(crowd::waker(living.thread(), &waker));
    }
    let clone = (*waker).clone();
    match clone.will_wake(&waker) {
        true => RawWaker::new(ManuallyDrop::new(clone).data(), &TELLING),
        false => raw(clone),
    }
}

/// A waker's parts.
fn raw(waker: Waker) -> RawWaker {
    let waker = ManuallyDrop::new(waker);
    RawWaker::new(waker.data(), waker.vtable())
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
    fn a_waker_of_nobody_known_is_told_by_an_own_one() {
        // tokio's functions are known from here on.
        poll_and_cancel(Kept::default());
        let (behind, thread) = (waker(ALIGNMENT), thread(1 << 40));
        let lent = HERE.with(|here| TaskWaker::lend(thread.into(), &behind, ALIGNMENT, here));
        assert!(matches!(&lent, TaskWaker::Own(_)));
        HERE.with(|here| assert!(lent.give_back(thread.into(), here).is_kept()));
        let again = HERE.with(|here| TaskWaker::lend(thread.into(), &behind, ALIGNMENT, here));
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
            assert!(matches!(&lent, TaskWaker::Telling { .. }), "tokio has tasks laid out in another way");
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
