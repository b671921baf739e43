//! For bridges from other instrumentation, which have switches of their own: whether the process is recorded, and word of every
//! change of what is wanted.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A bit for each recording that the process takes part in.
static MEMBERS: AtomicU32 = AtomicU32::new(0);

static WATCHERS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Whether the process takes part in any recording: one relaxed load.
pub fn is_recorded() -> bool {
    MEMBERS.load(Relaxed) != 0
}

/// From now on `watcher` is called whenever a recording has begun, ended, or changed what it wants, and that is in force. It is
/// called on the agent's thread, before the recorder is told that the change is made; or on the thread that begins or ends
/// a [`Session`](crate::Session). It must not wait for a thread that emits.
pub fn on_change(watcher: fn()) {
    WATCHERS.lock().unwrap_or_else(PoisonError::into_inner).push(watcher);
}

/// The process is a member of the recording in a slot, or is no longer.
pub(super) fn set_member(slot: usize, is_member: bool) {
    match is_member {
        true => MEMBERS.fetch_or(1 << slot, Relaxed),
        false => MEMBERS.fetch_and(!(1 << slot), Relaxed),
    };
}

/// Tells all watchers. The caller has no lock.
pub(super) fn tell() {
    let watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    watchers.into_iter().for_each(|watcher| watcher());
}
