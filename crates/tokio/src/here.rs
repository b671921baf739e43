//! What a thread knows of the user thread that it runs.

use crate::living::Living;
use std::cell::Cell;

thread_local! {
    pub(crate) static HERE: Here = const { Here {
        could_go_on: Cell::new(false),
        task: Cell::new(0),
        living: Cell::new(None),
    } };
}

/// What a thread knows of the user thread that it runs.
pub(crate) struct Here {
    /// It has said that it could go on, though it is about to stop.
    pub could_go_on: Cell<bool>,
    /// The data of the telling waker that it is polled with, 0 for none.
    pub task: Cell<usize>,
    /// The user thread that is polled with that waker. In two parts, not a pair: that would be read whole
    /// after it was written in parts, for which a processor has to wait.
    pub living: Cell<Option<Living>>,
}

/// The user thread that runs here could go on, though it is about to stop.
pub(crate) fn could_go_on() {
    HERE.with(|here| here.could_go_on.set(true));
}
