//! Mutexes, of all types: normal, recursive, error-checking, adaptive, robust, with a priority protocol.

use core::ffi::c_int;

use libc::{clockid_t, timespec};
use tracewing::sync::events::Kind;

use crate::Object;
use crate::caller::with_caller;
use crate::next::pass_on;
use crate::take::{Call, number_at, release};

/// Offsets in glibc's `struct __pthread_mutex_s`: the word that is locked (`__lock`), the owner's thread id
/// (`__owner`), the type (`__kind`).
const WORD: usize = 0;
const OWNER: usize = 8;
const TYPE: usize = 16;

/// The bit of a robust mutex's type (`PTHREAD_MUTEX_ROBUST_NORMAL_NP`). Its word is the owner's thread id
/// with flags.
const ROBUST: i32 = 16;

with_caller! {
    pthread_mutex_lock / 1 => lock;
    pthread_mutex_trylock / 1 => try_lock;
    pthread_mutex_timedlock / 2 => timed_lock;
    pthread_mutex_clocklock / 3 => clock_lock;
}

/// # Safety
/// As for `pthread_mutex_lock`. Likewise below, each for the function of its name.
#[inline(always)]
unsafe fn take(mutex: *mut Object, caller: u64, wait: impl Fn() -> c_int) -> c_int {
    // SAFETY: a mutex (the caller's).
    let (owner, is_robust) = unsafe { (|| number_at(mutex, OWNER), number_at(mutex, TYPE) & ROBUST != 0) };
    let call = Call { lock: mutex, caller, kind: Kind::Mutex };
    if is_robust {
        // SAFETY: a mutex.
        return unsafe { take_robust(call, wait, owner) };
    }
    call.take(|| pass_on!(MUTEX_TRYLOCK(mutex)), wait, owner)
}

/// A robust mutex that cannot be recovered must not be tried: glibc's trylock leaves it locked. So its word
/// is read first.
#[cold]
unsafe fn take_robust(call: Call, wait: impl Fn() -> c_int, owner: impl FnOnce() -> i32) -> c_int {
    // SAFETY: a mutex (the caller's).
    let is_free = || unsafe { number_at(call.lock, WORD) }.cast_unsigned() & libc::FUTEX_TID_MASK == 0;
    call.take(|| if is_free() { wait() } else { libc::EBUSY }, &wait, owner)
}

unsafe extern "C-unwind" fn lock(mutex: *mut Object, caller: u64) -> c_int {
    let wait = || pass_on!(MUTEX_LOCK(mutex));
    // SAFETY: the caller's.
    unsafe { take(mutex, caller, wait) }
}

unsafe extern "C-unwind" fn try_lock(mutex: *mut Object, caller: u64) -> c_int {
    Call { lock: mutex, caller, kind: Kind::Mutex }.attempt(|| pass_on!(MUTEX_TRYLOCK(mutex)))
}

unsafe extern "C-unwind" fn timed_lock(mutex: *mut Object, until: *const timespec, caller: u64) -> c_int {
    let wait = || pass_on!(MUTEX_TIMEDLOCK(mutex, until));
    // SAFETY: the caller's.
    unsafe { take(mutex, caller, wait) }
}

unsafe extern "C-unwind" fn clock_lock(
    mutex: *mut Object,
    clock: clockid_t,
    until: *const timespec,
    caller: u64,
) -> c_int {
    let wait = || pass_on!(MUTEX_CLOCKLOCK(mutex, clock, until));
    // SAFETY: the caller's.
    unsafe { take(mutex, caller, wait) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_mutex_unlock(mutex: *mut Object) -> c_int {
    release(mutex, || pass_on!(MUTEX_UNLOCK(mutex)))
}
