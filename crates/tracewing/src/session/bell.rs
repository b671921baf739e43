//! What a session's owner tells its thread: to stop, or to take a snapshot; and how the thread sleeps until then.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{SessionError, SessionSummary};

/// Wakes the thread before its time.
#[derive(Debug, Default)]
pub(super) struct Bell {
    calls: Mutex<Calls>,
    condition: Condvar,
}

/// What was called for since the thread looked last.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) stop: bool,
    pub(super) snapshots: Vec<Order>,
}

/// A snapshot to be taken.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) folder: PathBuf,
    pub(super) done: Sender<Result<SessionSummary, SessionError>>,
}

impl Bell {
    pub(super) fn stop(&self) {
        self.ring(|calls| calls.stop = true);
    }

    pub(super) fn snapshot(&self, order: Order) {
        self.ring(|calls| calls.snapshots.push(order));
    }

    fn ring(&self, change: impl FnOnce(&mut Calls)) {
        change(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        self.condition.notify_one();
    }

    /// Sleeps for `time`, or until somebody calls; gives what was called for.
    pub(super) fn wait(&self, time: Duration) -> Calls {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |calls: &mut Calls| !calls.stop && calls.snapshots.is_empty();
        let waited = self.condition.wait_timeout_while(calls, time, is_idle);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}
