//! Analyses of the recording that a page asks for.

use crate::passes::{Pass, Passes, Work};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tracewing_trace::Progress;

/// The analyses of a recording.
pub(crate) type Jobs = Passes<Analysis>;

/// An analysis that runs, or has ended.
pub(crate) type Job = Pass<Analysis>;

#[derive(Debug, Default)]
pub(crate) struct Analysis {
    /// Bytes of the recording that were read, and all of them.
    done: AtomicU64,
    total: AtomicU64,
    /// The answer, or why there is none.
    result: OnceLock<Result<Value, String>>,
}

impl Work for Analysis {
    type Done = Value;
    const NAMES: [&'static str; 2] = ["analysis", "analyses"];
    const KEPT: usize = 4;

    fn ends(&self, done: Result<Value, String>) {
        let _ = self.result.set(done);
    }
}

impl Analysis {
    /// Bytes that were read, and all of them.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// The answer, once there is one.
    pub(crate) fn result(&self) -> Option<&Result<Value, String>> {
        self.result.get()
    }
}

impl Job {
    /// An error if it was stopped.
    pub(crate) fn go_on(&self) -> Result<(), String> {
        if self.is_stopped() { Err("it was stopped".to_owned()) } else { Ok(()) }
    }

    /// Says how far it is; breaks when it was stopped.
    pub(crate) fn watch(&self, progress: Progress) -> ControlFlow<()> {
        // Nothing else is published with the numbers.
        self.done.store(progress.done, Ordering::Relaxed);
        self.total.store(progress.total, Ordering::Relaxed);
        self.goes_on()
    }
}
