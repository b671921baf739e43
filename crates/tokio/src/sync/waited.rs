//! Waits: a future that records a wait if it is not ready at once.

use pin_project_lite::pin_project;
use std::borrow::BorrowMut;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use tracewing::user_thread::{Kind, Request};

pin_project! {
    /// A future of tokio's that waits for something. It owns its request, or borrows it from the caller,
    /// which holds what the request gets.
    #[must_use = "futures do nothing unless polled"]
    pub struct Waited<F, R = Request>
    where
        R: BorrowMut<Request>,
    {
        #[pin]
        future: F,
        request: R,
        is_over: bool,
    }

    impl<F, R> PinnedDrop for Waited<F, R>
    where
        R: BorrowMut<Request>,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let request: &mut Request = this.request.borrow_mut();
            if request.has_waited() && !*this.is_over {
                request.given_up();
            }
        }
    }
}

impl<F, R: BorrowMut<Request>> Waited<F, R> {
    pub(super) fn new(request: R, future: F) -> Self {
        Self { future, request, is_over: false }
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

impl<F: Future, R: BorrowMut<Request>> Future for Waited<F, R> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let poll = this.future.poll(context);
        let request = this.request.borrow_mut();
        if poll.is_ready() {
            *this.is_over = true;
            if request.has_waited() && !is_held(request.kind()) {
                request.acquired();
            }
        } else if !request.has_waited() {
            request.wait();
        }
        poll
    }
}

/// Whether a guard holds it afterwards and records the release ([`Held`](super::Held)).
fn is_held(kind: Kind) -> bool {
    matches!(kind, Kind::Mutex | Kind::Read | Kind::Write | Kind::Semaphore)
}

/// Identifies an object by its address, for objects that are used in place.
pub(super) fn address<T: ?Sized>(of: &T) -> u64 {
    (&raw const *of).addr() as u64
}

/// Identifies a channel, whose ends are moved around, by a number that is too small for an address.
pub(super) fn next_channel() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}
