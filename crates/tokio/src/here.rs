//! A thread's data about the user thread that it runs.

use crate::living::Living;
use std::cell::Cell;

thread_local! {
    pub(crate) static HERE: Here = const { Here {
        could_continue: Cell::new(false),
        task: Cell::new(0),
        living: Cell::new(None),
    } };
}

/// A thread's data about the user thread that it runs.
pub(crate) struct Here {
    /// The user thread has reported that it could continue, although it is about to stop.
    pub could_continue: Cell<bool>,
    /// The data of the recording waker that it is polled with, 0 for none.
    pub task: Cell<usize>,
    /// The user thread that is polled with that waker. Two fields instead of a pair: a pair would be read as
    /// one word right after its parts were written, which stalls the CPU.
    pub living: Cell<Option<Living>>,
}

/// Notes that the user thread that runs here could continue, although it is about to stop.
pub(crate) fn could_continue() {
    HERE.with(|here| here.could_continue.set(true));
}
