//! For bridges from other instrumentation, which have switches of their own: whether the process is recorded,
//! and word of every change of what is wanted.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// A bit for each recording that the process takes part in.
static MEMBERS: AtomicU32 = AtomicU32::new(0);

/// How often [`tell`] was called, or the process was forked.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// One of those to be told. It stays for ever.
struct Watcher {
    call: fn(),
    before: *const Watcher,
}

/// The newest one. No lock, which a forked child might find taken.
static NEWEST: AtomicPtr<Watcher> = AtomicPtr::new(ptr::null_mut());

/// Whether the process takes part in any recording: one relaxed load.
pub fn is_recorded() -> bool {
    MEMBERS.load(Relaxed) != 0
}

/// A number that is another one after whatever [`on_change`] tells of, and in a forked child: one relaxed
/// load.
#[inline]
pub fn changes() -> u32 {
    CHANGES.load(Relaxed)
}

/// From now on `watcher` is called whenever a recording has begun, ended, or changed what it wants, and that
/// is in force. It is called on the agent's thread, before the recorder is told that the change is made; or
/// on the thread that begins or ends a [`Session`](crate::Session). It must not wait for a thread that emits.
pub fn on_change(watcher: fn()) {
    let new = Box::leak(Box::new(Watcher { call: watcher, before: ptr::null() }));
    // Release, with `tell`: what was just made is there.
    let _ = NEWEST.fetch_update(Release, Relaxed, |newest| {
        new.before = newest;
        Some(&raw mut *new)
    });
}

/// The process is a member of the recording in a slot, or is no longer.
pub(super) fn set_member(slot: usize, is_member: bool) {
    match is_member {
        true => MEMBERS.fetch_or(1 << slot, Relaxed),
        false => MEMBERS.fetch_and(!(1 << slot), Relaxed),
    };
}

/// What was described is described again, sooner or later.
pub(super) fn describe_again() {
    CHANGES.fetch_add(1, Relaxed); // alone: nothing else goes with it
}

/// Tells all watchers. The caller has no lock.
pub(super) fn tell() {
    describe_again();
    // Acquire, with `on_change`: what it has made is there.
    let mut next: *const Watcher = NEWEST.load(Acquire);
    // SAFETY: null, or a watcher, which nobody changes or frees any more.
    while let Some(watcher) = unsafe { next.as_ref() } {
        (watcher.call)();
        next = watcher.before;
    }
}
