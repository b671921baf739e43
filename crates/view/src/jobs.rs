//! Analyses of the recording that a page asks for: each runs in a thread of its own, says how far it is, and
//! can be stopped.

use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tracewing_trace::Progress;

/// Most jobs that are kept; a further one ends the oldest.
const KEPT: usize = 4;

/// The jobs of a recording.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    kept: Mutex<Vec<Arc<Job>>>,
    last: AtomicU64,
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
    /// Starts a job; gives its number.
    pub(crate) fn start(&self, work: impl FnOnce(&Job) -> Result<Value, String> + Send + 'static) -> u64 {
        // Nothing else is published with the number.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let job = Arc::new(Job { number, ..Job::default() });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0).stop();
        }
        kept.push(job.clone());
        std::thread::spawn(move || {
            // A thread that panics has an answer, too: that there is none.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&job)));
            let _ = job.result.set(done.unwrap_or_else(|_| Err("the analysis failed".to_owned())));
        });
        number
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
    fn stop(&self) {
        // It is only looked at from time to time.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
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
