//! The read-write lock.

use core::fmt;
use std::sync::{self, LockResult, TryLockResult};

use super::call::{Call, address, released};
use super::events::Kind;
use super::held::{Held, had, hold, tried};
use super::like_std::like_std;

/// Holds a [`RwLock`], for reading.
pub type RwLockReadGuard<'a, T> = Held<sync::RwLockReadGuard<'a, T>>;
/// Holds a [`RwLock`], for writing.
pub type RwLockWriteGuard<'a, T> = Held<sync::RwLockWriteGuard<'a, T>>;

/// An instrumented [`std::sync::RwLock`].
#[derive(Default)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

like_std!(RwLock);

impl<T: ?Sized> RwLock<T> {
    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let call = Call::new(self, Kind::Read);
        hold(address(self), call.take(|| had(self.0.try_read()), || self.0.read()))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned, or locked.
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let call = Call::new(self, Kind::Read);
        tried(address(self), call.attempt(|| had(self.0.try_read())))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let call = Call::new(self, Kind::Write);
        hold(address(self), call.take(|| had(self.0.try_write()), || self.0.write()))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// It is poisoned, or locked.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let call = Call::new(self, Kind::Write);
        tried(address(self), call.attempt(|| had(self.0.try_write())))
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// As the standard library's.
    #[track_caller]
    pub fn downgrade(held: Self) -> RwLockReadGuard<'a, T> {
        let (lock, guard) = held.into_unrecorded();
        let call = Call::at(lock, Kind::Read);
        released(lock);
        let guard = sync::RwLockWriteGuard::downgrade(guard);
        call.acquired(false);
        Held::new(lock, guard)
    }
}
