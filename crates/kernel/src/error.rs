//! What can go wrong while kernel events are recorded, in words for the user.

use std::io;
use std::path::PathBuf;

/// Why a text of tracefs (`format`, `header_page`) could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A line that must be there is not.
    #[error("there is no line `{0}:`")]
    Without(&'static str),
    /// The event's number is none.
    #[error("`{0}` is not an event number (0 to 65535)")]
    Id(String),
    /// A `field:` line is not of the form `field:…; offset:…; size:…; signed:…;`.
    #[error("`{0}` is not a field description")]
    Field(String),
    /// The C declaration in a `field:` line is of no known form.
    #[error("`{0}` is not a declaration of a field")]
    Declaration(String),
    /// `events/header_page` does not describe a page of the known form.
    #[error("the kernel describes its buffer pages in an unknown way")]
    PageHeader,
    /// A field lies outside of its record or is not as expected.
    #[error("field `{0}` does not lie in its record")]
    Outside(String),
    /// One of the above, and where.
    #[error("line {line}: {cause}")]
    AtLine {
        /// Number of the line, from 1.
        line: usize,
        /// The fault in that line.
        cause: Box<FormatError>,
    },
}

impl FormatError {
    pub(crate) fn at_line(self, line: usize) -> Self {
        Self::AtLine { line, cause: Box::new(self) }
    }
}

/// What keeps this process from recording kernel events: one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The process may not use tracefs.
    #[error("kernel events need root: run the same command with sudo")]
    Root,
    /// tracefs is mounted in a way that cannot be written to.
    #[error(
        "kernel events need {path} writable: it is read-only here (as in most containers); record on the host"
    )]
    ReadOnly {
        /// Where tracefs is mounted.
        path: PathBuf,
    },
    /// The kernel has no tracefs.
    #[error(
        "this kernel has no tracefs: kernel events need one built with CONFIG_EVENT_TRACING, as those of all distributions are"
    )]
    Tracefs,
    /// The kernel is locked down.
    #[error(
        "kernel lockdown (confidentiality) forbids kernel events: boot without lockdown=confidentiality to record them"
    )]
    Lockdown,
    /// Opening a file of the tracer never returns, as after a kernel oops in it.
    #[error("the kernel's tracer does not answer (see dmesg): kernel events can be recorded after a reboot")]
    Hangs,
    /// The byte order is not the one of our traces.
    #[error("kernel events are recorded on little-endian machines only")]
    BigEndian,
    /// Something else failed while looking.
    #[error("cannot use tracefs for kernel events: {path}: {source}")]
    Io {
        /// File or folder in tracefs.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
}

/// An event that the kernel does not let be enabled.
#[derive(Debug, thiserror::Error)]
#[error("{system}:{name} ({source})")]
pub struct RefusedEvent {
    /// Its subsystem, the folder in tracefs: `sched`.
    pub system: String,
    /// Its name in ftrace, which may differ from LTTng's: `sched_switch`.
    pub name: String,
    /// Error that the system returned.
    pub source: io::Error,
}

/// Refused events, for the user.
pub(crate) fn joined(refused: &[RefusedEvent]) -> String {
    refused.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An operation on a file or folder of tracefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Action {
    /// Open a file.
    #[error("open")]
    Open,
    /// Read a file.
    #[error("read")]
    Read,
    /// Write a file.
    #[error("write")]
    Write,
    /// Make a folder.
    #[error("make")]
    Make,
    /// Remove a folder.
    #[error("remove")]
    Remove,
    /// List a folder.
    #[error("list")]
    List,
}

/// A line of the kernel's own log of errors, in its words: causes there have no numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KernelText(pub(crate) String);

fn in_parentheses(text: Option<&KernelText>) -> String {
    text.map_or_else(String::new, |text| format!(" ({text})"))
}

/// Everything that can go wrong in this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Kernel events cannot be had here.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file of tracefs could not be used.
    #[error("cannot {action} {path}: {source}")]
    Tracefs {
        /// The operation that failed.
        action: Action,
        /// File or folder of the operation.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
    /// A description in tracefs could not be understood.
    #[error("{path}: {source}; please report this with the file's text")]
    Format {
        /// The file in tracefs that has the description.
        path: PathBuf,
        /// The fault in the description.
        source: FormatError,
    },
    /// No event is left to record.
    #[error(
        "no kernel event is named {0}: `cat /sys/kernel/tracing/available_events` lists what this kernel has"
    )]
    NothingChosen(String),
    /// The same, but a name is much like one of those.
    #[error("no kernel event is named {names}; is `{meant}` meant?")]
    Misspelt {
        /// As they were given.
        names: String,
        /// An event that this kernel has.
        meant: String,
    },
    /// The kernel refused every chosen event.
    #[error("the kernel refuses to enable any of the chosen events: {}", joined(.0))]
    NothingEnabled(Vec<RefusedEvent>),
    /// The kernel has no uprobes.
    #[error(
        "this kernel has no probes: they need one built with CONFIG_UPROBE_EVENTS, as those of all distributions are"
    )]
    NoUprobes,
    /// A probe cannot be placed.
    #[error("the kernel cannot place the probe {name}: {source}{}", in_parentheses(reason.as_ref()))]
    Probe {
        /// The name of its event.
        name: String,
        /// Error that the system returned.
        source: io::Error,
        /// What more the kernel says, if anything.
        reason: Option<KernelText>,
    },
    /// Process numbers are not the kernel's here.
    #[error(
        "kernel events of one process tree cannot be identified inside a container (PID namespace): record the whole \
         system, or from outside of the container"
    )]
    PidNamespace,
    /// More events than the trace format numbers.
    #[error("{0} kernel events are chosen, a recording can hold 65535 kinds: choose fewer")]
    TooMany(usize),
    /// The requested size of buffers is too small or too large.
    #[error("the kernel cannot give {kib} KiB of buffer per CPU: {source}; ask for less")]
    Buffer {
        /// Requested size per CPU, in KiB.
        kib: u32,
        /// Error that the system returned.
        source: io::Error,
    },
    /// A file of the trace could not be written.
    #[error("cannot write {path}: {source}; what was written before stays readable")]
    Write {
        /// File that could not be written.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
}

impl From<tracewing_streams::Error> for Error {
    fn from(error: tracewing_streams::Error) -> Self {
        Self::Write { path: error.path, source: error.source }
    }
}
