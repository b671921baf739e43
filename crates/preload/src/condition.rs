//! Condition variables. A waiting thread does not hold the mutex meanwhile.

use core::ffi::c_int;

use libc::{clockid_t, timespec};
use tracewing::emit;
use tracewing::sync::events::{ConditionSignalled, ConditionWait, ConditionWoken};

use crate::caller::with_caller;
use crate::next::pass_on;
use crate::{Object, address};

with_caller! {
    pthread_cond_wait / 2 => wait;
    pthread_cond_timedwait / 3 => timed_wait;
    pthread_cond_clockwait / 4 => clock_wait;
    pthread_cond_signal / 1 => signal;
    pthread_cond_broadcast / 1 => broadcast;
}

#[inline(always)]
fn recorded(condition: *mut Object, mutex: *mut Object, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    let (condition, lock) = (address(condition), address(mutex));
    emit!(ConditionWait { condition, lock, caller });
    // A thread that is cancelled here does not come back.
    let error = wait();
    emit!(ConditionWoken { condition, lock, error });
    error
}

/// # Safety
/// As for `pthread_cond_wait`.
unsafe extern "C-unwind" fn wait(condition: *mut Object, mutex: *mut Object, caller: u64) -> c_int {
    recorded(condition, mutex, caller, || pass_on!(COND_WAIT(condition, mutex)))
}

/// # Safety
/// As for `pthread_cond_timedwait`.
unsafe extern "C-unwind" fn timed_wait(
    condition: *mut Object,
    mutex: *mut Object,
    until: *const timespec,
    caller: u64,
) -> c_int {
    recorded(condition, mutex, caller, || pass_on!(COND_TIMEDWAIT(condition, mutex, until)))
}

/// # Safety
/// As for `pthread_cond_clockwait`.
unsafe extern "C-unwind" fn clock_wait(
    condition: *mut Object,
    mutex: *mut Object,
    clock: clockid_t,
    until: *const timespec,
    caller: u64,
) -> c_int {
    recorded(condition, mutex, caller, || pass_on!(COND_CLOCKWAIT(condition, mutex, clock, until)))
}

/// # Safety
/// As for `pthread_cond_signal`.
unsafe extern "C-unwind" fn signal(condition: *mut Object, caller: u64) -> c_int {
    emit!(ConditionSignalled { condition: address(condition), caller, all: false });
    pass_on!(COND_SIGNAL(condition))
}

/// # Safety
/// As for `pthread_cond_broadcast`.
unsafe extern "C-unwind" fn broadcast(condition: *mut Object, caller: u64) -> c_int {
    emit!(ConditionSignalled { condition: address(condition), caller, all: true });
    pass_on!(COND_BROADCAST(condition))
}
