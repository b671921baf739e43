//! A user thread from its creation to its end: each of its runs, with the reason why it stopped, and its end,
//! whatever brings it.

use crate::here::{HERE, Here};
use crate::living::Living;
use crate::origin;
use std::panic::Location;
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tracewing::user_thread::{self, Cause, Outcome, UserThread};

/// A user thread that has not ended, or, without one, has told its end.
pub(crate) struct Life(Option<Living>);

impl Life {
    /// A new user thread, which is called by the type `F` of what it runs where it has no name. `runtime` is
    /// who schedules it, by default the caller's.
    #[inline]
    pub fn new<F>(
        name: Option<&str>,
        runtime: Option<&Handle>,
        location: &'static Location<'static>,
    ) -> Self {
        let thread = if user_thread::wants_create() {
            origin::create(name.unwrap_or_else(|| type_name::<F>()), runtime, location)
        } else {
            user_thread::create_untold()
        };
        Self(Some(thread.into()))
    }

    /// The calling thread runs it, until what this gives is told to stop. If that is dropped instead, it
    /// panicked.
    pub fn run(&mut self) -> Running<'_> {
        Running { run: HERE.with(|here| self.begin(here)), life: self }
    }

    /// As [`run`](Self::run), for a caller who sees to it that one of the functions below is called.
    #[inline(always)]
    pub fn begin(&self, here: &Here) -> Run {
        Run {
            before: user_thread::switch(self.thread(), Cause::Nested),
            could_go_on: here.could_go_on.replace(false),
        }
    }

    /// It stops, and will go on.
    pub fn stop(&self, run: Run, here: &Here) {
        let could_go_on = here.could_go_on.get();
        // And so could who runs it inside.
        here.could_go_on.set(could_go_on || run.could_go_on);
        let cause = match user_thread::wants_switch() && !has_budget_remaining() {
            true => Cause::Budget,
            false if could_go_on => Cause::Yielded,
            false => Cause::Blocked,
        };
        user_thread::switch(run.before, cause);
    }

    /// It comes to its end, which the switch tells.
    #[inline(always)]
    pub fn complete(&mut self, run: Run, here: &Here) {
        self.0 = None;
        leave(run, here);
    }

    /// It has panicked.
    #[cold]
    pub fn panic(&mut self, run: Run, here: &Here) {
        self.end(Outcome::Panicked);
        leave(run, here);
    }

    /// From now on its wakers are kept.
    pub fn keep(&mut self) {
        self.0 = self.0.map(Living::kept);
    }

    /// Who lives.
    #[inline]
    pub fn living(&self) -> Option<Living> {
        self.0
    }

    fn thread(&self) -> Option<UserThread> {
        self.0.map(Living::thread)
    }

    #[cold]
    fn end(&mut self, outcome: Outcome) {
        if let Some(living) = self.0.take() {
            user_thread::exit(living.thread(), outcome);
        }
    }
}

impl Drop for Life {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end(Outcome::Cancelled);
        }
    }
}

/// A run of a user thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// What the calling thread ran before, and whether that one could go on.
    before: Option<UserThread>,
    could_go_on: bool,
}

#[inline(always)]
fn leave(run: Run, here: &Here) {
    here.could_go_on.set(run.could_go_on);
    user_thread::switch(run.before, Cause::Ended);
}

/// A user thread runs.
pub(crate) struct Running<'a> {
    run: Run,
    life: &'a mut Life,
}

impl Running<'_> {
    /// What runs, unless it has ended before.
    pub fn thread(&self) -> Option<UserThread> {
        self.life.thread()
    }

    /// It stops, and will go on.
    pub fn stop(self) {
        HERE.with(|here| self.life.stop(self.run, here));
        std::mem::forget(self);
    }

    /// It comes to its end, which the switch tells.
    pub fn complete(self) {
        HERE.with(|here| self.life.complete(self.run, here));
        std::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        HERE.with(|here| self.life.panic(self.run, here));
    }
}

/// The name of a type; of an `async fn` or block, the path to it.
fn type_name<F>() -> &'static str {
    std::any::type_name::<F>().trim_end_matches("::{{closure}}")
}
