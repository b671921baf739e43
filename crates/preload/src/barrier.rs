//! Barriers.

use core::ffi::c_int;

use tracewing::emit;
use tracewing::sync::events::{BarrierPassed, BarrierWait};

use crate::caller::with_caller;
use crate::next::pass_on;
use crate::{Object, address};

with_caller! {
    pthread_barrier_wait / 1 => wait;
}

/// # Safety
/// As for `pthread_barrier_wait`.
unsafe extern "C-unwind" fn wait(barrier: *mut Object, caller: u64) -> c_int {
    emit!(BarrierWait { barrier: address(barrier), caller });
    let answer = pass_on!(BARRIER_WAIT(barrier));
    // The last thread to arrive may have freed the barrier by now: only its address is used.
    emit!(BarrierPassed { barrier: address(barrier), serial: answer == libc::PTHREAD_BARRIER_SERIAL_THREAD });
    answer
}
