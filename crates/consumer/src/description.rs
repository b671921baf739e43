//! `tracewing.json` in a trace folder: how the recording was made, and its totals.
//!
//! The file is written when the recording begins, so that it also describes a recording whose recorder was
//! killed. It is replaced when the recording ends.

use std::fs;

use serde::Serialize;
use tracewing_files::Dir;
use tracewing_proc::guarded::executable;
use tracewing_units::{Cycles, Pid};

use crate::Error;
use crate::clock::{Calibration, TraceClock};
use crate::cpus::possible_cpus;
use crate::summary::{LossRange, OverwrittenRange, StreamSummary};

/// Version of the description's shape.
pub const FORMAT: u32 = 1;
/// Name of the description in the trace folder.
pub const DESCRIPTION: &str = "tracewing.json";
/// The line of a description whose recording waits for the events of a trigger.
pub const IS_TRIGGER: &str = "\"is_trigger\": true,";

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is running, or its recorder was killed.
    Recording,
    /// The recording ended as it should; the trace is complete, apart from counted losses.
    Complete,
    /// Early, because a file could not be written.
    CutShort,
}

/// The content of `tracewing.json`.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// Version of this file's format: [`FORMAT`].
    pub format: u32,
    /// Version of tracewing that made the recording.
    pub version: String,
    /// Whether the recording is complete, and if not, why.
    pub state: State,
    /// Whether it records the events of a trigger, and nothing else ([`IS_TRIGGER`]).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_trigger: bool,
    /// The recorded command; empty for a program that records itself, and if running processes were recorded.
    pub command: Vec<String>,
    /// Running processes that were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<AttachedDescription>,
    /// The machine that was recorded.
    pub host: Host,
    /// The clock of all streams.
    pub clock: ClockDescription,
    /// The buffers of user events.
    pub buffers: BufferDescription,
    /// Event rules of the user trace when it began, as command-line options; if there are none, all events
    /// are recorded.
    pub event_rules: Vec<String>,
    /// Major classes of user events that were on when it began; absent if all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub majors: Option<String>,
    /// Options that record more than the events of instrumented programs and of the kernel, such as
    /// `--locks`.
    #[serde(rename = "options", skip_serializing_if = "Vec::is_empty")]
    pub asked_for: Vec<String>,
    /// Changes while it was running.
    pub changes: Vec<ChangeDescription>,
    /// The programs that joined, in the order of joining.
    pub processes: Vec<ProcessDescription>,
    /// Of a rotated recording: how many programs were listed here before, and are listed only in archives.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten_processes: usize,
    /// The streams of programs' events.
    pub user_streams: Vec<StreamSummary>,
    /// The streams of the kernel's events.
    pub kernel_streams: Vec<StreamSummary>,
    /// The streams of samples; empty without `--profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_streams: Vec<StreamSummary>,
    /// Losses with their times.
    pub losses: Vec<LossRange>,
    /// Sub-buffers that were overwritten before they were read, and when.
    pub overwritten: Vec<OverwrittenRange>,
    /// Further messages that the user has seen.
    pub notes: Vec<String>,
    /// Set next to buffers in files: the folder that the recording wrote its trace to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_folder: Option<String>,
    /// Set in a snapshot of a flight recorder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotDescription>,
    /// Set in an archive of a rotated recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveDescription>,
    /// The completed archives of a rotated recording, in its own folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveTotals>,
    /// What all of them amount to, also those that are no longer listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_totals: Option<AllArchives>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Which part of a recording an archive has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveDescription {
    /// Counted from 1 in each recording.
    pub number: u64,
    /// When it was begun. Each stream has the events from the end of its part in the archive before.
    #[serde(rename = "begin_cycles")]
    pub begin: Cycles,
    /// What ended it; absent while it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All completed archives of a rotated recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AllArchives {
    /// Archives that were completed.
    pub completed: u64,
    /// Those of them that were removed again.
    #[serde(flatten)]
    pub removed: Removed,
}

/// Archives or snapshots that were removed again: for want of room, or since the recording was cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// How many.
    #[serde(rename = "removed")]
    pub count: u64,
    /// Number of events in them.
    #[serde(rename = "removed_events")]
    pub events: u64,
    /// Bytes of their folders.
    #[serde(rename = "removed_bytes")]
    pub bytes: u64,
}

impl From<Removed> for tracewing_abi::message::snapshot::Removed {
    fn from(Removed { count, events, bytes }: Removed) -> Self {
        Self { count, events, bytes }
    }
}

