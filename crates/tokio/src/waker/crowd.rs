//! Wakers of tasks whose place in the table of [`super::task`] is taken: allocated, and kept per user thread
//! until it ends.

use super::RecordingWaker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tracewing::user_thread::UserThread;

type Part = BTreeMap<UserThread, Arc<RecordingWaker>>;

/// In parts with a lock each, so that workers seldom contend.
static PARTS: [Mutex<Part>; 32] = [const { Mutex::new(Part::new()) }; 32];

static COUNT: AtomicUsize = AtomicUsize::new(0);

fn part(thread: UserThread) -> MutexGuard<'static, Part> {
    // A panic leaves the map whole.
    PARTS[thread.get().get() as usize % PARTS.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The waker of a user thread, which forwards wakes to `inner`; the same one for each call until it
/// [retires](retire).
pub(super) fn waker(thread: UserThread, inner: &Waker) -> Waker {
    let mut part = part(thread);
    let waker = part.entry(thread).or_insert_with(|| {
        COUNT.fetch_add(1, Relaxed); // before the same task looks, on whatever thread
        RecordingWaker::new(thread, inner.clone())
    });
    waker.clone().into()
}

/// Removes the waker of a user thread that has ended.
pub(super) fn retire(thread: UserThread) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    // Dropped after the lock is free again: it may hold the last reference to a task.
    let waker = part(thread).remove(&thread);
    if let Some(waker) = waker {
        COUNT.fetch_sub(1, Relaxed);
        waker.retire();
    }
}
