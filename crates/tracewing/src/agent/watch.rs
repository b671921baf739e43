//! For bridges from other instrumentation, which have switches of their own: whether the process is recorded,
//! and notification of changes to what is enabled.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// A bit for each recording that the process takes part in.
static MEMBERS: AtomicU32 = AtomicU32::new(0);

/// How often [`tell`] was called, or the process was forked.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// A registered watcher; it is never freed.
struct Watcher {
    call: Box<dyn Fn() + Send + Sync>,
    before: *const Watcher,
}

/// The newest watcher. No lock, which a forked child might find taken.
struct Watchers(AtomicPtr<Watcher>);

static OF_CHANGES: Watchers = Watchers::none();
/// Of recordings that have begun while the process runs.
static OF_ATTACHING: Watchers = Watchers::none();

impl Watchers {
    const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn add(&self, call: impl Fn() + Send + Sync + 'static) {
        let new = Box::leak(Box::new(Watcher { call: Box::new(call), before: ptr::null() }));
        // Release, with `call`: what was just made is there.
        let _ = self.0.fetch_update(Release, Relaxed, |newest| {
            new.before = newest;
            Some(&raw mut *new)
        });
    }

    fn call(&self) {
        // Acquire, with `add`: what it has made is there.
        let mut next: *const Watcher = self.0.load(Acquire);
        // SAFETY: null, or a watcher, which no code changes or frees any more.
        while let Some(watcher) = unsafe { next.as_ref() } {
            (watcher.call)();
            next = watcher.before;
        }
    }
}

/// Whether the process takes part in any recording: one relaxed load.
pub fn is_recorded() -> bool {
    MEMBERS.load(Relaxed) != 0
}

/// A number that differs after every change that [`on_change`] reports, and in a forked child: one relaxed
/// load.
#[inline]
pub fn changes() -> u32 {
    CHANGES.load(Relaxed)
}

/// Registers `watcher` to be called whenever a recording has begun, ended, or changed what it enables, once
/// that is in force. It is called on the agent's thread, before the recorder learns that the change is done;
/// or on the thread that begins or ends a [`Session`](crate::Session). It must not wait for a thread that
/// emits.
pub fn on_change(watcher: fn()) {
    OF_CHANGES.add(watcher);
}

/// Registers `report` to be called whenever a recording begins that the running process joins: one that
/// attaches to it, or records the programs of another recording (`record --with`), or was too late at the
/// program's start. Events that it emits belong to that recording, and to others that are running. Use it to
/// repeat facts that were reported once, before any recording: which parts the process has, their names, what
/// is open.
///
/// It is called on an agent thread, once the recording's event rules are in force. It must not wait for a
/// thread that emits. It cannot be unregistered.
///
/// ```
/// # #[derive(tracewing::Event)]
/// # #[event(provider = "shop")]
/// # struct Configured { workers: u32 }
/// tracewing::on_attach(|| {
///     tracewing::emit!(Configured { workers: 4 });
/// });
/// ```
pub fn on_attach(report: impl Fn() + Send + Sync + 'static) {
    OF_ATTACHING.add(report);
}

/// The process has joined a recording while it runs. The caller has no lock.
pub(super) fn attached() {
    // What a panic has to say has been said.
    let _ = std::panic::catch_unwind(|| OF_ATTACHING.call());
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

/// Calls all watchers. The caller must hold no lock.
pub(super) fn notify() {
    describe_again();
    OF_CHANGES.call();
}
