//! Notifications.

use super::waited::{Waited, address};
use std::ops::Deref;
use std::pin::Pin;
use tokio::sync::{self, futures::Notified};
use tracewing::user_thread::{Kind, Request};

/// [`tokio::sync::Notify`], recorded.
#[derive(Debug, Default)]
pub struct Notify(sync::Notify);

impl Notify {
    /// As tokio's.
    pub fn new() -> Self {
        Self::default()
    }

    /// As tokio's.
    pub const fn const_new() -> Self {
        Self(sync::Notify::const_new())
    }

    /// As tokio's [`notified`](sync::Notify::notified); the wait is recorded.
    #[track_caller]
    pub fn notified(&self) -> Waited<Notified<'_>> {
        Waited::new(Request::new(Kind::Notified, address(self)), self.0.notified())
    }
}

impl Waited<Notified<'_>> {
    /// As tokio's.
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.future().enable()
    }
}

impl Deref for Notify {
    type Target = sync::Notify;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
