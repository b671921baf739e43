//! Channels that keep the last value.

use super::waited::{Waited, next_channel};
use std::future::Future;
use std::ops::{Deref, DerefMut};
use tokio::sync::watch::{self, Ref, error::RecvError};
use tracewing::user_thread::{Kind, Request};

/// [`tokio::sync::watch::channel`], recorded. Sending never waits.
pub fn channel<T>(first: T) -> (Sender<T>, Receiver<T>) {
    let ((sender, receiver), object) = (watch::channel(first), next_channel());
    (Sender { inner: sender, object }, Receiver { inner: receiver, object })
}

/// The sending half.
#[derive(Debug)]
pub struct Sender<T> {
    inner: watch::Sender<T>,
    object: u64,
}

impl<T> Sender<T> {
    /// As tokio's.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { inner: self.inner.subscribe(), object: self.object }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), object: self.object }
    }
}

impl<T> Deref for Sender<T> {
    type Target = watch::Sender<T>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<T> {
    inner: watch::Receiver<T>,
    object: u64,
}

impl<T> Receiver<T> {
    /// As tokio's [`changed`](watch::Receiver::changed); the wait is recorded.
    ///
    /// # Errors
    /// All senders are dropped.
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), RecvError>> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.changed())
    }

    /// As tokio's [`wait_for`](watch::Receiver::wait_for); the wait is recorded.
    ///
    /// # Errors
    /// All senders are dropped.
    #[track_caller]
    pub fn wait_for(
        &mut self,
        is_match: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Ref<'_, T>, RecvError>> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.wait_for(is_match))
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), object: self.object }
    }
}

impl<T> Deref for Receiver<T> {
    type Target = watch::Receiver<T>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<T> DerefMut for Receiver<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
