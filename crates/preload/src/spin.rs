//! Spin locks.

use core::ffi::c_int;

use tracewing::sync::events::Kind;

use crate::Object;
use crate::caller::with_caller;
use crate::next::pass_on;
use crate::take::{Call, release};

with_caller! {
    pthread_spin_lock / 1 => lock;
    pthread_spin_trylock / 1 => try_lock;
}

/// # Safety
/// As for `pthread_spin_lock`.
unsafe extern "C-unwind" fn lock(lock: *mut Object, caller: u64) -> c_int {
    let (attempt, wait) = (|| pass_on!(SPIN_TRYLOCK(lock)), || pass_on!(SPIN_LOCK(lock)));
    // A spin lock does not store its owner.
    Call { lock, caller, kind: Kind::Spin }.take(attempt, wait, || 0)
}

/// # Safety
/// As for `pthread_spin_trylock`.
unsafe extern "C-unwind" fn try_lock(lock: *mut Object, caller: u64) -> c_int {
    Call { lock, caller, kind: Kind::Spin }.attempt(|| pass_on!(SPIN_TRYLOCK(lock)))
}

/// # Safety
/// As for `pthread_spin_unlock`.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_spin_unlock(lock: *mut Object) -> c_int {
    release(lock, || pass_on!(SPIN_UNLOCK(lock)))
}
