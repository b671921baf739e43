//! A user thread from its creation to its end: each of its runs with the reason why it stopped, and its end,
//! whatever causes it.

use crate::here::{HERE, Here};
use crate::known::Known;
use crate::living::Living;
use crate::origin;
use std::panic::Location;
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tracewing::user_thread::{self, Cause, Outcome, Reported, UserThread};

/// A user thread until its end.
pub(crate) struct Life {
    /// `None` once its end was recorded.
    living: Option<Living>,
    reported: Reported,
    known: Known,
}

impl Life {
    /// Creates a user thread. Without a name it is named after the type `F` of the code it runs. `runtime` is
    /// its scheduler, by default the caller's.
    #[inline]
    pub(crate) fn new<F>(
        name: Option<&str>,
        runtime: Option<&Handle>,
        location: &'static Location<'static>,
    ) -> Self {
        let reported = Reported::at_creation();
        let thread = if user_thread::wants_create() {
            origin::create(name.unwrap_or_else(|| type_name::<F>()), runtime, location)
        } else {
            user_thread::create_unrecorded()
        };
        let known = Known::new(name, type_name::<F>, location);
        Self { living: Some(thread.into()), reported, known }
    }

    /// Reports it to recordings that began after its creation.
    #[inline(always)]
    fn existed(&mut self) {
        if let Some(living) = self.living {
            let Self { reported, known, .. } = self;
            user_thread::existed(living.thread(), reported, || known.describe());
        }
    }

    /// Runs it on the calling thread until the returned guard is stopped. A guard that is dropped instead
    /// means a panic.
    pub(crate) fn run(&mut self) -> Running<'_> {
        Running { run: HERE.with(|here| self.begin(here)), life: self }
    }

    /// As [`run`](Self::run), for a caller that ensures that one of the functions below is called.
    #[inline(always)]
    pub(crate) fn begin(&mut self, here: &Here) -> Run {
        self.existed();
        Run {
            before: user_thread::switch(self.thread(), Cause::Nested),
            could_continue: here.could_continue.replace(false),
        }
    }

    /// Records that it stops and will continue later.
    pub(crate) fn stop(&mut self, run: Run, here: &Here) {
        self.existed(); // it began to run before the recording
        let could_continue = here.could_continue.get();
        // The user thread that polls it could continue as well.
        here.could_continue.set(could_continue || run.could_continue);
        let cause = match user_thread::wants_switch() && !has_budget_remaining() {
            true => Cause::Budget,
            false if could_continue => Cause::Yielded,
            false => Cause::Blocked,
        };
        user_thread::switch(run.before, cause);
    }

    /// Records its end, as part of the switch.
    #[inline(always)]
    pub(crate) fn complete(&mut self, run: Run, here: &Here) {
        self.existed();
        self.living = None;
        leave(run, here);
    }

    /// Records its end by a panic.
    #[cold]
    pub(crate) fn panic(&mut self, run: Run, here: &Here) {
        self.end(Outcome::Panicked);
        leave(run, here);
    }

    /// Notes that its wakers are kept from now on.
    pub(crate) fn keep(&mut self) {
        self.living = self.living.map(Living::kept);
    }

    /// The user thread, if it has not ended.
    #[inline]
    pub(crate) fn living(&self) -> Option<Living> {
        self.living
    }

    fn thread(&self) -> Option<UserThread> {
        self.living.map(Living::thread)
    }

    #[cold]
    fn end(&mut self, outcome: Outcome) {
        self.existed();
        if let Some(living) = self.living.take() {
            user_thread::exit(living.thread(), outcome);
        }
    }
}

impl Drop for Life {
    #[inline]
    fn drop(&mut self) {
        if self.living.is_some() {
            self.end(Outcome::Cancelled);
        }
    }
}

/// A run of a user thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// The user thread that the calling thread ran before, and whether that one could continue.
    before: Option<UserThread>,
    could_continue: bool,
}

#[inline(always)]
fn leave(run: Run, here: &Here) {
    here.could_continue.set(run.could_continue);
    user_thread::switch(run.before, Cause::Ended);
}

/// A user thread that is running; the guard of its run.
pub(crate) struct Running<'a> {
    run: Run,
    life: &'a mut Life,
}

impl Running<'_> {
    /// The running user thread, unless it has already ended.
    pub(crate) fn thread(&self) -> Option<UserThread> {
        self.life.thread()
    }

    /// Records that it stops and will continue later.
    pub(crate) fn stop(self) {
        HERE.with(|here| self.life.stop(self.run, here));
        std::mem::forget(self);
    }

    /// Records its end, as part of the switch.
    pub(crate) fn complete(self) {
        HERE.with(|here| self.life.complete(self.run, here));
        std::mem::forget(self);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        HERE.with(|here| self.life.panic(self.run, here));
    }
}

/// The name of a type; for an `async fn` or block, its path.
fn type_name<F>() -> &'static str {
    std::any::type_name::<F>().trim_end_matches("::{{closure}}")
}
