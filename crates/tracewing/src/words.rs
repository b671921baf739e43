//! What this crate keeps of each thread: the words that the ring has room for in the thread's block.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use tracewing_ring::thread::{self, Mark};

/// The words of the calling thread, all 0 at first.
pub(crate) struct Words<'a> {
    /// Id of the innermost span that the thread is in, 0 for none.
    pub(crate) span: &'a AtomicU64,
    /// A span that the thread has left while it was in others inside of it.
    pub(crate) ended_span: &'a AtomicU64,
    /// The span around that one.
    pub(crate) around_ended: &'a AtomicU64,
    /// Id of the thread's next span.
    pub(crate) next_span: &'a AtomicU64,
    /// Number of the user thread (a task of a runtime, a green thread) that the thread runs, 0 for none.
    pub(crate) user_thread: &'a AtomicU64,
    /// Which user thread the thread creates next: its block of numbers, and which of them.
    pub(crate) next_user_thread: &'a AtomicU64,
    /// Which ticket the thread gives next to a request of a user thread: its block of numbers, and which of
    /// them.
    pub(crate) next_ticket: &'a AtomicU64,
    /// The thread's name, if it has given itself one: up to 15 bytes, then zeroes.
    pub(crate) name: &'a [AtomicU64; 2],
}

impl<'a> Words<'a> {
    #[inline(always)]
    pub(crate) fn of(mark: &'a Mark) -> Self {
        let [
            span,
            ended_span,
            around_ended,
            next_span,
            user_thread,
            next_user_thread,
            next_ticket,
            name @ ..,
        ] = &mark.words;
        Self { span, ended_span, around_ended, next_span, user_thread, next_user_thread, next_ticket, name }
    }
}

/// Runs `use_it` on the words of the calling thread.
#[inline(always)]
pub(crate) fn with<R>(use_it: impl FnOnce(Words<'_>) -> R) -> R {
    thread::with(|mark| use_it(Words::of(mark)))
}

/// In a forked child: the ids of its thread's spans are not its parent's.
pub(crate) fn forget_spans() {
    with(|words| words.next_span.store(0, Relaxed)); // the thread's own
}
