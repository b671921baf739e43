//! State of a flight recorder: the snapshots that it has taken, and how many more may be requested.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::fstatvfs;
use tracewing_abi::message::snapshot::Asker;
use tracewing_files::Dir;
use tracewing_units::Pid;

use crate::limits::Budget;
use crate::options::SnapshotOn;
use crate::outcome::SnapshotSummary;

/// The state of a flight recorder, which has no trace folder.
pub(crate) struct Flight {
    /// Where the snapshots go.
    pub(crate) output: Dir,
    pub(crate) on: SnapshotOn,
    pub(crate) begun: u64,
    pub(crate) taken: Vec<SnapshotSummary>,
    /// Snapshots that programs may still request.
    asked: Budget,
}

/// Snapshots that may be requested in a row, and per second after that: a program may request them in a loop.
const ASKED: (u32, f64) = (32, 0.5);
/// Bytes that have to be free on the disk for each byte of the last snapshot, so that snapshots do not fill
/// it.
const FREE: u64 = 4;

/// The cause of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Signal,
    Exit,
    /// A request over the socket, by the process with this id.
    Asked(Asker, Pid),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal => f.write_str("SIGUSR2"),
            Self::Exit => f.write_str("exit"),
            Self::Asked(Asker::Program, pid) => write!(f, "asked for by process {pid}"),
            Self::Asked(Asker::Panic, pid) => write!(f, "panic in process {pid}"),
            Self::Asked(Asker::Command, _) => f.write_str("tracewing snapshot"),
        }
    }
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSnapshot {
    #[error("this is not a flight recorder")]
    NotFlightRecorder,
    /// The kernel gives no random bytes for the trace's UUID.
    #[error("{0}")]
    Uuid(io::Error),
    #[error(transparent)]
    User(#[from] tracewing_consumer::Error),
    #[error(transparent)]
    Kernel(#[from] tracewing_kernel::Error),
}

impl Flight {
    pub(crate) fn new(output: Dir, on: SnapshotOn) -> Self {
        let asked = Budget::new(ASKED.0, ASKED.1, Instant::now());
        Self { output, on, begun: 0, taken: Vec::new(), asked }
    }

    /// Why a process that asks gets no snapshot now.
    pub(crate) fn refusal(&mut self) -> Option<&'static str> {
        if !self.asked.take(Instant::now()) {
            return Some("too many were asked for in too short a time");
        }
        let last = self.taken.last().map_or(0, |taken| taken.bytes);
        let free =
            fstatvfs(&self.output).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        (free < last.saturating_mul(FREE)).then_some("the disk has too little room for many more")
    }
}

/// A path as processes in other folders need it.
pub(crate) fn absolute(path: &std::path::Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
