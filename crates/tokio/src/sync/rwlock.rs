//! The read-write lock.

use super::held::Held;
use super::waited::address;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{self, TryLockError};
use tracewing::user_thread::{Kind, Request};

/// Holds a [`RwLock`] for reading until it is dropped.
pub type RwLockReadGuard<'a, T> = Held<sync::RwLockReadGuard<'a, T>>;
/// Holds a [`RwLock`] for writing until it is dropped.
pub type RwLockWriteGuard<'a, T> = Held<sync::RwLockWriteGuard<'a, T>>;
/// Holds a [`RwLock`] in an [`Arc`] for reading until it is dropped.
pub type OwnedRwLockReadGuard<T> = Held<sync::OwnedRwLockReadGuard<T>>;
/// Holds a [`RwLock`] in an [`Arc`] for writing until it is dropped.
pub type OwnedRwLockWriteGuard<T> = Held<sync::OwnedRwLockWriteGuard<T>>;

/// [`tokio::sync::RwLock`], recorded.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// As tokio's.
    pub fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }

    /// As tokio's.
    pub const fn const_new(value: T) -> Self {
        Self(sync::RwLock::const_new(value))
    }

    /// As tokio's.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    #[track_caller]
    fn request(&self, kind: Kind) -> Request {
        Request::new(kind, address(self))
    }

    fn owned(self: Arc<Self>) -> Arc<sync::RwLock<T>> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self) as *const sync::RwLock<T>) }
    }

    /// As tokio's [`read`](sync::RwLock::read); the wait and the hold are recorded.
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> {
        Held::wait(self.request(Kind::Read), self.0.read())
    }

    /// As tokio's [`write`](sync::RwLock::write); the wait and the hold are recorded.
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> {
        Held::wait(self.request(Kind::Write), self.0.write())
    }

    /// As tokio's [`read_owned`](sync::RwLock::read_owned); the wait and the hold are recorded.
    #[track_caller]
    pub fn read_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockReadGuard<T>> {
        Held::wait(self.request(Kind::Read), self.owned().read_owned())
    }

    /// As tokio's [`write_owned`](sync::RwLock::write_owned); the wait and the hold are recorded.
    #[track_caller]
    pub fn write_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockWriteGuard<T>> {
        Held::wait(self.request(Kind::Write), self.owned().write_owned())
    }

    /// As tokio's [`try_read`](sync::RwLock::try_read); the hold is recorded, and if it fails.
    ///
    /// # Errors
    /// The lock is held for writing.
    #[track_caller]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        let request = self.request(Kind::Read);
        Held::tried(request, self.0.try_read())
    }

    /// As tokio's [`try_write`](sync::RwLock::try_write); the hold is recorded, and if it fails.
    ///
    /// # Errors
    /// The lock is held.
    #[track_caller]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        let request = self.request(Kind::Write);
        Held::tried(request, self.0.try_write())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> Deref for RwLock<T> {
    type Target = sync::RwLock<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for RwLock<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
