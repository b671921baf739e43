//! Work that reads the recording for a page, each piece in a thread of its own: it says how far it is and
//! what it has found so far, and can be stopped.

use crate::places::Places;
use std::ops::{ControlFlow, Deref};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// What a piece of work is, and what it has found.
pub(crate) trait Work: Send + Sync + Sized + 'static {
    /// What it gives in the end.
    type Done;
    /// What one and several are called.
    const NAMES: [&'static str; 2];
    /// Most pieces that are kept; a further one ends the oldest.
    const KEPT: usize;

    /// The thread has ended: with this, or for that reason before it was done.
    fn ends(&self, done: Result<Self::Done, String>);
}

/// The pieces of work of one kind.
#[derive(Debug)]
pub(crate) struct Passes<T> {
    kept: Mutex<Vec<Arc<Pass<T>>>>,
    last: AtomicU64,
    /// Of threads that work, also for pieces that were ended.
    places: Places,
}

/// A piece of work.
#[derive(Debug, Default)]
pub(crate) struct Pass<T> {
    number: u64,
    is_stopped: AtomicBool,
    of: T,
}

impl<T> Default for Passes<T> {
    fn default() -> Self {
        Passes { kept: Mutex::default(), last: AtomicU64::new(0), places: Places::default() }
    }
}

impl<T: Work> Passes<T> {
    /// Starts a piece of work; gives its number, or why there is none.
    pub(crate) fn start(
        &self,
        of: T,
        work: impl FnOnce(&Pass<T>) -> Result<T::Done, String> + Send + 'static,
    ) -> Result<u64, String> {
        self.start_in(Builder::new(), of, work)
    }

    /// Starts it in such a thread.
    fn start_in(
        &self,
        thread: Builder,
        of: T,
        work: impl FnOnce(&Pass<T>) -> Result<T::Done, String> + Send + 'static,
    ) -> Result<u64, String> {
        let [one, several] = T::NAMES;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == T::KEPT {
            kept.remove(0).stop();
        }
        // A thread continues until it sees that its work was ended.
        let Some(place) = self.places.take(2 * T::KEPT) else {
            return Err(format!("earlier {several} have not ended yet: try again"));
        };
        // Nothing else is published with the number.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let pass = Arc::new(Pass::new(number, of));
        let own = pass.clone();
        let started = thread.spawn(move || {
            // A thread that panics has an answer, too: that there is none.
            let done = catch_unwind(AssertUnwindSafe(|| work(&own)));
            // Before the answer, after which other work can be started.
            drop(place);
            own.ends(done.unwrap_or_else(|_| Err(format!("the {one} failed"))));
        });
        started.map_err(|error| format!("the {one} has no thread: {error}"))?;
        kept.push(pass);
        Ok(number)
    }

    /// The piece of a number, if it is kept.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Pass<T>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|pass| pass.number == number).cloned()
    }

    /// Ends a piece and forgets what it has found.
    pub(crate) fn end(&self, number: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|pass| pass.number == number).for_each(|pass| pass.stop());
        kept.retain(|pass| pass.number != number);
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().for_each(|pass| pass.stop());
    }
}

impl<T> Pass<T> {
    pub(crate) fn new(number: u64, of: T) -> Self {
        Pass { number, is_stopped: AtomicBool::new(false), of }
    }

    pub(crate) fn stop(&self) {
        // It is only looked at from time to time.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Breaks when it was stopped.
    pub(crate) fn goes_on(&self) -> ControlFlow<()> {
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<T> Deref for Pass<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, OnceLock};

    #[derive(Debug, Default)]
    struct Dig(OnceLock<Result<u8, String>>);

    impl Work for Dig {
        type Done = u8;
        const NAMES: [&'static str; 2] = ["dig", "digs"];
        const KEPT: usize = 3;

        fn ends(&self, done: Result<u8, String>) {
            let _ = self.0.set(done);
        }
    }

    #[test]
    fn work_that_has_no_thread_is_refused_and_not_kept() {
        let digs = Passes::default();
        // No address space has room for such a stack.
        let refused = digs.start_in(Builder::new().stack_size(1 << 60), Dig::default(), |_| Ok(7));
        assert!(refused.is_err_and(|why| why.contains("the dig has no thread")));
        assert!(digs.kept.lock().unwrap().is_empty());
        assert_eq!(digs.places.taken(), 0);
    }

    #[test]
    fn work_begins_only_when_few_threads_still_work() {
        const THREADS: usize = 2 * Dig::KEPT;
        let digs = Passes::default();
        let end = Arc::new(Barrier::new(THREADS + 1));
        let start = || {
            let end = end.clone();
            let work = move |_: &Pass<Dig>| {
                end.wait();
                Ok(7)
            };
            digs.start(Dig::default(), work).unwrap()
        };
        let first = start();
        let oldest = digs.get(first).unwrap();
        let numbers: Vec<u64> = (1..Dig::KEPT).map(|_| start()).collect();
        assert!(!oldest.is_stopped());
        let more: Vec<u64> = (Dig::KEPT..THREADS).map(|_| start()).collect();
        assert!(oldest.is_stopped() && digs.get(first).is_none(), "the oldest is ended");
        assert!(numbers.iter().all(|number| digs.get(*number).is_none()));
        more.iter().for_each(|number| digs.end(*number));
        let refused = digs.start(Dig::default(), |_| Ok(7));
        assert!(refused.is_err_and(|why| why.contains("earlier digs")), "those that were ended still work");
        end.wait();
        while oldest.0.get().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(oldest.0.get(), Some(&Ok(7)));
        assert!(digs.start(Dig::default(), |_| Ok(7)).is_ok());
    }

    #[test]
    fn work_that_panics_has_an_answer() {
        let digs = Passes::default();
        let number = digs.start(Dig::default(), |_| panic!("a stone")).unwrap();
        let dig = digs.get(number).unwrap();
        while dig.0.get().is_none() {
            std::thread::yield_now();
        }
        assert_eq!(dig.0.get(), Some(&Err("the dig failed".to_owned())));
        assert_eq!(digs.places.taken(), 0, "the place is free before it is done");
    }
}
