//! State of a flight recorder: the snapshots that it has taken, how many of them are kept, and how many more
//! may be requested.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::fstatvfs;
use tracewing_abi::message::snapshot::Asker;
use tracewing_files::Dir;
use tracewing_units::Pid;

use crate::limits::Budget;
use crate::options::{Rotate, SnapshotOn};
use crate::outcome::SnapshotSummary;
use crate::remover::Remover;

/// The state of a flight recorder, which has no trace folder.
pub(crate) struct Flight {
    /// Where the snapshots go.
    pub(crate) output: Dir,
    pub(crate) on: SnapshotOn,
    /// How much is kept.
    options: Rotate,
    pub(crate) begun: u64,
    /// How many were taken, and how many events those have that are no longer listed.
    pub(crate) count: u32,
    pub(crate) unlisted_events: u64,
    /// The last ones.
    pub(crate) taken: Vec<SnapshotSummary>,
    remover: Remover,
    /// Snapshots that programs may still request.
    asked: Budget,
}

/// Snapshots that may be requested in a row, and per second after that: a program may request them in a loop.
const ASKED: (u32, f64) = (32, 0.5);
/// Snapshots that are listed one by one; the first ones go.
const MOST_LISTED: usize = 1000;
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
    pub(crate) fn new(output: Dir, on: SnapshotOn, options: Rotate) -> Self {
        let asked = Budget::new(ASKED.0, ASKED.1, Instant::now());
        let (taken, remover) = (Vec::new(), Remover::default());
        Self { output, on, options, begun: 0, count: 0, unlisted_events: 0, taken, remover, asked }
    }

    /// Lists a snapshot, and removes the oldest ones if there are too many, or have too many bytes. The new
    /// one is kept in any case. One that the user has moved or removed counts no more.
    ///
    /// # Errors
    /// One cannot be removed; it is kept, and counts no more.
    pub(crate) fn add(&mut self, summary: SnapshotSummary) -> io::Result<()> {
        if self.taken.len() >= MOST_LISTED {
            self.unlisted_events += self.taken.remove(0).events;
        }
        self.taken.push(summary);
        self.count = self.count.saturating_add(1);
        let kept = self.taken.iter().filter(|one| !one.is_removed);
        let (mut count, mut bytes) =
            kept.fold((0, 0_u64), |(count, bytes), one| (count + 1, bytes + one.bytes));
        let Some((_, earlier)) = self.taken.split_last_mut() else { return Ok(()) };
        for one in earlier.iter_mut().filter(|one| !one.is_removed) {
            let are_too_many = self.options.keep.is_some_and(|most| count > most.get());
            if !are_too_many && self.options.total.is_none_or(|most| bytes <= most) {
                break;
            }
            (count, bytes) = (count - 1, bytes - one.bytes);
            one.is_removed = true;
            let name = one.folder.file_name().unwrap_or_default().to_string_lossy();
            self.remover.remove(&self.output, &name)?;
        }
        Ok(())
    }

    /// Waits until all that was removed is gone.
    pub(crate) fn finish_removing(&mut self) {
        self.remover.finish();
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
