//! What runs again and again while nothing records: polls of one task, and spans.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Runtime;

/// Pending that often, and ready to be polled again at once.
struct Again(u64);

impl Future for Again {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls a task of tokio alone.
pub fn polls(runtime: &Runtime, count: u64) {
    runtime.block_on(async { tokio::spawn(Again(count)).await }).unwrap();
}

/// Polls a task that reports itself.
pub fn reported_polls(runtime: &Runtime, count: u64) {
    let task = async { tracewing_tokio::Builder::new().name("again").spawn(Again(count)).await };
    runtime.block_on(task).unwrap();
}

/// Enters and leaves spans, one in the other.
pub fn spans(count: u64) {
    for number in 0..count {
        let _outer = tracewing::span!("bench:outer", number);
        let _inner = tracewing::span!("bench:inner");
        std::hint::black_box(number);
    }
}
