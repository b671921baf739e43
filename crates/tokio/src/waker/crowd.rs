//! Wakers of tasks that find their place in the table of [`super::task`] taken: allocated, and kept by user
//! thread until that ends.

use super::Told;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tracewing::user_thread::UserThread;

type Part = BTreeMap<UserThread, Arc<Told>>;

/// In parts with a lock each, so that workers seldom meet.
static PARTS: [Mutex<Part>; 32] = [const { Mutex::new(Part::new()) }; 32];

/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn part(thread: UserThread) -> MutexGuard<'static, Part> {
    // Whatever panicked left the map whole.
    PARTS[thread.get().get() as usize % PARTS.len()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The waker of a user thread, which passes wakes on to `behind`, the same for each call until it
/// [retires](retire).
pub(super) fn waker(thread: UserThread, behind: &Waker) -> Waker {
    let mut part = part(thread);
    let told = part.entry(thread).or_insert_with(|| {
        COUNT.fetch_add(1, Relaxed); // before the same task looks, on whatever thread
        Told::new(thread, behind.clone())
    });
    told.clone().into()
}

/// The user thread has ended.
pub(super) fn retire(thread: UserThread) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    // Dropped when the lock is free again: it may be the last that refers to a task.
    let told = part(thread).remove(&thread);
    if let Some(told) = told {
        COUNT.fetch_sub(1, Relaxed);
        told.retire();
    }
}
