//! Futures that are user threads: each poll is recorded, and so is the thread that wakes them.

use crate::here;
use crate::life::Life;
use crate::poll::TaskPoll;
use crate::waker::{self, OwnWaker};
use pin_project_lite::pin_project;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::ptr;
use std::task::{Context, Poll};
use tracewing::user_thread;

pin_project! {
    /// A future that is a user thread of its own ([`instrument`](crate::instrument)).
    #[must_use = "futures do nothing unless polled"]
    pub struct Instrumented<F> {
        // Dropped first: events of its destructors come before the end.
        #[pin]
        future: F,
        waker: OwnWaker,
        life: Life,
    }
}

impl<F> Instrumented<F> {
    pub(crate) fn new(future: F, life: Life) -> Self {
        Self { future, waker: OwnWaker::default(), life }
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let running = this.life.run();
        let poll = match running.thread() {
            Some(thread) if user_thread::wants_wake() => {
                let waker = this.waker.of(thread, context.waker());
                this.future.poll(&mut Context::from_waker(waker))
            }
            _ => this.future.poll(context),
        };
        if poll.is_ready() {
            this.waker.retire();
            running.complete();
        } else {
            running.stop();
        }
        poll
    }
}

pin_project! {
    /// A future that is spawned as a task, which is a user thread. It adds only eight bytes to the task: the
    /// data for its wakers is stored elsewhere.
    pub(crate) struct Task<F> {
        #[pin]
        future: Option<F>,
        life: Life,
    }

    impl<F> PinnedDrop for Task<F> {
        fn drop(this: Pin<&mut Self>) {
            let address = ptr::from_ref(&*this).addr();
            let mut this = this.project();
            // First: events of its destructors come before the end.
            this.future.set(None);
            if let Some(living) = this.life.living().filter(|living| living.is_kept()) {
                waker::retire_within(address, living.thread());
            }
        }
    }
}

impl<F> Task<F> {
    pub(crate) fn new(future: F, life: Life) -> Self {
        Self { future: Some(future), life }
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let address = ptr::from_ref(&*self).addr();
        let this = self.project();
        let future = this.future.as_pin_mut().expect("it is there until it is dropped");
        let Some(living) = this.life.living() else { return future.poll(context) };
        let mut polling = TaskPoll::begin(this.life, living, context.waker(), address);
        let poll = future.poll(&mut Context::from_waker(polling.waker()));
        polling.end(poll.is_ready());
        poll
    }
}

/// Lets other tasks run, as [`tokio::task::yield_now`] does, and records that the task yields.
pub async fn yield_now() {
    let mut yielded = pin!(tokio::task::yield_now());
    poll_fn(|context| {
        let poll = yielded.as_mut().poll(context);
        if poll.is_pending() {
            here::could_continue();
        }
        poll
    })
    .await;
}
