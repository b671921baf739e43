//! The wakers that instrumented futures pass on to what they wait for: they record the wake-up and forward
//! it.
//!
//! A future inside a task has an allocated waker ([`OwnWaker`]). The waker of a task itself needs no
//! allocation: see [`task`].

mod crowd;
mod task;

pub(crate) use self::task::{TaskWaker, retire_within};

use crate::here::could_continue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};
use tracewing::user_thread::{self, UserThread};

/// Records that the user thread is woken.
fn record_wake(thread: UserThread) {
    user_thread::wake(thread);
    if user_thread::current() == Some(thread) {
        could_continue();
    }
}

/// Wakes a user thread.
pub(crate) struct RecordingWaker {
    thread: UserThread,
    /// Whether its wakes still make the user thread ready.
    counts: AtomicBool,
    inner: Waker,
}

impl RecordingWaker {
    fn new(thread: UserThread, inner: Waker) -> Arc<Self> {
        Arc::new(Self { thread, counts: AtomicBool::new(true), inner })
    }

    /// Stops recording wakes.
    fn retire(&self) {
        self.counts.store(false, Relaxed);
    }
}

impl Wake for RecordingWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.counts.load(Relaxed) {
            record_wake(self.thread);
        }
        self.inner.wake_by_ref();
    }
}

/// The waker of a future that may be polled with any waker: allocated on first use, and reused while the
/// future is polled with the same waker.
#[derive(Default)]
pub(crate) struct OwnWaker(Option<(Arc<RecordingWaker>, Waker)>);

impl OwnWaker {
    /// A waker for the user thread that forwards wakes to `inner`.
    pub(crate) fn of(&mut self, thread: UserThread, inner: &Waker) -> &Waker {
        if self.0.as_ref().is_some_and(|(waker, _)| !waker.inner.will_wake(inner)) {
            self.retire();
        }
        let (_, waker) = self.0.get_or_insert_with(|| {
            let waker = RecordingWaker::new(thread, inner.clone());
            (waker.clone(), waker.into())
        });
        waker
    }

    /// Stops recording: clones that still exist belong to an ended user thread.
    pub(crate) fn retire(&mut self) {
        self.0.take().into_iter().for_each(|(waker, _)| waker.retire());
    }
}

impl Drop for OwnWaker {
    fn drop(&mut self) {
        self.retire();
    }
}
