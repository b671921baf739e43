//! What a recording amounts to, for a person's table and for a program's JSON.

use std::path::PathBuf;

use serde::Serialize;
use tracewing_consumer::description::{AllArchives, ArchiveTotals, AttachedDescription, Removed, State};
use tracewing_consumer::summary::{LossRange, OverwrittenRange, StreamSummary};
use tracewing_units::{Cycles, Duration};

/// How a recording ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Exit status of the command: its own, or 128 and the number of the signal that ended it. 1 instead of 0
    /// if the recording is incomplete because the disk is full or the folder is gone.
    pub exit_status: i32,
    /// Numbers of events, losses and programs.
    pub summary: Summary,
}

/// Numbers of events, losses and programs of a recording.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The trace folder, or that of a flight recorder's snapshots.
    pub folder: PathBuf,
    /// Whether the recording ended as it should, and a flight recorder's last snapshot could be written.
    pub state: State,
    /// Seconds from the command's start to the end.
    pub seconds: f64,
    /// The recording's clock when the command was started, cycles.
    #[serde(rename = "begin_cycles")]
    pub begin: Cycles,
    /// Hz of the recording's clock.
    #[serde(rename = "frequency_hz")]
    pub frequency: u64,
    /// Events in the trace, without those that repeat the state; or in all snapshots together: an event that
    /// several snapshots have is counted in each.
    pub events: u64,
    /// Number of events that are known to be lost.
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// Size of the trace folder, bytes.
    pub bytes: u64,
    /// Number of programs that joined.
    pub processes: usize,
    /// The streams of programs' events.
    pub user_streams: Vec<StreamSummary>,
    /// The streams of the kernel's events.
    pub kernel_streams: Vec<StreamSummary>,
    /// The streams of samples; empty without `--profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_streams: Vec<StreamSummary>,
    /// What was lost, where, why and when (in cycles of the recording's clock).
    pub losses: Vec<LossRange>,
    /// What was overwritten before it was read (before a snapshot: see there), where and when.
    pub overwritten: Vec<OverwrittenRange>,
    /// A flight recorder's snapshots, the last ones if there are many, also those that were removed; `None`
    /// where a trace was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<Vec<SnapshotSummary>>,
    /// What all its snapshots amount to, also those that are not listed; `None` where a trace was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_totals: Option<SnapshotTotals>,
    /// A rotated recording's archives, the last ones if there are many, also those that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveTotals>,
    /// What all its archives amount to, also those that are not listed; `None` if it was not rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_totals: Option<AllArchives>,
    /// How often the command of `--on-archive` was run; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_archive: Option<CommandTotals>,
    /// Processes that ran already and were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<AttachedDescription>,
    /// The longest time for which a thread of theirs was stopped; `None` where none was.
    #[serde(rename = "longest_stop_ns", skip_serializing_if = "Option::is_none")]
    pub longest_stop: Option<Duration>,
    /// Further messages to the user.
    pub notes: Vec<String>,
}

/// How often a command was run for an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CommandTotals {
    /// It was run to its end.
    pub run: u64,
    /// Of these, it ended by a signal or with another status than 0, or could not be executed.
    pub failed: u64,
    /// It was not run, or not waited for: the archive was removed before, or the recorder ended.
    pub skipped: u64,
}

/// All snapshots of a flight recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotTotals {
    /// Snapshots that were taken.
    pub taken: u32,
    /// Of these, those that were removed again, for want of room.
    #[serde(flatten)]
    pub removed: Removed,
}

/// A snapshot of a flight recorder.
#[derive(Debug, Clone, Serialize)]
pub struct SnapshotSummary {
    /// Its folder: a trace.
    pub folder: PathBuf,
    /// Whether all of it could be written.
    pub state: State,
    /// What asked for it.
    pub reason: String,
    /// Seconds from the command's start to the snapshot.
    pub seconds: f64,
    /// Number of events in the snapshot.
    pub events: u64,
    /// Size of its folder, bytes.
    pub bytes: u64,
    /// The streams of programs' events.
    pub user_streams: Vec<StreamSummary>,
    /// The streams of the kernel's events.
    pub kernel_streams: Vec<StreamSummary>,
    /// Whether it was removed again, for want of room.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_removed: bool,
}
