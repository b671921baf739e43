//! What all locks share: they are tried, waited for if that fails, and given back, and each of that is told.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use tracewing::emit;
use tracewing::sync::events::{Acquired, Kind, NotReleased, Refused, Released, Requested};

use crate::chain;
use crate::start::are_locks_recorded;
use crate::{Object, address};

/// One call for a lock.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) lock: *mut Object,
    /// Where it returns to.
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

    /// Takes the lock by `attempt`, which does not wait, or where that gives `EBUSY` by `wait`. Both give an
    /// error number or 0. `owner` is asked when the attempt has failed, and gives the thread that has the
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
            chain::tell(self.lock, self.caller);
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
            chain::tell(lock, caller);
        }
        let answer = wait();
        if is_taken(answer) {
            self.acquired(true)
        } else {
            self.refused(answer)
        }
        answer
    }

    /// Takes the lock if it can be had at once.
    #[inline(always)]
    pub(crate) fn attempt(self, attempt: impl FnOnce() -> c_int) -> c_int {
        if !are_locks_recorded() {
            return attempt();
        }
        if chain::of_all() {
            chain::tell(self.lock, self.caller);
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

/// Whether the lock is the caller's now: also where it was that of a process that has died (`EOWNERDEAD`).
fn is_taken(answer: c_int) -> bool {
    answer == 0 || answer == libc::EOWNERDEAD
}

/// Gives a lock back.
#[inline(always)]
pub(crate) fn release(lock: *mut Object, release: impl FnOnce() -> c_int) -> c_int {
    // Before, since afterwards it is somebody else's, and may be gone.
    emit!(Released { lock: address(lock) });
    let answer = release();
    if answer != 0 {
        emit!(NotReleased { lock: address(lock), error: answer });
    }
    answer
}

/// The number at this place in a lock.
///
/// # Safety
/// `lock` is one of the C library's, in which an aligned `int` lies that many bytes behind the beginning.
pub(crate) unsafe fn number_at(lock: *mut Object, offset: usize) -> i32 {
    // SAFETY: the caller's; threads change it all the time, as atomically as a store of four bytes is.
    let number = unsafe { &*lock.byte_add(offset).cast::<AtomicI32>() };
    number.load(Relaxed) // only shown, or a hint
}
