//! The mutex.

use super::held::Held;
use super::waited::address;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{self, TryLockError};
use tracewing::user_thread::{Kind, Request};

/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = Held<sync::MutexGuard<'a, T>>;
/// Holds a [`Mutex`] in an [`Arc`] until it is dropped.
pub type OwnedMutexGuard<T> = Held<sync::OwnedMutexGuard<T>>;

/// [`tokio::sync::Mutex`], recorded.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// As tokio's.
    pub fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// As tokio's.
    pub const fn const_new(value: T) -> Self {
        Self(sync::Mutex::const_new(value))
    }

    /// As tokio's.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    #[track_caller]
    fn request(&self) -> Request {
        Request::new(Kind::Mutex, address(self))
    }

    fn owned(self: Arc<Self>) -> Arc<sync::Mutex<T>> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self) as *const sync::Mutex<T>) }
    }

    /// As tokio's [`lock`](sync::Mutex::lock); the wait and the hold are recorded.
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        Held::wait(self.request(), self.0.lock())
    }

    /// As tokio's [`lock_owned`](sync::Mutex::lock_owned); the wait and the hold are recorded.
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        Held::wait(self.request(), self.owned().lock_owned())
    }

    /// As tokio's [`try_lock`](sync::Mutex::try_lock); the hold is recorded, and if it fails.
    ///
    /// # Errors
    /// The mutex is locked.
    #[track_caller]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        let request = self.request();
        Held::tried(request, self.0.try_lock())
    }

    /// As tokio's [`try_lock_owned`](sync::Mutex::try_lock_owned); the hold is recorded, and if it fails.
    ///
    /// # Errors
    /// The mutex is locked.
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        let request = self.request();
        Held::tried(request, self.owned().try_lock_owned())
    }

    /// As tokio's [`blocking_lock`](sync::Mutex::blocking_lock); the wait and the hold are recorded.
    ///
    /// # Panics
    /// The caller is in a task.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        let mut request = self.request();
        let guard = self.0.try_lock().unwrap_or_else(|_| {
            request.wait();
            self.0.blocking_lock()
        });
        Held::new(request, guard)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> Deref for Mutex<T> {
    type Target = sync::Mutex<T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for Mutex<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
