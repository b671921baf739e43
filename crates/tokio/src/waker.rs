//! The wakers that instrumented futures hand to what they wait for: they tell the wake, and pass it on.
//!
//! One that a task runs inside has a waker that is allocated. The waker of a task itself needs none: see [`task`].

mod task;

use self::task::Place;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};
use tracewing::user_thread::{self, UserThread};

thread_local! {
    /// The user thread that runs here has said that it could go on.
    static COULD_GO_ON: Cell<bool> = const { Cell::new(false) };
}

/// The user thread that runs here could go on, though it is about to stop.
pub(crate) fn could_go_on() {
    COULD_GO_ON.set(true);
}

/// Whether somebody has said so, and says `next` instead.
pub(crate) fn exchange(next: bool) -> bool {
    COULD_GO_ON.replace(next)
}

/// Tells that the user thread is woken.
fn tell(thread: UserThread) {
    user_thread::wake(thread);
    if user_thread::current() == Some(thread) {
        could_go_on();
    }
}

/// Wakes a user thread.
pub(crate) struct Told {
    thread: UserThread,
    /// Its wakes still make the user thread ready.
    counts: AtomicBool,
    behind: Waker,
}

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.counts.load(Relaxed) {
            tell(self.thread);
        }
        self.behind.wake_by_ref();
    }
}

/// The waker of an instrumented future. It stays the same as long as the future is polled with one waker.
pub(crate) enum TellingWaker {
    /// Of a task that tokio polls with a waker of its own; and where its wakers find it, once it has told any.
    Task(Option<&'static Place>),
    /// Of a future that anybody polls with any waker. It is allocated when it is first asked for.
    Any(Option<(Arc<Told>, Waker)>),
}

/// A waker that is not to be dropped.
pub(crate) struct Lent<'a> {
    waker: ManuallyDrop<Waker>,
    owner: PhantomData<&'a Waker>,
}

impl<'a> Lent<'a> {
    /// # Safety
    /// A waker of these parts may be used, though not dropped, as long as `'a`.
    unsafe fn new(data: *const (), vtable: &'static std::task::RawWakerVTable) -> Self {
        // SAFETY: the caller's; it is never dropped.
        Self { waker: ManuallyDrop::new(unsafe { Waker::new(data, vtable) }), owner: PhantomData }
    }
}

impl Deref for Lent<'_> {
    type Target = Waker;

    fn deref(&self) -> &Waker {
        &self.waker
    }
}

impl TellingWaker {
    /// A waker for the user thread that passes wakes on to `behind`.
    pub fn of<'a>(&'a mut self, thread: UserThread, behind: &'a Waker) -> Lent<'a> {
        if let Self::Task(place) = self {
            *place = place.or_else(|| Place::take(behind, thread));
            if let Some(lent) = place.and_then(|place| place.lend(behind)) {
                return lent;
            }
            self.retire();
            *self = Self::Any(None);
        }
        let Self::Any(own) = self else { unreachable!("just made so") };
        if let Some((told, _)) = own
            && !told.behind.will_wake(behind)
        {
            told.counts.store(false, Relaxed);
            *own = None;
        }
        let (_, waker) = own.get_or_insert_with(|| {
            let told = Arc::new(Told { thread, counts: AtomicBool::new(true), behind: behind.clone() });
            (told.clone(), told.into())
        });
        // SAFETY: the parts of a waker that is borrowed.
        unsafe { Lent::new(waker.data(), waker.vtable()) }
    }

    /// Clones that are still about wake nobody that could be told.
    pub fn retire(&mut self) {
        match self {
            Self::Task(place) => place.take().into_iter().for_each(Place::leave),
            Self::Any(own) => {
                own.take().into_iter().for_each(|(told, _)| told.counts.store(false, Relaxed));
            }
        }
    }
}

impl Drop for TellingWaker {
    fn drop(&mut self) {
        self.retire();
    }
}
