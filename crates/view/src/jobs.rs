//! Analyses of the recording that a page asks for: each runs in a thread of its own, says how far it is, and
//! can be stopped.

use crate::places::Places;
use serde_json::Value;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use tracewing_trace::Progress;

/// Most jobs that are kept; a further one ends the oldest.
const KEPT: usize = 4;
/// Most threads: one that was stopped works until it sees that.
const THREADS: usize = 2 * KEPT;

/// The jobs of a recording.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    kept: Mutex<Vec<Arc<Job>>>,
    last: AtomicU64,
    /// Of threads that work, also for jobs that were ended.
    places: Places<THREADS>,
}

#[derive(Debug, Default)]
pub(crate) struct Job {
    number: u64,
    is_stopped: AtomicBool,
    /// Bytes of the recording that were read, and all of them.
    done: AtomicU64,
    total: AtomicU64,
    /// The answer, or why there is none.
    result: OnceLock<Result<Value, String>>,
}

impl Jobs {
    /// Starts a job; gives its number, or why there is none.
    pub(crate) fn start(
        &self,
        work: impl FnOnce(&Job) -> Result<Value, String> + Send + 'static,
    ) -> Result<u64, String> {
        self.start_in(Builder::new(), work)
    }

    /// Starts a job in such a thread.
    fn start_in(
        &self,
        thread: Builder,
        work: impl FnOnce(&Job) -> Result<Value, String> + Send + 'static,
    ) -> Result<u64, String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0).stop();
        }
        // A thread continues until it sees that its job was ended.
        let Some(place) = self.places.take() else {
            return Err("earlier analyses have not ended yet: try again".to_owned());
        };
        // Nothing else is published with the number.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let job = Arc::new(Job { number, ..Job::default() });
        let own = job.clone();
        let started = thread.spawn(move || {
            // A thread that panics has an answer, too: that there is none.
            let done = catch_unwind(AssertUnwindSafe(|| work(&own)));
            // Before the answer, after which another job can be started.
            drop(place);
            let _ = own.result.set(done.unwrap_or_else(|_| Err("the analysis failed".to_owned())));
        });
        started.map_err(|error| format!("the analysis has no thread: {error}"))?;
        kept.push(job);
        Ok(number)
    }

    /// The job of a number, if it is kept.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Job>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|job| job.number == number).cloned()
    }

    /// Ends a job and forgets its result.
    pub(crate) fn end(&self, number: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|job| job.number == number).for_each(|job| job.stop());
        kept.retain(|job| job.number != number);
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().for_each(|job| job.stop());
    }
}

impl Job {
    pub(crate) fn stop(&self) {
        // It is only looked at from time to time.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// An error if it was stopped.
    pub(crate) fn go_on(&self) -> Result<(), String> {
        if self.is_stopped() { Err("it was stopped".to_owned()) } else { Ok(()) }
    }

    /// Says how far it is; breaks when it was stopped.
    pub(crate) fn watch(&self, progress: Progress) -> ControlFlow<()> {
        self.done.store(progress.done, Ordering::Relaxed);
        self.total.store(progress.total, Ordering::Relaxed);
        if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Bytes that were read, and all of them.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// The answer, once there is one.
    pub(crate) fn result(&self) -> Option<&Result<Value, String>> {
        self.result.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_job_that_has_no_thread_is_refused_and_not_kept() {
        let jobs = Jobs::default();
        // No address space has room for such a stack.
        let refused = jobs.start_in(Builder::new().stack_size(1 << 60), |_| Ok(Value::Null));
        assert!(refused.is_err_and(|why| why.contains("no thread")));
        assert!(jobs.kept.lock().unwrap().is_empty());
        assert_eq!(jobs.places.taken(), 0);
    }

    #[test]
    fn a_job_begins_only_when_few_threads_still_work() {
        let jobs = Jobs::default();
        let end = Arc::new(Barrier::new(THREADS + 1));
        let start = || {
            let end = end.clone();
            let number = jobs.start(move |_| {
                end.wait();
                Ok(Value::Null)
            });
            number.unwrap()
        };
        let first = start();
        let oldest = jobs.get(first).unwrap();
        let numbers: Vec<u64> = (1..KEPT).map(|_| start()).collect();
        assert!(!oldest.is_stopped());
        let more: Vec<u64> = (KEPT..THREADS).map(|_| start()).collect();
        assert!(oldest.is_stopped() && jobs.get(first).is_none(), "the oldest is ended");
        assert!(numbers.iter().all(|number| jobs.get(*number).is_none()));
        more.iter().for_each(|number| jobs.end(*number));
        assert!(jobs.start(|_| Ok(Value::Null)).is_err(), "those that were ended still work");
        end.wait();
        while oldest.result().is_none() {
            std::thread::yield_now();
        }
        assert!(jobs.start(|_| Ok(Value::Null)).is_ok());
    }
}
