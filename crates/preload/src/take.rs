//! Common to all locks: they are tried, waited for if that fails, and released, and each step is recorded.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use tracewing::emit;
use tracewing::sync::events::{Acquired, Kind, NotReleased, Refused, Released, Requested};

use crate::chain;
use crate::start::are_locks_recorded;
use crate::{Object, address};

/// One call to take a lock.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) lock: *mut Object,
    /// Return address of the call.
    pub(crate) caller: u64,
    pub(crate) kind: Kind,
}

impl Call {
    #[inline(always)]
    fn acquired(self, waited: bool) {
        let Self { lock, caller, kind } = self;
        emit!(Acquired { lock: address(lock), caller: chain::noted(caller), kind, waited });
    }

    #[inline(always)]
    fn refused(self, error: c_int) {
        let Self { lock, caller, kind } = self;
        emit!(Refused { lock: address(lock), caller, kind, error });
    }

    /// Takes the lock by `attempt`, which does not wait, or by `wait` if that returns `EBUSY`. Both return an
    /// error number or 0. `owner` is called after a failed attempt, and returns the thread that holds the
    /// lock.
    #[inline(always)]
    pub(crate) fn take(
        self,
        attempt: impl FnOnce() -> c_int,
        wait: impl FnOnce() -> c_int,
        owner: impl FnOnce() -> i32,
    ) -> c_int {
        if !are_locks_recorded() {
            return wait();
        }
        let all = chain::of_all();
        if all {
            chain::record(self.lock, self.caller);
        }
        let answer = attempt();
        if is_taken(answer) {
            self.acquired(false);
            return answer;
        }
        if answer == libc::EBUSY {
            return self.wait(wait, owner, !all);
        }
        self.refused(answer);
        answer
    }

    #[cold]
    #[inline(never)]
    fn wait(self, wait: impl FnOnce() -> c_int, owner: impl FnOnce() -> i32, with_chain: bool) -> c_int {
        let Self { lock, caller, kind } = self;
        emit!(Requested { lock: address(lock), caller, kind, owner: owner() });
        if with_chain {
            chain::record(lock, caller);
        }
        let answer = wait();
        if is_taken(answer) {
            self.acquired(true)
        } else {
            self.refused(answer)
        }
        answer
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub(crate) fn attempt(self, attempt: impl FnOnce() -> c_int) -> c_int {
        if !are_locks_recorded() {
            return attempt();
        }
        if chain::of_all() {
            chain::record(self.lock, self.caller);
        }
        let answer = attempt();
        if is_taken(answer) {
            self.acquired(false)
        } else {
            self.refused(answer)
        }
        answer
    }
}

/// Whether the caller now holds the lock: even if its last owner was a process that has died (`EOWNERDEAD`).
fn is_taken(answer: c_int) -> bool {
    answer == 0 || answer == libc::EOWNERDEAD
}

#[inline(always)]
pub(crate) fn release(lock: *mut Object, release: impl FnOnce() -> c_int) -> c_int {
    // Before the release: afterwards the lock may belong to another thread, or be gone.
    emit!(Released { lock: address(lock) });
    let answer = release();
    if answer != 0 {
        emit!(NotReleased { lock: address(lock), error: answer });
    }
    answer
}

/// The number at this offset in a lock.
///
/// # Safety
/// `lock` is one of the C library's, with an aligned `int` at this offset.
pub(crate) unsafe fn number_at(lock: *mut Object, offset: usize) -> i32 {
    // SAFETY: the caller's; threads change it all the time, as atomically as a store of four bytes is.
    let number = unsafe { &*lock.byte_add(offset).cast::<AtomicI32>() };
    number.load(Relaxed) // only shown, or a hint
}
