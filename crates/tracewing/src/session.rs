//! A program that records itself: the buffers, their consumer and the trace folder, all in one process.
//!
//! The files are those of `tracewing record`, made by the same code (crate `consumer`), without kernel
//! events. One thread drains the buffers periodically, and a second one writes to the disk. A flight recorder
//! has only one, which sleeps until a snapshot is requested, and writes it itself.

mod bell;
mod builder;
mod enabled;
mod error;
mod recording;

use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tracewing_rules::Rule;

use crate::agent;
pub use crate::agent::SwitchFault;
use bell::{Bell, Order};
pub use builder::SessionBuilder;
use enabled::Enabled;
pub use error::SessionError;
use error::switched;

/// A recording that the program makes of itself. It ends when this is dropped, or with [`Session::stop`],
/// which also returns its results.
///
/// It contains the events of this copy of the crate, in all threads; also those of forked children if the
/// emitting thread has restartable sequences (x86-64, glibc 2.35), until the parent ends the session. Up to
/// eight recordings see a program at a time, sessions and `tracewing record`, each with its own rules and
/// buffers.
///
/// ```no_run
/// #[derive(tracewing::Event)]
/// struct Enqueued {
///     id: u64,
/// }
///
/// let session = tracewing::Session::builder().output("trace").start()?;
/// tracewing::emit!(Enqueued { id: 1 });
/// let summary = session.stop()?;
/// assert_eq!(summary.lost, 0);
/// # Ok::<(), tracewing::SessionError>(())
/// ```
#[must_use = "the recording ends when the session is dropped"]
#[derive(Debug)]
pub struct Session {
    worker: Option<Worker>,
    /// A forked child inherits the session without its thread.
    process: u32,
}

#[derive(Debug)]
struct Worker {
    bell: Arc<Bell>,
    is_flight_recorder: bool,
    slot: usize,
    enabled: Arc<Enabled>,
    thread: JoinHandle<Result<SessionSummary, SessionError>>,
}

/// Result of a recording, or of one of its snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The trace folder. Of a flight recorder, the last snapshot's; empty without one.
    pub folder: PathBuf,
    /// Events that the folder contains.
    pub events: u64,
    /// Events that were lost; `tracewing.json` in the folder says why and when.
    pub lost: u64,
    /// Size of the packets in it, in bytes.
    pub bytes: u64,
}

impl Session {
    /// A recording of all events into the folder `tracewing`, unless its setters say otherwise.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// Writes the content of a flight recorder's buffers into a new folder: a complete trace with everything
    /// that was emitted before the call and is still in the buffers. Recording continues; the next
    /// snapshot contains the same events again as long as the buffers hold them.
    ///
    /// Any thread may call it, also from a panic hook, but not from a signal handler.
    ///
    /// # Errors
    /// [`SessionError::NotFlightRecorder`]; or the folder cannot be written, or exists and is not empty.
    pub fn snapshot(&self, folder: impl Into<PathBuf>) -> Result<SessionSummary, SessionError> {
        let worker = self.worker.as_ref().ok_or(SessionError::NotFlightRecorder)?;
        if self.process != std::process::id() {
            return Err(SessionError::OfParent);
        }
        // The session's own thread, panicking, would wait for itself.
        if !worker.is_flight_recorder || worker.thread.thread().id() == thread::current().id() {
            return Err(SessionError::NotFlightRecorder);
        }
        let (done, result) = mpsc::channel();
        worker.bell.snapshot(Order { folder: folder.into(), done });
        // A thread that is gone has dropped the other end.
        result.recv().unwrap_or(Err(SessionError::NotFlightRecorder))
    }

    /// Changes what is recorded: of all rules including this one, the last that matches a class decides. When
    /// it returns, disabled events are not recorded any more (if the program has restartable sequences;
    /// otherwise except events that threads had begun), and enabled ones are. Forked children are not
    /// affected.
    ///
    /// # Errors
    /// [`SessionError::NotSwitched`]; there are too many rules; the metadata cannot be written; or the
    /// session is the parent process's.
    pub fn rule(&self, rule: Rule) -> Result<(), SessionError> {
        let worker = self.worker.as_ref().ok_or(SessionError::OfParent)?;
        if self.process != std::process::id() {
            return Err(SessionError::OfParent);
        }
        // First events of classes fall under the rules of their time.
        if worker.thread.thread().id() != thread::current().id() {
            worker.bell.settle(|| worker.thread.is_finished());
        }
        let _turn = enabled::turn();
        let grants = worker.enabled.change(rule)?;
        switched(agent::change(worker.slot, grants.into_iter()))?;
        match worker.enabled.state().error.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Records nothing until [`Session::resume`]: one store, whatever the number of classes and threads. An
    /// event that a thread has begun may still be recorded.
    pub fn pause(&self) {
        self.set_majors(0);
    }

    /// Continues after [`Session::pause`].
    pub fn resume(&self) {
        self.set_majors(u64::MAX);
    }

    fn set_majors(&self, mask: u64) {
        if let Some(worker) = &self.worker {
            agent::set_majors(worker.slot, mask);
        }
    }

    /// Ends the recording and completes the trace folder.
    ///
    /// # Errors
    /// The trace could not be written to its end; what is in the folder is readable.
    pub fn stop(mut self) -> Result<SessionSummary, SessionError> {
        self.end().unwrap_or(Err(SessionError::OfParent))
    }

    fn end(&mut self) -> Option<Result<SessionSummary, SessionError>> {
        let Worker { bell, thread, .. } = self.worker.take()?;
        if self.process != std::process::id() {
            // The thread is not here, and the standard library must not look for it.
            std::mem::forget((bell, thread));
            return None;
        }
        bell.stop();
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
