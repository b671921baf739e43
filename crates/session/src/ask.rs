//! A running recording, as other processes see it, and why it refused a request.

use std::path::PathBuf;

use tracewing_abi::message::snapshot::Figures;
use tracewing_units::Pid;

/// A running recording, as its recorder describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The folder of its sockets.
    pub(crate) folder: PathBuf,
    /// User id of the recorder.
    pub user: u32,
    /// The recorder's process id.
    pub pid: Pid,
    /// Process id of the recorded command; the recorder's own if it records none.
    pub command_pid: Pid,
    /// Process ids of the processes that it has attached to, or that have joined with events of their own.
    pub processes: Vec<Pid>,
    /// Whether it is a flight recorder.
    pub is_flight_recorder: bool,
    /// Whether it waits for the events of a trigger, for the other recorders of its session.
    pub is_trigger: bool,
    /// How far the recording is.
    pub figures: Figures,
    /// What the user has called it; empty if nothing.
    pub name: String,
    /// The recorded command, its words separated by spaces.
    pub command: String,
    /// The folder that it writes to.
    pub output: PathBuf,
}

/// Where a recorder may run that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// The folder of its sockets, or the one that has such folders.
    pub place: PathBuf,
    /// Why, and what to do.
    pub why: String,
}

/// Why a recording refused a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// There is no running recording that this user may ask.
    #[error(
        "no recording is running; start one with `tracewing record{} -- CMD` or `tracewing record{} --pid PID`",
        options(.0), options(.0)
    )]
    NoneRuns(Kind),
    /// The word names no recording.
    #[error("no running recording is called {name:?}; there {}", listed(running))]
    NoSuch {
        /// The name or process id that was given.
        name: String,
        /// The recordings that do run, which the message lists.
        running: Vec<Running>,
    },
    /// The recording that is meant may be one that does not answer.
    #[error(
        "recorders that do not answer (process {}): stopped, or of another version of tracewing; say which recording is meant{}",
        pids(.0), others(.1)
    )]
    Silent(Vec<Pid>, Vec<Running>),
    /// The recording that is meant may be one that could not be asked.
    #[error("not all recorders could be asked: {}; say which recording is meant{}", places(.0), others(.1))]
    Unseen(Vec<Unseen>, Vec<Running>),
    /// Several recordings could be meant.
    #[error("several {} are running; name one by {}:{}", .0, names(.1), lines(.1))]
    Several(Kind, Vec<Running>),
    /// It keeps everything on disk already.
    #[error(
        "process {0} is not a flight recorder: its trace is on disk already (see `tracewing record --flight-recorder`)"
    )]
    NotFlightRecorder(Pid),
    /// The recorder could not write a snapshot; why, in its words: it is another process.
    #[error("the recorder could not take a snapshot: {0}")]
    Failed(String),
    /// The recorder (by its process id) does not make the change; why, in its words.
    #[error("the recorder (process {0}) refuses: {1}")]
    Refused(Pid, String),
    /// It was asked to end, and is still writing.
    #[error(
        "the recorder (process {0}) has been asked to end and still writes; its trace is complete once it has ended"
    )]
    NoEnd(Pid),
    /// The change does not fit a message.
    #[error("too many or too long patterns")]
    TooLarge,
    /// It could not be asked, and may still run; why.
    #[error("the recorder (process {0}) could not be asked: {1}")]
    NotAsked(Pid, String),
    /// The connection broke: the recorder has ended, or is another version.
    #[error("the recorder (process {0}) did not answer; it has ended, or is of another version of tracewing")]
    NoAnswer(Pid),
}

/// Which recordings can be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any recording.
    Any,
    /// Flight recorders only.
    FlightRecorder,
}

impl Kind {
    pub(crate) fn has(self, one: &Running) -> bool {
        self == Self::Any || one.is_flight_recorder
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Any => "recordings",
            Self::FlightRecorder => "flight recorders",
        })
    }
}

fn options(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any => "",
        Kind::FlightRecorder => " --flight-recorder",
    }
}

fn listed(running: &[Running]) -> String {
    match running {
        [] => "is none".to_owned(),
        [one] => format!("is only {one}"),
        several => format!("are:{}", lines(several)),
    }
}

/// How one of several is named: channels of a session by their names, which last.
fn names(several: &[Running]) -> String {
    let channel = several.iter().map(|one| &one.name).find(|name| name.contains('/'));
    match channel {
        Some(name) => format!("SESSION/CHANNEL (such as {name}) or by its process id"),
        None => "its process id".to_owned(),
    }
}

fn pids(silent: &[Pid]) -> String {
    silent.iter().map(Pid::to_string).collect::<Vec<_>>().join(", ")
}

fn places(unseen: &[Unseen]) -> String {
    unseen.first().map(|first| first.of(unseen.len())).unwrap_or_default()
}

impl Unseen {
    /// The text for the first of several.
    pub fn of(&self, all: usize) -> String {
        match all {
            0 | 1 => self.to_string(),
            _ => format!("{self} (and {} more)", all - 1),
        }
    }
}

impl std::fmt::Display for Unseen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place.display(), self.why)
    }
}

fn others(running: &[Running]) -> String {
    if running.is_empty() { String::new() } else { format!("; others:{}", lines(running)) }
}

fn lines(running: &[Running]) -> String {
    running.iter().map(|one| format!("\n  {one}")).collect()
}

impl std::fmt::Display for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.is_flight_recorder { "flight recorder" } else { "recorder" };
        let name = if self.name.is_empty() { String::new() } else { format!("{}, ", self.name) };
        let of = if self.command.is_empty() { "no command" } else { &self.command };
        write!(f, "{} ({name}{kind} of {of}, into {})", self.pid, self.output.display())
    }
}
