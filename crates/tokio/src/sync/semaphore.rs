//! The semaphore.

use super::held::Held;
use super::waited::{Waited, address};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{self, AcquireError, TryAcquireError};
use tracewing::user_thread::Kind;

/// Holds permits of a [`Semaphore`].
pub type SemaphorePermit<'a> = Held<sync::SemaphorePermit<'a>>;
/// Holds permits of a [`Semaphore`] that an [`Arc`] keeps.
pub type OwnedSemaphorePermit = Held<sync::OwnedSemaphorePermit>;

/// [`tokio::sync::Semaphore`], told.
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore(sync::Semaphore);

impl Semaphore {
    /// As tokio's.
    ///
    /// # Panics
    /// The permits are more than tokio's `Semaphore::MAX_PERMITS`.
    pub fn new(permits: usize) -> Self {
        Self(sync::Semaphore::new(permits))
    }

    /// As tokio's.
    pub const fn const_new(permits: usize) -> Self {
        Self(sync::Semaphore::const_new(permits))
    }

    fn held<G>(&self, permit: G) -> Held<G> {
        Held::new(Kind::Semaphore, address(self), permit)
    }

    fn owned(self: Arc<Self>) -> Arc<sync::Semaphore> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self).cast()) }
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_many(1).await
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed.
    pub async fn acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        let permit = Waited::new(Kind::Semaphore, address(self), self.0.acquire_many(permits)).await;
        permit.map(|permit| self.held(permit))
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed.
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1).await
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed.
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let object = address(&*self);
        let permit = Waited::new(Kind::Semaphore, object, self.owned().acquire_many_owned(permits)).await;
        permit.map(|permit| Held::new(Kind::Semaphore, object, permit))
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed, or there is no permit.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.0.try_acquire().map(|permit| self.held(permit))
    }

    /// As tokio's.
    ///
    /// # Errors
    /// It is closed, or there is no permit.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let object = address(&*self);
        self.owned().try_acquire_owned().map(|permit| Held::new(Kind::Semaphore, object, permit))
    }
}

impl Deref for Semaphore {
    type Target = sync::Semaphore;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Held<sync::SemaphorePermit<'_>> {
    /// As tokio's; not told as released.
    pub fn forget(self) {
        self.into_untold().forget();
    }

    /// As tokio's.
    pub fn num_permits(&self) -> usize {
        self.guard().num_permits()
    }
}

impl Held<sync::OwnedSemaphorePermit> {
    /// As tokio's; not told as released.
    pub fn forget(self) {
        self.into_untold().forget();
    }

    /// As tokio's.
    pub fn num_permits(&self) -> usize {
        self.guard().num_permits()
    }
}
