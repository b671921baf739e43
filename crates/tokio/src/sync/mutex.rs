//! The mutex.

use super::held::Held;
use super::waited::{Waited, address};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{self, TryLockError};
use tracewing::user_thread::Kind;

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = Held<sync::MutexGuard<'a, T>>;
/// Holds a [`Mutex`] that an [`Arc`] keeps.
pub type OwnedMutexGuard<T> = Held<sync::OwnedMutexGuard<T>>;

/// [`tokio::sync::Mutex`], told.
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
    fn held<G>(&self, guard: G) -> Held<G> {
        Held::new(Kind::Mutex, address(self), guard)
    }

    fn owned(self: Arc<Self>) -> Arc<sync::Mutex<T>> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self) as *const sync::Mutex<T>) }
    }

    /// As tokio's.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        self.held(Waited::new(Kind::Mutex, address(self), self.0.lock()).await)
    }

    /// As tokio's.
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        let object = address(&*self);
        Held::new(Kind::Mutex, object, Waited::new(Kind::Mutex, object, self.owned().lock_owned()).await)
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is locked.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        self.0.try_lock().map(|guard| self.held(guard))
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is locked.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        let object = address(&*self);
        self.owned().try_lock_owned().map(|guard| Held::new(Kind::Mutex, object, guard))
    }

    /// As tokio's; the wait is not told.
    ///
    /// # Panics
    /// In a task.
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        self.held(self.0.blocking_lock())
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
