//! How long a recording lasts: until its command ends, its time is over, a signal comes, or the trace cannot
//! be written.

use std::time::{Duration, Instant};

use crate::child::Child;
use crate::signals::{SNAPSHOT, Signals};

/// Time that the command has to end after a stopping signal while it is still recorded.
const GRACE: Duration = Duration::from_secs(2);
/// Signals taken from the kernel at once.
const BATCH: usize = 64;

/// The command, the signals, and their result.
pub(crate) struct Course {
    /// `None` if running processes are recorded.
    pub(crate) child: Option<Child>,
    /// The status of the command, once it has ended; 0 once all processes that were attached to have ended.
    pub(crate) exit_status: Option<i32>,
    pub(crate) stop: Stop,
    /// How many stopping signals have come.
    pub(crate) asked: u64,
    signals: Signals,
}

/// Why the loop ends, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// A signal came; the command has until then to end.
    Asked {
        until: Instant,
    },
    /// A second signal came: nothing is waited for.
    AtOnce {
        signal: i32,
    },
    /// The trace cannot be written.
    CannotWrite,
    /// A signal came, and there is no command to wait for.
    Over,
}

impl Course {
    pub(crate) fn new(child: Option<Child>, signals: Signals) -> Self {
        Self { child, exit_status: None, stop: Stop::No, asked: 0, signals }
    }

    /// Whether the recording continues.
    pub(crate) fn continues(&self) -> bool {
        self.exit_status.is_none()
            && match self.stop {
                Stop::No => true,
                Stop::Asked { until } => Instant::now() < until,
                Stop::AtOnce { .. } | Stop::CannotWrite | Stop::Over => false,
            }
    }

    /// Whether there is a command that the recorder has started, and is to wait for.
    pub(crate) fn has_command(&self) -> bool {
        self.child.is_some()
    }

    /// Takes what signals have come. Gives whether one of them was for a snapshot.
    pub(crate) fn take_signals(&mut self) -> bool {
        // One snapshot, then the loop's other work, however fast the signal for snapshots is repeated.
        let mut snapshot = false;
        for _ in 0..BATCH {
            let Some(signal) = self.signals.next() else { break };
            if signal.number == SNAPSHOT {
                snapshot = true;
                continue;
            }
            self.asked += 1;
            // The command has already received what the terminal sends.
            if signal.from_process {
                self.child.iter().for_each(|child| child.signal(signal.number));
            }
            self.stop = match self.stop {
                Stop::No | Stop::Over if !self.has_command() => Stop::Over,
                Stop::No => Stop::Asked { until: Instant::now() + GRACE },
                Stop::CannotWrite => Stop::CannotWrite,
                Stop::Asked { .. } | Stop::AtOnce { .. } | Stop::Over => {
                    Stop::AtOnce { signal: signal.number }
                }
            };
        }
        snapshot
    }
}
