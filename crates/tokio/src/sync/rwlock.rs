//! The read-write lock.

use super::held::Held;
use super::waited::{Waited, address};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::{self, TryLockError};
use tracewing::user_thread::Kind;

/// Holds a [`RwLock`] for reading.
pub type RwLockReadGuard<'a, T> = Held<sync::RwLockReadGuard<'a, T>>;
/// Holds a [`RwLock`] for writing.
pub type RwLockWriteGuard<'a, T> = Held<sync::RwLockWriteGuard<'a, T>>;
/// Holds a [`RwLock`] that an [`Arc`] keeps, for reading.
pub type OwnedRwLockReadGuard<T> = Held<sync::OwnedRwLockReadGuard<T>>;
/// Holds a [`RwLock`] that an [`Arc`] keeps, for writing.
pub type OwnedRwLockWriteGuard<T> = Held<sync::OwnedRwLockWriteGuard<T>>;

/// [`tokio::sync::RwLock`], told.
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
    fn owned(self: Arc<Self>) -> Arc<sync::RwLock<T>> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self) as *const sync::RwLock<T>) }
    }

    /// As tokio's.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        let guard = Waited::new(Kind::Read, address(self), self.0.read()).await;
        Held::new(Kind::Read, address(self), guard)
    }

    /// As tokio's.
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        let guard = Waited::new(Kind::Write, address(self), self.0.write()).await;
        Held::new(Kind::Write, address(self), guard)
    }

    /// As tokio's.
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        let object = address(&*self);
        Held::new(Kind::Read, object, Waited::new(Kind::Read, object, self.owned().read_owned()).await)
    }

    /// As tokio's.
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        let object = address(&*self);
        Held::new(Kind::Write, object, Waited::new(Kind::Write, object, self.owned().write_owned()).await)
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is locked for writing.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.0.try_read().map(|guard| Held::new(Kind::Read, address(self), guard))
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is locked.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.0.try_write().map(|guard| Held::new(Kind::Write, address(self), guard))
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
