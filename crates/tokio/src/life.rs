//! A user thread from its creation to its end: each of its runs, with the reason why it stopped, and its end, whatever brings it.

use crate::{origin, waker};
use std::panic::Location;
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tracewing::user_thread::{self, Cause, Outcome, UserThread};

/// A user thread that has not ended, or, without one, has told its end.
pub(crate) struct Life(Option<UserThread>);

impl Life {
    /// A new user thread, which is called by the type `F` of what it runs where it has no name. `runtime` is who schedules it, by
    /// default the caller's.
    #[inline]
    pub fn new<F>(
        name: Option<&str>,
        runtime: Option<&Handle>,
        location: &'static Location<'static>,
    ) -> Self {
        Self(Some(if user_thread::wants_create() {
            origin::create(name.unwrap_or_else(|| type_name::<F>()), runtime, location)
        } else {
            user_thread::create_untold()
        }))
    }

    /// The calling thread runs it, until what this gives is told to stop. If that is dropped instead, it panicked.
    pub fn run(&mut self) -> Running<'_> {
        let before = user_thread::switch(self.0, Cause::Nested);
        Running { before, could_go_on: waker::exchange(false), life: self }
    }

    /// Who lives.
    pub fn thread(&self) -> Option<UserThread> {
        self.0
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(thread) = self.0.take() {
            user_thread::exit(thread, outcome);
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled);
    }
}

/// A user thread runs.
pub(crate) struct Running<'a> {
    /// What the calling thread ran before, and whether that one could go on.
    before: Option<UserThread>,
    could_go_on: bool,
    life: &'a mut Life,
}

impl Running<'_> {
    /// What runs, unless it has ended before.
    pub fn thread(&self) -> Option<UserThread> {
        self.life.0
    }

    /// It stops, and will go on.
    pub fn stop(self) {
        let could_go_on = waker::exchange(self.could_go_on);
        if could_go_on {
            waker::could_go_on(); // and so could who runs it inside
        }
        let cause = match user_thread::wants_switch() && !has_budget_remaining() {
            true => Cause::Budget,
            false if could_go_on => Cause::Yielded,
            false => Cause::Blocked,
        };
        user_thread::switch(self.before, cause);
        std::mem::forget(self);
    }

    /// It comes to its end, which the switch tells.
    pub fn complete(self) {
        self.life.0 = None;
        self.leave();
        std::mem::forget(self);
    }

    fn leave(&self) {
        waker::exchange(self.could_go_on);
        user_thread::switch(self.before, Cause::Ended);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.life.end(Outcome::Panicked);
        self.leave();
    }
}

/// The name of a type; of an `async fn` or block, the path to it.
fn type_name<F>() -> &'static str {
    std::any::type_name::<F>().trim_end_matches("::{{closure}}")
}
