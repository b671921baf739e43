//! A user thread from its creation to its end: each of its runs, with the reason why it stopped, and the one `exit`, whatever ends it.

use crate::waker;
use std::panic::Location;
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tracewing::user_thread::{self, Cause, Outcome, UserThread};

/// A user thread that has not ended, or has told its end.
pub(crate) struct Life {
    thread: UserThread,
    ended: bool,
}

impl Life {
    /// A new user thread, which is called by the type `F` of what it runs where it has no name. `runtime` is who schedules it, by
    /// default the caller's.
    pub fn new<F>(name: Option<&str>, runtime: Option<&Handle>, location: &Location<'_>) -> Self {
        let thread = if user_thread::wants_create() {
            let name = name.unwrap_or_else(|| type_name::<F>());
            let current = runtime.is_none().then(Handle::try_current).and_then(Result::ok);
            let runtime = runtime.or(current.as_ref()).and_then(Handle::name);
            user_thread::create(name, runtime.unwrap_or(""), location)
        } else {
            user_thread::create("", "", location)
        };
        Self { thread, ended: false }
    }

    /// The user thread.
    pub fn thread(&self) -> UserThread {
        self.thread
    }

    /// The calling thread runs it, until what this gives is told to stop. If that is dropped instead, it panicked.
    pub fn run(&mut self) -> Running<'_> {
        let before = user_thread::switch(Some(self.thread), Cause::Nested);
        Running { before, could_go_on: waker::exchange(false), life: self }
    }

    fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        user_thread::exit(self.thread, outcome);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Outcome::Cancelled);
        }
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
    /// It stops, and will go on.
    pub fn stop(self) {
        let could_go_on = waker::exchange(self.could_go_on);
        if could_go_on {
            waker::could_go_on(); // and so could who runs it inside
        }
        let cause = match has_budget_remaining() {
            false => Cause::Budget,
            true if could_go_on => Cause::Yielded,
            true => Cause::Blocked,
        };
        user_thread::switch(self.before, cause);
        std::mem::forget(self);
    }

    /// It comes to its end.
    pub fn complete(mut self) {
        self.end(Outcome::Completed);
        std::mem::forget(self);
    }

    fn end(&mut self, outcome: Outcome) {
        waker::exchange(self.could_go_on);
        self.life.end(outcome);
        user_thread::switch(self.before, Cause::Ended);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Panicked);
    }
}

/// The name of a type; of an `async fn` or block, the path to it.
fn type_name<F>() -> &'static str {
    std::any::type_name::<F>().trim_end_matches("::{{closure}}")
}
