//! The wakers that instrumented futures hand to what they wait for: they tell the wake, and pass it on.
//!
//! One that a task runs inside has a waker that is allocated ([`OwnWaker`]). The waker of a task itself needs
//! none: see [`task`].

mod crowd;
mod task;

pub(crate) use self::task::{TaskWaker, retire_within};

use crate::here::could_go_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};
use tracewing::user_thread::{self, UserThread};

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

impl Told {
    fn new(thread: UserThread, behind: Waker) -> Arc<Self> {
        Arc::new(Self { thread, counts: AtomicBool::new(true), behind })
    }

    /// It tells no more.
    fn retire(&self) {
        self.counts.store(false, Relaxed);
    }
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

/// The waker of a future that anybody polls with any waker: allocated when it is first asked for, the same as
/// long as the future is polled with one waker.
#[derive(Default)]
pub(crate) struct OwnWaker(Option<(Arc<Told>, Waker)>);

impl OwnWaker {
    /// A waker for the user thread that passes wakes on to `behind`.
    pub fn of(&mut self, thread: UserThread, behind: &Waker) -> &Waker {
        if self.0.as_ref().is_some_and(|(told, _)| !told.behind.will_wake(behind)) {
            self.retire();
        }
        let (_, waker) = self.0.get_or_insert_with(|| {
            let told = Told::new(thread, behind.clone());
            (told.clone(), told.into())
        });
        waker
    }

    /// Clones that are still about wake nobody that could be told.
    pub fn retire(&mut self) {
        self.0.take().into_iter().for_each(|(told, _)| told.retire());
    }
}

impl Drop for OwnWaker {
    fn drop(&mut self) {
        self.retire();
    }
}
