//! How a session's owner signals its thread: to stop, or to take a snapshot; and how the thread sleeps in the
//! meantime.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{SessionError, SessionSummary};

/// Time between two looks whether the thread is still there.
const LOOK: Duration = Duration::from_millis(10);

/// Wakes the thread before its time.
#[derive(Debug, Default)]
pub(super) struct Bell {
    calls: Mutex<Calls>,
    condition: Condvar,
}

/// The requests since the thread last looked.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) stop: bool,
    pub(super) snapshots: Vec<Order>,
    /// Waits until all is written that was emitted before.
    pub(super) settled: Vec<Sender<()>>,
}

impl Calls {
    /// What was emitted before is written.
    pub(super) fn settle(&mut self) {
        for done in self.settled.drain(..) {
            let _ = done.send(()); // the requester may have given up
        }
    }
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

    /// Has the thread write all that was emitted before, and waits for that, or for the thread's end.
    pub(super) fn settle(&self, is_over: impl Fn() -> bool) {
        let (done, settled) = channel();
        self.ring(|calls| calls.settled.push(done));
        while settled.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) && !is_over() {}
    }

    fn ring(&self, change: impl FnOnce(&mut Calls)) {
        change(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        self.condition.notify_one();
    }

    /// Sleeps for `time`, or until a request; returns the requests.
    pub(super) fn wait(&self, time: Duration) -> Calls {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle =
            |calls: &mut Calls| !calls.stop && calls.snapshots.is_empty() && calls.settled.is_empty();
        let waited = self.condition.wait_timeout_while(calls, time, is_idle);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}
