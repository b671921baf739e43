//! Prepares the agent for a fork: its lock is consistent, and the child gets buffers and an agent of its own.
//!
//! Handlers of `pthread_atfork`. They do not run for `vfork`, `posix_spawn`, `_Fork` and raw system calls:
//! such a child has no buffers, unless it shares its parent's, and receives no changes.
//!
//! Under ThreadSanitizer a child of a program with threads is ended when it starts one: there the child gets
//! no agent.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

use super::{control, identity, names, spare, system, watch};

/// What the forking thread holds until the fork is over.
struct Held {
    lock: control::Hold,
    signals: libc::sigset_t,
}

struct Place(UnsafeCell<Option<Held>>);

// SAFETY: only accessed by the handlers, between `prepare`, which has got the lock, and the handler that
// releases it.
unsafe impl Sync for Place {}

/// Whether children may have threads.
static THREADS_IN_CHILDREN: AtomicBool = AtomicBool::new(true);

static HELD: Place = Place(UnsafeCell::new(None));

/// What a child that may have threads does at last.
static IN_CHILD: OnceLock<fn()> = OnceLock::new();

/// Installs the handlers. In a child that may have threads, `in_child` begins those of the agent.
pub(super) fn notice(in_child: fn()) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = IN_CHILD.set(in_child); // the first time
        // SAFETY: a NUL-terminated name; the symbol is only compared with null.
        let sanitized = unsafe { !libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()).is_null() };
        THREADS_IN_CHILDREN.store(!sanitized, Relaxed); // before the handlers are there
        // SAFETY: functions of the right type, in an object that stays loaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(self::in_child)) };
    });
}

unsafe extern "C" fn prepare() {
    let (mut all, mut signals) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are initialised by the calls that take them.
    let signals = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), signals.as_mut_ptr());
        signals.assume_init()
    };
    let lock = control::hold();
    // SAFETY: this thread has the lock.
    unsafe { *HELD.0.get() = Some(Held { lock, signals }) };
    system::keeping_errno(spare::offer);
}

fn release() {
    // SAFETY: the thread that has the lock, or its copy in the child.
    if let Some(held) = unsafe { (*HELD.0.get()).take() } {
        drop(held.lock);
        // SAFETY: the set that `prepare` was given.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const held.signals, core::ptr::null_mut()) };
    }
}

unsafe extern "C" fn in_parent() {
    system::keeping_errno(spare::give_away);
    release();
}

unsafe extern "C" fn in_child() {
    if identity::forked() {
        names::forked();
    }
    spare::take_over();
    release();
    watch::describe_again();
    crate::words::forget_spans();
    if THREADS_IN_CHILDREN.load(Relaxed) {
        IN_CHILD.get().into_iter().for_each(|begin| begin());
    }
}
