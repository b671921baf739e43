//! Read-write locks.

use core::ffi::c_int;

use libc::{clockid_t, timespec};
use tracewing::sync::events::Kind;

use crate::Object;
use crate::caller::with_caller;
use crate::next::pass_on;
use crate::take::{Call, number_at, release};

/// Offset of the writer's thread id in a lock: `__cur_writer` of glibc's `struct __pthread_rwlock_arch_t`.
const WRITER: usize = 24;

with_caller! {
    pthread_rwlock_rdlock / 1 => read;
    pthread_rwlock_tryrdlock / 1 => try_read;
    pthread_rwlock_timedrdlock / 2 => timed_read;
    pthread_rwlock_clockrdlock / 3 => clock_read;
    pthread_rwlock_wrlock / 1 => write;
    pthread_rwlock_trywrlock / 1 => try_write;
    pthread_rwlock_timedwrlock / 2 => timed_write;
    pthread_rwlock_clockwrlock / 3 => clock_write;
}

/// # Safety
/// As for `pthread_rwlock_rdlock`. Likewise below, each for the function of its name.
#[inline(always)]
unsafe fn take_to_read(lock: *mut Object, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    let attempt = || pass_on!(RWLOCK_TRYRDLOCK(lock));
    // SAFETY: a read-write lock (the caller's).
    let owner = || unsafe { number_at(lock, WRITER) };
    Call { lock, caller, kind: Kind::Read }.take(attempt, wait, owner)
}

#[inline(always)]
unsafe fn take_to_write(lock: *mut Object, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    let attempt = || pass_on!(RWLOCK_TRYWRLOCK(lock));
    // SAFETY: a read-write lock (the caller's).
    let owner = || unsafe { number_at(lock, WRITER) };
    Call { lock, caller, kind: Kind::Write }.take(attempt, wait, owner)
}

unsafe extern "C-unwind" fn read(lock: *mut Object, caller: u64) -> c_int {
    let wait = || pass_on!(RWLOCK_RDLOCK(lock));
    // SAFETY: the caller's.
    unsafe { take_to_read(lock, caller, wait) }
}

unsafe extern "C-unwind" fn try_read(lock: *mut Object, caller: u64) -> c_int {
    Call { lock, caller, kind: Kind::Read }.attempt(|| pass_on!(RWLOCK_TRYRDLOCK(lock)))
}

unsafe extern "C-unwind" fn timed_read(lock: *mut Object, until: *const timespec, caller: u64) -> c_int {
    let wait = || pass_on!(RWLOCK_TIMEDRDLOCK(lock, until));
    // SAFETY: the caller's.
    unsafe { take_to_read(lock, caller, wait) }
}

unsafe extern "C-unwind" fn clock_read(
    lock: *mut Object,
    clock: clockid_t,
    until: *const timespec,
    caller: u64,
) -> c_int {
    let wait = || pass_on!(RWLOCK_CLOCKRDLOCK(lock, clock, until));
    // SAFETY: the caller's.
    unsafe { take_to_read(lock, caller, wait) }
}

unsafe extern "C-unwind" fn write(lock: *mut Object, caller: u64) -> c_int {
    let wait = || pass_on!(RWLOCK_WRLOCK(lock));
    // SAFETY: the caller's.
    unsafe { take_to_write(lock, caller, wait) }
}

unsafe extern "C-unwind" fn try_write(lock: *mut Object, caller: u64) -> c_int {
    Call { lock, caller, kind: Kind::Write }.attempt(|| pass_on!(RWLOCK_TRYWRLOCK(lock)))
}

unsafe extern "C-unwind" fn timed_write(lock: *mut Object, until: *const timespec, caller: u64) -> c_int {
    let wait = || pass_on!(RWLOCK_TIMEDWRLOCK(lock, until));
    // SAFETY: the caller's.
    unsafe { take_to_write(lock, caller, wait) }
}

unsafe extern "C-unwind" fn clock_write(
    lock: *mut Object,
    clock: clockid_t,
    until: *const timespec,
    caller: u64,
) -> c_int {
    let wait = || pass_on!(RWLOCK_CLOCKWRLOCK(lock, clock, until));
    // SAFETY: the caller's.
    unsafe { take_to_write(lock, caller, wait) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_rwlock_unlock(lock: *mut Object) -> c_int {
    release(lock, || pass_on!(RWLOCK_UNLOCK(lock)))
}
