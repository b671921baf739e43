//! A future that is a user thread: each poll is told, and who wakes it.

use crate::life::Life;
use crate::waker::{self, TellingWaker};
use pin_project_lite::pin_project;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tracewing::user_thread;

pin_project! {
    /// A future that is a user thread of its own ([`instrument`](crate::instrument)).
    #[must_use = "futures do nothing unless polled"]
    pub struct Instrumented<F> {
        // Dropped first: what its destructors tell comes before the end.
        #[pin]
        future: F,
        waker: TellingWaker,
        life: Life,
    }
}

impl<F> Instrumented<F> {
    /// One that anybody may poll.
    pub(crate) fn new(future: F, life: Life) -> Self {
        Self { future, waker: TellingWaker::Any(None), life }
    }

    /// One that is to be spawned.
    pub(crate) fn task(future: F, life: Life) -> Self {
        Self { future, waker: TellingWaker::Task(None), life }
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
                this.future.poll(&mut Context::from_waker(&waker))
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

/// Lets other tasks run, as [`tokio::task::yield_now`] does, and tells it.
pub async fn yield_now() {
    let mut yielded = pin!(tokio::task::yield_now());
    poll_fn(|context| {
        let poll = yielded.as_mut().poll(context);
        if poll.is_pending() {
            waker::could_go_on();
        }
        poll
    })
    .await;
}
