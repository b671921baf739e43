//! The `env` block of a trace's metadata: the keys, and the values that have a meaning.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

/// Declares keys, and the list of all of them.
macro_rules! keys {
    ($( $(#[$doc:meta])+ $name:ident = $key:literal; )+) => {
        $( $(#[$doc])+ pub const $name: &str = $key; )+

        /// Every key that is not a [note](note_key) on an event class.
        pub const KEYS: &[&str] = &[ $( $name ),+ ];
    };
}

keys! {
    /// The origin of the events: [`KERNEL`], [`USER`] or [`PROFILE`]; in LTTng's traces `kernel` or `ust`.
    DOMAIN = "domain";
    /// Name of the tracer: [`TRACEWING`] for this one.
    TRACER_NAME = "tracer_name";
    /// Version of the tracer.
    TRACER_VERSION = "tracer_version";
    /// Host name of the machine.
    HOSTNAME = "hostname";
    /// Name of the operating system.
    SYSNAME = "sysname";
    /// Release of the kernel, as in `uname -r`.
    KERNEL_RELEASE = "kernel_release";
    /// Version of the kernel, as in `uname -v`.
    KERNEL_VERSION = "kernel_version";
    /// The processor's architecture.
    ARCHITECTURE = "architecture";
    /// In a trace of LTTng-UST with buffers per process: the process id.
    VPID = "vpid";
    /// In such a trace: the name of the process.
    PROCNAME = "procname";
    /// In a kernel trace: [`SYSTEM`] if it has the events of all threads. Without this key, it has those of
    /// [`ROOT_PROCESS`] and its descendants, or of [`ATTACHED_PROCESSES`].
    SCOPE = "scope";
    /// In a kernel trace: the root of the recorded process tree.
    ROOT_PROCESS = "root_process";
    /// In a kernel trace: the attached processes, which ran before it began; it has their events and those of
    /// their descendants. Numbers separated by spaces.
    ATTACHED_PROCESSES = "attached_processes";
    /// In a kernel trace: of which system calls it has begins and ends, [`ALL`] or [`ENTRIES`]. Without it,
    /// it has those of some at most.
    SYSTEM_CALLS = "recorded_system_calls";
    /// In a trace of programs: names of their classes of locks and user threads of which no event was
    /// enabled, one per line.
    EXCLUDED = "excluded_events";
    /// In a trace of samples: the event that triggers a sample.
    PROFILE_EVENT = "profile_event";
    /// In a trace of samples: samples per second.
    PROFILE_HERTZ = "profile_hertz";
    /// In a trace of samples: how the callers of a program's functions were found, [`FRAME_POINTERS`] or
    /// [`STACK_COPIES`]. Without it, by frame pointers.
    PROFILE_CALL_GRAPH = "profile_call_graph";
    /// In a trace of samples: the scope of counters, [`OF_CPU`] or [`OF_TREE`].
    PROFILE_COUNTERS = "profile_counters";
    /// In an extract: its beginning, in nanoseconds on the recording's clock. Earlier events only provide
    /// names.
    EXTRACT_BEGIN = "extract_begin_ns";
    /// In an extract: its end, likewise. Events between its last one and its end are not missing.
    EXTRACT_END = "extract_end_ns";
    /// In an extract: [`SOME`] if switches of its threads may be missing.
    EXTRACT_SWITCHES = "extract_switches";
    /// In an extract: [`SOME`] if system calls may be missing.
    EXTRACT_SYSTEM_CALLS = "extract_system_calls";
    /// In an extract: [`SOME`] if interrupts may be missing.
    EXTRACT_INTERRUPTS = "extract_interrupts";
    /// In an extract: the names of classes with events that were left out, one per line.
    EXTRACT_LEFT_OUT = "extract_left_out";
    /// In an extract: patterns for its user threads, one per line. An extract of an extract has a second
    /// list, under a key that begins with this one.
    EXTRACT_TASKS = "extract_tasks";
    /// In an extract: [`SOME`] if it is limited to certain LWPs.
    EXTRACT_LWPS = "extract_lwps";
    /// In an extract: its LWPs, `PROCESS/TID`, or `TID` if the process is unknown.
    EXTRACT_TIDS = "extract_tids";
    /// In an extract that is limited to certain CPUs: their ranges, as in `0-0 4-7`.
    EXTRACT_CPUS = "extract_cpus";
    /// In a trace that was made from another one: losses before the first packet, one line per stream.
    LOST_AT_BEGIN = "lost_at_begin";
    /// In a trace that was made from another one: losses after the last packet, likewise.
    LOST_AT_END = "lost_at_end";
    /// In a trace that was made from another one: other losses that its packets do not report, likewise.
    LOST_WITHIN = "lost_within";
}

/// Prefix of all keys of extracts.
pub const EXTRACT: &str = "extract_";

/// [`DOMAIN`] of events from the kernel.
pub const KERNEL: &str = "kernel";
/// [`DOMAIN`] of events from programs.
pub const USER: &str = "user";
/// [`DOMAIN`] of samples and counters.
pub const PROFILE: &str = "profile";
/// [`TRACER_NAME`] of this tracer.
pub const TRACEWING: &str = "tracewing";
/// [`SCOPE`] of all threads of the machine.
pub const SYSTEM: &str = "system";
/// [`SYSTEM_CALLS`]: begin and end of each call that the kernel records.
pub const ALL: &str = "all";
/// [`SYSTEM_CALLS`]: the beginning of each, not all ends.
pub const ENTRIES: &str = "entries";
/// [`PROFILE_CALL_GRAPH`]: the kernel followed frame pointers.
pub const FRAME_POINTERS: &str = "fp";
/// [`PROFILE_CALL_GRAPH`]: copies of stacks were followed by the tables in files.
pub const STACK_COPIES: &str = "dwarf";
/// [`PROFILE_COUNTERS`] per CPU.
pub const OF_CPU: &str = "cpu";
/// [`PROFILE_COUNTERS`] of a process and its descendants.
pub const OF_TREE: &str = "tree";
/// The extract may lack some of these events.
pub const SOME: &str = "some";

/// Prefix of all keys of notes on event classes.
pub const NOTE: &str = "event_";

/// A note on an event class, for which CTF 1.8 has no place of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// The meaning of its events.
    Description,
    /// The print form of its events.
    Print,
    /// Source file of its declaration.
    File,
    /// Line of its declaration.
    Line,
    /// Its major class, unless that is 0.
    Major,
    /// The unit of this field.
    Unit(&'a str),
}

impl<'a> Note<'a> {
    /// Parses the key after the class's id.
    fn of(text: &'a str) -> Option<Self> {
        Some(match text {
            "description" => Self::Description,
            "print" => Self::Print,
            "file" => Self::File,
            "line" => Self::Line,
            "major" => Self::Major,
            unit => Self::Unit(unit.strip_prefix("unit_")?),
        })
    }
}

impl Display for Note<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Description => "description",
            Self::Print => "print",
            Self::File => "file",
            Self::Line => "line",
            Self::Major => "major",
            Self::Unit(field) => return write!(f, "unit_{field}"),
        })
    }
}

/// The key of a note on the event class `id`.
pub fn note_key(id: u64, note: Note<'_>) -> String {
    format!("{NOTE}{id}_{note}")
}

/// The event class and the note of a key; `None` for other keys.
pub fn note_of(key: &str) -> Option<(u64, Note<'_>)> {
    let (id, note) = key.strip_prefix(NOTE)?.split_once('_')?;
    let id = Some(id).filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((id.parse().ok()?, Note::of(note)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notes_key_is_read_as_it_is_written() {
        let notes = [Note::Description, Note::Print, Note::File, Note::Line, Note::Major, Note::Unit("a_b")];
        for note in notes {
            assert_eq!(note_of(&note_key(7, note)), Some((7, note)));
        }
        for key in ["event_7", "event__print", "event_x_print", "event_7_other", "domain", "event_+7_print"] {
            assert_eq!(note_of(key), None, "{key}");
        }
    }
}