impl Removed {
    /// Counts one more, which has had so many events and bytes.
    pub fn add(&mut self, events: u64, bytes: u64) {
        self.count += 1;
        self.events = self.events.saturating_add(events);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A completed archive, as the whole recording lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveTotals {
    /// Counted from 1 in each recording.
    pub number: u64,
    /// Its folder, from that of the recording.
    pub folder: String,
    /// Why it ended.
    pub reason: String,
    /// When it was begun.
    #[serde(rename = "begin_cycles")]
    pub begin: Cycles,
    /// When it ended: what was emitted before that is in it, or in an earlier one.
    #[serde(rename = "end_cycles")]
    pub end: Cycles,
    /// Events in it that happened, without those of `state_events`.
    pub events: u64,
    /// Events in it that repeat the state: the dump at its begin, and what programs report again.
    pub state_events: u64,
    /// Number of events that are known to be lost.
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// Whether more were lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lost_unknown: bool,
    /// Size of its folder, bytes.
    pub bytes: u64,
    /// Whether it was removed again: for want of room (`--total-size`), or since the recording was cleared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_removed: bool,
}

impl ArchiveTotals {
    /// The name of its folder.
    pub fn name(&self) -> &str {
        self.folder.rsplit_once('/').map_or(&self.folder, |(_, name)| name)
    }
}

/// A change of a running recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeDescription {
    /// When the change was requested.
    #[serde(rename = "time_cycles")]
    pub time: Cycles,
    /// The change: the command and its options.
    #[serde(rename = "change")]
    pub what: String,
}

/// Which snapshot it is, and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotDescription {
    /// Counted from 1 in each recording.
    pub number: u64,
    /// Cause of the snapshot.
    pub reason: String,
    /// When it was begun: everything emitted before that is still in the buffers is in it.
    #[serde(rename = "taken_cycles")]
    pub taken: Cycles,
    /// Earlier ones that were removed before.
    #[serde(flatten)]
    pub removed: Removed,
}

impl Description {
    /// Writes it into a folder, in place of an earlier one.
    pub(crate) fn write(&self, dir: &Dir) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        let written = text.and_then(|mut text| {
            text.push(b'\n');
            dir.replace(DESCRIPTION, &text)
        });
        written.map_err(Error::file("write", &dir.path().join(DESCRIPTION)))
    }

    /// The description at the start of a recording.
    pub fn new(clock: &TraceClock, begin: Calibration, buffers: BufferDescription) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Recording,
            is_trigger: false,
            command: Vec::new(),
            attached: Vec::new(),
            host: Host::this(),
            clock: ClockDescription {
                name: clock.name(),
                frequency: clock.frequency(),
                begin,
                stopped: None,
                end: None,
            },
            buffers,
            event_rules: Vec::new(),
            majors: None,
            asked_for: Vec::new(),
            changes: Vec::new(),
            processes: Vec::new(),
            forgotten_processes: 0,
            user_streams: Vec::new(),
            kernel_streams: Vec::new(),
            profile_streams: Vec::new(),
            losses: Vec::new(),
            overwritten: Vec::new(),
            notes: Vec::new(),
            trace_folder: None,
            snapshot: None,
            archive: None,
            archives: Vec::new(),
            archive_totals: None,
        }
    }
}

/// The machine that was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Host {
    /// The host's name, as `uname -n` prints it.
    pub name: String,
    /// `Linux` and its release.
    pub kernel: String,
    /// The kernel's name of the architecture, such as `x86_64`.
    pub machine: String,
    /// CPU buffers: one per CPU that can ever be online.
    pub cpus: usize,
}

impl Host {
    /// Describes the machine that this runs on.
    pub fn this() -> Self {
        let system = rustix::system::uname();
        let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
        Self {
            name: text(system.nodename()),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            machine: text(system.machine()),
            cpus: possible_cpus(),
        }
    }
}

/// The clock, and the real time that it showed.
#[derive(Debug, Clone, Serialize)]
pub struct ClockDescription {
    /// `tsc` or `monotonic`.
    pub name: &'static str,
    /// Cycles per second.
    #[serde(rename = "frequency_hz")]
    pub frequency: u64,
    /// At the recording's beginning; the metadata's offset comes from it.
    pub begin: Calibration,
    /// When the recording stopped: until then nothing is missing after the last event. For a
    /// snapshot, the time at which it was taken.
    #[serde(rename = "stopped_cycles")]
    pub stopped: Option<Cycles>,
    /// At its end: how far the clocks had drifted apart.
    pub end: Option<Calibration>,
}

/// The buffers of user events.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BufferDescription {
    /// Size of a sub-buffer, in bytes.
    pub sub_buffer_bytes: usize,
    /// Number of sub-buffers per CPU.
    pub sub_buffers: usize,
    /// Whether every process has its own; otherwise the processes of a user share them.
    pub per_process: bool,
    /// Whether full buffers lose their oldest sub-buffer; otherwise the new event.
    pub overwrite: bool,
    /// Maximum time from an event to its arrival on disk, milliseconds; absent for a flight recorder.
    pub flush_ms: Option<u64>,
}

/// A process that was already running when its recording began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachedDescription {
    /// Its process id in the recorder's PID namespace.
    pub pid: Pid,
    /// Real user id.
    pub uid: u32,
    /// File name of its executable, or the name of its main thread.
    pub name: String,
    /// Since when it is recorded.
    #[serde(rename = "attached_cycles")]
    pub attached: Cycles,
}

/// A program that joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessDescription {
    /// Its process id in the recorder's PID namespace.
    pub pid: Pid,
    /// The user that it ran as when it joined.
    pub uid: u32,
    /// Name of its main thread.
    pub name: String,
    /// Path of the executable.
    pub executable: String,
    /// When it joined, on the recording's clock.
    #[serde(rename = "joined_cycles")]
    pub joined: Cycles,
}

impl ProcessDescription {
    /// A live process, as `/proc` describes it; names are empty if it does not.
    pub fn of(pid: Pid, uid: u32, joined: Cycles) -> Self {
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let executable = executable(pid).unwrap_or_default();
        Self {
            pid,
            uid,
            name: String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned(),
            executable: executable.to_string_lossy().into_owned(),
            joined,
        }
    }
}
