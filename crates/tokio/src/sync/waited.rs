//! Waits: a future that tells when it cannot have at once what it wants.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use tracewing::user_thread::{self, Kind};

pin_project! {
    /// A future of tokio's that waits for something, told.
    #[must_use = "futures do nothing unless polled"]
    pub struct Waited<F> {
        #[pin]
        future: F,
        kind: Kind,
        object: u64,
        waits: bool,
    }
}

impl<F> Waited<F> {
    pub(super) fn new(kind: Kind, object: u64, future: F) -> Self {
        Self { future, kind, object, waits: false }
    }

    pub(super) fn future(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().future
    }

    pub(super) fn get_ref(&self) -> &F {
        &self.future
    }

    pub(super) fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }
}

impl<F: Future> Future for Waited<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let poll = this.future.poll(context);
        if poll.is_pending() {
            if !*this.waits {
                *this.waits = true;
                user_thread::wait(*this.kind, *this.object);
            }
        } else if *this.waits && !is_held(*this.kind) {
            user_thread::acquired(*this.kind, *this.object);
        }
        poll
    }
}

/// Whether it is held, once it was had: [`Held`](super::Held) tells that.
fn is_held(kind: Kind) -> bool {
    matches!(kind, Kind::Mutex | Kind::Read | Kind::Write | Kind::Semaphore)
}

/// The number of something that is used from where it lies.
pub(super) fn address<T: ?Sized>(of: &T) -> u64 {
    (&raw const *of).addr() as u64
}

/// The number of a channel, whose ends are moved about. No address is so small.
pub(super) fn next_channel() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}
