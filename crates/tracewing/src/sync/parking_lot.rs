//! Instrumented versions of the locks of the crate `parking_lot`: its own types with other raw locks in them.
//! Upgradable reads are missing.
//!
//! ```
//! use tracewing::sync::parking_lot::{Condvar, Mutex};
//!
//! static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//!
//! QUEUE.lock().push(7);
//! FILLED.notify_one();
//! let mut queue = QUEUE.lock();
//! FILLED.wait_while(&mut queue, |queue| queue.is_empty());
//! assert_eq!(*queue, [7]);
//! ```

use std::time::{Duration, Instant};

use parking_lot::lock_api::{self, RawMutex as _, RawRwLock as _};
use parking_lot::{RawThreadId, WaitTimeoutResult};

use super::call::{Call, TIMED_OUT, address, released};
use super::events::{ConditionSignalled, ConditionWait, ConditionWoken, Kind};
use crate::emit;

/// An instrumented [`parking_lot::Mutex`].
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// Holds a [`Mutex`], and gives access to a part of its content.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// An instrumented [`parking_lot::ReentrantMutex`]: only the first acquisition and the last release of a
/// thread are recorded.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Holds a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// An instrumented [`parking_lot::RwLock`].
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Holds a [`RwLock`], for reading.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Holds a [`RwLock`], for writing.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// `parking_lot`'s raw mutex, instrumented.
pub struct RawMutex(parking_lot::RawMutex);

fn when(is_so: bool) -> Option<()> {
    is_so.then_some(())
}

// SAFETY: of an acquisition there is one where parking_lot's mutex gives one, and each release is passed on.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self(parking_lot::RawMutex::INIT);

    type GuardMarker = <parking_lot::RawMutex as lock_api::RawMutex>::GuardMarker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        Call::new(self, Kind::Mutex).take(|| when(self.0.try_lock()), || self.0.lock());
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> bool {
        Call::new(self, Kind::Mutex).attempt(|| when(self.0.try_lock())).is_some()
    }

    #[inline]
    unsafe fn unlock(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock_fair() };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        let call = Call::new(self, Kind::Mutex);
        call.take_in_time(|| when(self.0.try_lock()), || when(self.0.try_lock_for(timeout))).is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        let call = Call::new(self, Kind::Mutex);
        call.take_in_time(|| when(self.0.try_lock()), || when(self.0.try_lock_until(timeout))).is_some()
    }
}

/// `parking_lot`'s raw read-write lock, instrumented.
pub struct RawRwLock(parking_lot::RawRwLock);

// SAFETY: as of the mutex.
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self(parking_lot::RawRwLock::INIT);

    type GuardMarker = <parking_lot::RawRwLock as lock_api::RawRwLock>::GuardMarker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        Call::new(self, Kind::Read).take(|| when(self.0.try_lock_shared()), || self.0.lock_shared());
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        Call::new(self, Kind::Read).attempt(|| when(self.0.try_lock_shared())).is_some()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock_shared() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) {
        Call::new(self, Kind::Write).take(|| when(self.0.try_lock_exclusive()), || self.0.lock_exclusive());
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        Call::new(self, Kind::Write).attempt(|| when(self.0.try_lock_exclusive())).is_some()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock_exclusive() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_exclusive()
    }
}

// SAFETY: as of the mutex.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.unlock_exclusive_fair() };
    }
}

// SAFETY: as of the mutex.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    #[inline]
    #[track_caller]
    unsafe fn downgrade(&self) {
        released(address(self));
        // SAFETY: the caller's.
        unsafe { self.0.downgrade() };
        Call::new(self, Kind::Read).acquired(false);
    }
}

// SAFETY: as of the mutex.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    #[track_caller]
    fn lock_shared_recursive(&self) {
        let call = Call::new(self, Kind::Read);
        call.take(|| when(self.0.try_lock_shared_recursive()), || self.0.lock_shared_recursive());
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive(&self) -> bool {
        Call::new(self, Kind::Read).attempt(|| when(self.0.try_lock_shared_recursive())).is_some()
    }
}

