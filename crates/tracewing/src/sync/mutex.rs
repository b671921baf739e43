//! The mutex.

use core::fmt;
use std::sync::{self, LockResult, TryLockResult};

use super::call::{Call, address};
use super::events::Kind;
use super::held::{Held, had, hold, tried};

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = Held<sync::MutexGuard<'a, T>>;

/// An instrumented [`std::sync::Mutex`].
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// As the standard library's.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

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

    /// As the standard library's.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    /// As the standard library's.
    pub fn clear_poison(&self) {
        self.0.clear_poison();
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
