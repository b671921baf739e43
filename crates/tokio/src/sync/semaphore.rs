//! The semaphore.

use super::held::Held;
use super::waited::address;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{self, AcquireError, TryAcquireError};
use tracewing::user_thread::{Kind, Request};

/// Holds permits of a [`Semaphore`] until it is dropped.
pub type SemaphorePermit<'a> = Held<sync::SemaphorePermit<'a>>;
/// Holds permits of a [`Semaphore`] in an [`Arc`] until it is dropped.
pub type OwnedSemaphorePermit = Held<sync::OwnedSemaphorePermit>;

/// [`tokio::sync::Semaphore`], recorded.
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore(sync::Semaphore);

impl Semaphore {
    /// As tokio's.
    ///
    /// # Panics
    /// `permits` exceeds tokio's `Semaphore::MAX_PERMITS`.
    pub fn new(permits: usize) -> Self {
        Self(sync::Semaphore::new(permits))
    }

    /// As tokio's.
    pub const fn const_new(permits: usize) -> Self {
        Self(sync::Semaphore::const_new(permits))
    }

    #[track_caller]
    fn request(&self) -> Request {
        Request::new(Kind::Semaphore, address(self))
    }

    fn owned(self: Arc<Self>) -> Arc<sync::Semaphore> {
        // SAFETY: the pointer comes from an `Arc`, and `Self` is laid out as its only field.
        unsafe { Arc::from_raw(Arc::into_raw(self).cast()) }
    }

    /// As tokio's [`acquire`](sync::Semaphore::acquire); the wait and the hold are recorded.
    ///
    /// # Errors
    /// The semaphore is closed.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.acquire_many(1)
    }

    /// As tokio's [`acquire_many`](sync::Semaphore::acquire_many); the wait and the hold are recorded.
    ///
    /// # Errors
    /// The semaphore is closed.
    #[track_caller]
    pub fn acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        Held::try_wait(self.request(), self.0.acquire_many(permits))
    }

    /// As tokio's [`acquire_owned`](sync::Semaphore::acquire_owned); the wait and the hold are recorded.
    ///
    /// # Errors
    /// The semaphore is closed.
    #[track_caller]
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_many_owned(1)
    }

    /// As tokio's [`acquire_many_owned`](sync::Semaphore::acquire_many_owned); the wait and the hold are
    /// recorded.
    ///
    /// # Errors
    /// The semaphore is closed.
    #[track_caller]
    pub fn acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        Held::try_wait(self.request(), self.owned().acquire_many_owned(permits))
    }

    /// As tokio's [`try_acquire`](sync::Semaphore::try_acquire); the hold is recorded, and if it fails.
    ///
    /// # Errors
    /// The semaphore is closed, or no permit is free.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let request = self.request();
        Held::tried(request, self.0.try_acquire())
    }

    /// As tokio's [`try_acquire_owned`](sync::Semaphore::try_acquire_owned); the hold is recorded, and if it
    /// fails.
    ///
    /// # Errors
    /// The semaphore is closed, or no permit is free.
    #[track_caller]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let request = self.request();
        Held::tried(request, self.owned().try_acquire_owned())
    }
}

impl Deref for Semaphore {
    type Target = sync::Semaphore;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Held<sync::SemaphorePermit<'_>> {
    /// As tokio's; no release is recorded.
    pub fn forget(self) {
        self.into_unrecorded().forget();
    }

    /// As tokio's.
    pub fn num_permits(&self) -> usize {
        self.guard().num_permits()
    }
}

impl Held<sync::OwnedSemaphorePermit> {
    /// As tokio's; no release is recorded.
    pub fn forget(self) {
        self.into_unrecorded().forget();
    }

    /// As tokio's.
    pub fn num_permits(&self) -> usize {
        self.guard().num_permits()
    }
}
