//! Channels for one value.

use super::waited::{Waited, next_channel};
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot::{self, Sender, error::RecvError};
use tracewing::user_thread::{Kind, Request};

/// [`tokio::sync::oneshot::channel`], recorded. A sender never waits. A wait is shown at the line of this
/// call.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = oneshot::channel();
    (sender, Receiver(Waited::new(Request::new(Kind::Receive, next_channel()), receiver)))
}

/// The receiving half.
pub struct Receiver<T>(Waited<oneshot::Receiver<T>>);

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Deref for Receiver<T> {
    type Target = oneshot::Receiver<T>;

    fn deref(&self) -> &Self::Target {
        self.0.get_ref()
    }
}

impl<T> DerefMut for Receiver<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.get_mut()
    }
}
