//! The mutex.

use core::fmt;
use std::sync::{self, LockResult, TryLockResult};

use super::call::{Call, address};
use super::events::Kind;
use super::held::{Held, had, hold, tried};
use super::like_std::like_std;

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = Held<sync::MutexGuard<'a, T>>;

/// An instrumented [`std::sync::Mutex`].
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

like_std!(Mutex);

impl<T: ?Sized> Mutex<T> {
    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let call = Call::new(self, Kind::Mutex);
        hold(address(self), call.take(|| had(self.0.try_lock()), || self.0.lock()))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned, or locked.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let call = Call::new(self, Kind::Mutex);
        tried(address(self), call.attempt(|| had(self.0.try_lock())))
    }
}
