//! Channels with several senders.

use super::waited::{Waited, next_channel};
use std::future::Future;
use std::ops::{Deref, DerefMut};
use tokio::sync::mpsc::{self, Permit, UnboundedSender, error::SendError};
use tracewing::user_thread::{Kind, Request};

/// [`tokio::sync::mpsc::channel`], recorded.
///
/// # Panics
/// As tokio's, for a `buffer` of 0.
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    let ((sender, receiver), object) = (mpsc::channel(buffer), next_channel());
    (Sender { inner: sender, object }, Receiver { inner: receiver, object })
}

/// [`tokio::sync::mpsc::unbounded_channel`], recorded. Sending never waits.
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, UnboundedReceiver { inner: receiver, object: next_channel() })
}

/// The sending half.
#[derive(Debug)]
pub struct Sender<T> {
    inner: mpsc::Sender<T>,
    object: u64,
}

impl<T> Sender<T> {
    /// As tokio's [`send`](mpsc::Sender::send); a wait for capacity is recorded.
    ///
    /// # Errors
    /// The receiver is closed or dropped.
    #[track_caller]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> {
        Waited::new(Request::new(Kind::Send, self.object), self.inner.send(value))
    }

    /// As tokio's [`reserve`](mpsc::Sender::reserve); a wait for capacity is recorded.
    ///
    /// # Errors
    /// The receiver is closed or dropped.
    #[track_caller]
    pub fn reserve(&self) -> impl Future<Output = Result<Permit<'_, T>, SendError<()>>> {
        Waited::new(Request::new(Kind::Send, self.object), self.inner.reserve())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), object: self.object }
    }
}

impl<T> Deref for Sender<T> {
    type Target = mpsc::Sender<T>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    object: u64,
}

impl<T> Receiver<T> {
    /// As tokio's [`recv`](mpsc::Receiver::recv); a wait for a value is recorded.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.recv())
    }

    /// As tokio's [`recv_many`](mpsc::Receiver::recv_many); a wait for a value is recorded.
    #[track_caller]
    pub fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> impl Future<Output = usize> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.recv_many(buffer, limit))
    }
}

impl<T> Deref for Receiver<T> {
    type Target = mpsc::Receiver<T>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<T> DerefMut for Receiver<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

/// The receiving half of an unbounded channel.
#[derive(Debug)]
pub struct UnboundedReceiver<T> {
    inner: mpsc::UnboundedReceiver<T>,
    object: u64,
}

impl<T> UnboundedReceiver<T> {
    /// As tokio's [`recv`](mpsc::UnboundedReceiver::recv); a wait for a value is recorded.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.recv())
    }

    /// As tokio's [`recv_many`](mpsc::UnboundedReceiver::recv_many); a wait for a value is recorded.
    #[track_caller]
    pub fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> impl Future<Output = usize> {
        Waited::new(Request::new(Kind::Receive, self.object), self.inner.recv_many(buffer, limit))
    }
}

impl<T> Deref for UnboundedReceiver<T> {
    type Target = mpsc::UnboundedReceiver<T>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<T> DerefMut for UnboundedReceiver<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
