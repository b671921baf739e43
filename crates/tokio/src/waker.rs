//! The waker that an instrumented future hands to what it waits for: tells the wake, and passes it on.

use std::cell::Cell;
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

/// Wakes a user thread.
struct Told {
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
            user_thread::wake(self.thread);
            if user_thread::current() == Some(self.thread) {
                could_go_on();
            }
        }
        self.behind.wake_by_ref();
    }
}

/// The waker of an instrumented future. It stays the same, and is not allocated again, as long as the future is polled with one
/// waker.
#[derive(Default)]
pub(crate) struct TellingWaker(Option<(Arc<Told>, Waker)>);

impl TellingWaker {
    /// A waker for the user thread that passes wakes on to `behind`.
    pub fn of(&mut self, thread: UserThread, behind: &Waker) -> &Waker {
        if self.0.as_ref().is_some_and(|(told, _)| !told.behind.will_wake(behind)) {
            self.retire();
        }
        let make = || {
            let told = Arc::new(Told { thread, counts: AtomicBool::new(true), behind: behind.clone() });
            (told.clone(), told.into())
        };
        &self.0.get_or_insert_with(make).1
    }

    /// Clones that are still about wake nobody that could be told.
    pub fn retire(&mut self) {
        if let Some((told, _)) = self.0.take() {
            told.counts.store(false, Relaxed);
        }
    }
}

impl Drop for TellingWaker {
    fn drop(&mut self) {
        self.retire();
    }
}