// SAFETY: as of the mutex.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        let call = Call::new(self, Kind::Read);
        let (attempt, wait) = (|| self.0.try_lock_shared(), || self.0.try_lock_shared_for(timeout));
        call.take_in_time(|| when(attempt()), || when(wait())).is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        let call = Call::new(self, Kind::Read);
        let (attempt, wait) = (|| self.0.try_lock_shared(), || self.0.try_lock_shared_until(timeout));
        call.take_in_time(|| when(attempt()), || when(wait())).is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        let call = Call::new(self, Kind::Write);
        let (attempt, wait) = (|| self.0.try_lock_exclusive(), || self.0.try_lock_exclusive_for(timeout));
        call.take_in_time(|| when(attempt()), || when(wait())).is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        let call = Call::new(self, Kind::Write);
        let (attempt, wait) = (|| self.0.try_lock_exclusive(), || self.0.try_lock_exclusive_until(timeout));
        call.take_in_time(|| when(attempt()), || when(wait())).is_some()
    }
}

/// An instrumented [`parking_lot::Condvar`]. parking_lot's own accepts only guards of parking_lot's own
/// mutex; an internal mutex, which notifiers take, ensures that no notification comes between the release of
/// a mutex and the sleep.
#[derive(Debug, Default)]
pub struct Condvar {
    condvar: parking_lot::Condvar,
    mutex: parking_lot::Mutex<()>,
}

impl Condvar {
    /// As `parking_lot`'s.
    pub const fn new() -> Self {
        Self { condvar: parking_lot::Condvar::new(), mutex: parking_lot::Mutex::new(()) }
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        self.signals(false);
        let _mutex = self.mutex.lock();
        self.condvar.notify_one()
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        self.signals(true);
        let _mutex = self.mutex.lock();
        self.condvar.notify_all()
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, held: &mut MutexGuard<'_, T>) {
        self.recorded(held, |guard| self.condvar.wait(guard), |()| false);
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(&self, held: &mut MutexGuard<'_, T>, timeout: Instant) -> WaitTimeoutResult {
        self.recorded(held, |guard| self.condvar.wait_until(guard, timeout), |result| result.timed_out())
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, held: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.recorded(held, |guard| self.condvar.wait_for(guard, timeout), |result| result.timed_out())
    }

    /// As `parking_lot`'s.
    #[track_caller]
    pub fn wait_while<T: ?Sized>(
        &self,
        held: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(held) {
            self.wait(held);
        }
    }

    #[inline(always)]
    #[track_caller]
    fn signals(&self, all: bool) {
        let call = Call::new(self, Kind::Mutex);
        emit!(ConditionSignalled { condition: address(self), caller: call.caller(), all });
    }

    #[track_caller]
    fn recorded<T: ?Sized, R>(
        &self,
        held: &mut MutexGuard<'_, T>,
        wait: impl FnOnce(&mut parking_lot::MutexGuard<'_, ()>) -> R,
        timed_out: impl FnOnce(&R) -> bool,
    ) -> R {
        let call = Call::new(self, Kind::Mutex);
        // SAFETY: it is given back only where it is taken again before `held` can be used.
        let raw = unsafe { lock_api::MutexGuard::mutex(held).raw() };
        let (condition, lock) = (address(self), address(raw));
        emit!(ConditionWait { condition, lock, caller: call.caller() });
        let mut mutex = self.mutex.lock();
        // SAFETY: `held` has it, and cannot be used meanwhile: it is borrowed. Nothing below panics until it
        // is taken again.
        unsafe { raw.0.unlock() };
        let result = wait(&mut mutex);
        drop(mutex);
        raw.0.lock();
        emit!(ConditionWoken { condition, lock, error: if timed_out(&result) { TIMED_OUT } else { 0 } });
        result
    }
}
