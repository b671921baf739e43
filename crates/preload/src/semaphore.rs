//! Semaphores. Their functions report errors in `errno`, and waiting for one is a cancellation point even if
//! it does not block.

use core::ffi::c_int;

use libc::{clockid_t, timespec};
use tracewing::emit;
use tracewing::sync::events::{Kind, Posted};

use crate::caller::with_caller;
use crate::next::pass_on;
use crate::take::Call;
use crate::{Object, address};

// SAFETY: POSIX's declaration.
unsafe extern "C-unwind" {
    safe fn pthread_testcancel();
}

with_caller! {
    sem_wait / 1 => wait;
    sem_trywait / 1 => try_wait;
    sem_timedwait / 2 => timed_wait;
    sem_clockwait / 3 => clock_wait;
    sem_post / 1 => post;
}

/// # Safety
/// As for `sem_wait`. Likewise below, each for the function of its name.
#[inline(always)]
unsafe fn take(lock: *mut Object, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    pthread_testcancel();
    with_errno(|| {
        let attempt = || match error(|| pass_on!(SEM_TRYWAIT(lock))) {
            libc::EAGAIN => libc::EBUSY,
            answer => answer,
        };
        // A semaphore has no owner.
        Call { lock, caller, kind: Kind::Semaphore }.take(attempt, || error(wait), || 0)
    })
}

unsafe extern "C-unwind" fn wait(lock: *mut Object, caller: u64) -> c_int {
    let wait = || pass_on!(SEM_WAIT(lock));
    // SAFETY: the caller's.
    unsafe { take(lock, caller, wait) }
}

unsafe extern "C-unwind" fn try_wait(lock: *mut Object, caller: u64) -> c_int {
    let call = Call { lock, caller, kind: Kind::Semaphore };
    with_errno(|| call.attempt(|| error(|| pass_on!(SEM_TRYWAIT(lock)))))
}

unsafe extern "C-unwind" fn timed_wait(lock: *mut Object, until: *const timespec, caller: u64) -> c_int {
    let wait = || pass_on!(SEM_TIMEDWAIT(lock, until));
    // SAFETY: the caller's.
    unsafe { take(lock, caller, wait) }
}

unsafe extern "C-unwind" fn clock_wait(
    lock: *mut Object,
    clock: clockid_t,
    until: *const timespec,
    caller: u64,
) -> c_int {
    let wait = || pass_on!(SEM_CLOCKWAIT(lock, clock, until));
    // SAFETY: the caller's.
    unsafe { take(lock, caller, wait) }
}

unsafe extern "C-unwind" fn post(lock: *mut Object, caller: u64) -> c_int {
    emit!(Posted { lock: address(lock), caller });
    pass_on!(SEM_POST(lock))
}

/// Converts -1 and `errno` to an error number.
fn error(call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: always a valid place, the thread's own.
    if call() == 0 { 0 } else { unsafe { *libc::__errno_location() } }
}

/// Converts an error number to -1 and `errno`, which stays unchanged on success.
fn with_errno(call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: always a valid place, the thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let answer = call();
    // SAFETY: as above.
    unsafe { *errno = if answer == 0 { before } else { answer } };
    if answer == 0 { 0 } else { -1 }
}
