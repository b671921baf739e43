//! What a recording amounts to, for a person's table and for a program's JSON.

use std::path::PathBuf;

use serde::Serialize;
use tracewing_consumer::drain::{LossRange, StreamSummary};
use tracewing_consumer::folder::State;

/// How a recording ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Exit status of the command: its own, or 128 and the number of the signal that ended it.
    pub exit_status: i32,
    /// What was recorded.
    pub summary: Summary,
}

/// What was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The trace folder.
    pub folder: PathBuf,
    /// Whether the recording ended as it should.
    pub state: State,
    /// Seconds from the command's start to the end.
    pub seconds: f64,
    /// The recording's clock when the command was started, cycles.
    pub begin: u64,
    /// Hz of the recording's clock.
    pub frequency: u64,
    /// Events in the trace.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
    /// Size of the trace folder, bytes.
    pub bytes: u64,
    /// Programs that joined.
    pub processes: usize,
    /// User streams.
    pub user_streams: Vec<StreamSummary>,
    /// Kernel streams.
    pub kernel_streams: Vec<StreamSummary>,
    /// What was lost, where, why and when (in cycles of the recording's clock).
    pub losses: Vec<LossRange>,
    /// What the user was told besides.
    pub notes: Vec<String>,
}
