//! What a trace says of itself in the `env` block of its metadata: the keys, and the values that have a
//! meaning.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

/// Declares keys, and the list of all of them.
macro_rules! keys {
    ($( $(#[$doc:meta])+ $name:ident = $key:literal; )+) => {
        $( $(#[$doc])+ pub const $name: &str = $key; )+

        /// Every key that is no [note](note_key) on an event class.
        pub const KEYS: &[&str] = &[ $( $name ),+ ];
    };
}

keys! {
    /// What the events are of: [`KERNEL`], [`USER`] or [`PROFILE`]; in LTTng's traces `kernel` or `ust`.
    DOMAIN = "domain";
    /// The tracer, [`TRACEWING`] for ours.
    TRACER_NAME = "tracer_name";
    /// The tracer's version.
    TRACER_VERSION = "tracer_version";
    /// The machine's name.
    HOSTNAME = "hostname";
    /// The operating system's name.
    SYSNAME = "sysname";
    /// The kernel's release.
    KERNEL_RELEASE = "kernel_release";
    /// The kernel's version.
    KERNEL_VERSION = "kernel_version";
    /// The processor's architecture.
    ARCHITECTURE = "architecture";
    /// In a trace of LTTng-UST with buffers per process: the process.
    VPID = "vpid";
    /// In such a trace: the process's name.
    PROCNAME = "procname";
    /// In a kernel trace: [`SYSTEM`] where it has the events of all threads. Without it, it has those of
    /// [`ROOT_PROCESS`] and its descendants, or of [`ATTACHED_PROCESSES`].
    SCOPE = "scope";
    /// In a kernel trace: the process whose tree it has the events of.
    ROOT_PROCESS = "root_process";
    /// In a kernel trace: the processes that ran already when it began and that it has the events of, and of
    /// what they started; numbers, with spaces between.
    ATTACHED_PROCESSES = "attached_processes";
    /// In a trace of samples: what triggers a sample.
    PROFILE_EVENT = "profile_event";
    /// In a trace of samples: samples a second.
    PROFILE_HERTZ = "profile_hertz";
    /// In a trace of samples: what counters are of, [`OF_CPU`] or [`OF_TREE`].
    PROFILE_COUNTERS = "profile_counters";
    /// In an extract: when it begins, in nanoseconds on the recording's clock. Earlier events only give
    /// names.
    EXTRACT_BEGIN = "extract_begin_ns";
    /// In an extract: when it ends, likewise. Until then nothing is missing after its last event.
    EXTRACT_END = "extract_end_ns";
    /// In an extract: [`SOME`] where switches of threads that are in it may be missing.
    EXTRACT_SWITCHES = "extract_switches";
    /// In an extract: [`SOME`] where system calls may be missing.
    EXTRACT_SYSTEM_CALLS = "extract_system_calls";
    /// In an extract: [`SOME`] where interrupts may be missing.
    EXTRACT_INTERRUPTS = "extract_interrupts";
    /// In an extract: the names of classes of which events were left out, a line each.
    EXTRACT_LEFT_OUT = "extract_left_out";
    /// In an extract: patterns for the user threads that it is of, a line each. An extract of an extract has
    /// a second one, under a key that begins with this one.
    EXTRACT_TASKS = "extract_tasks";
    /// In an extract: [`SOME`] where it is of certain LWPs.
    EXTRACT_LWPS = "extract_lwps";
    /// In an extract: the LWPs that it is of, `PROCESS/TID`, or `TID` where the process is unknown.
    EXTRACT_TIDS = "extract_tids";
    /// In an extract: [`SOME`] where it is of certain CPUs.
    EXTRACT_CPUS = "extract_cpus";
    /// In a trace that was made of another one: what was lost before the first packet, a line for each
    /// stream.
    LOST_AT_BEGIN = "lost_at_begin";
    /// In a trace that was made of another one: what was lost after the last packet, likewise.
    LOST_AT_END = "lost_at_end";
}

/// What all keys of extracts begin with.
pub const EXTRACT: &str = "extract_";

/// [`DOMAIN`]: the kernel.
pub const KERNEL: &str = "kernel";
/// [`DOMAIN`]: programs.
pub const USER: &str = "user";
/// [`DOMAIN`]: samples and counters.
pub const PROFILE: &str = "profile";
/// [`TRACER_NAME`]: this tracer.
pub const TRACEWING: &str = "tracewing";
/// [`SCOPE`]: all threads of the machine.
pub const SYSTEM: &str = "system";
/// [`PROFILE_COUNTERS`]: a CPU.
pub const OF_CPU: &str = "cpu";
/// [`PROFILE_COUNTERS`]: processes, and their descendants.
pub const OF_TREE: &str = "tree";
/// Of what an extract has, some may be missing.
pub const SOME: &str = "some";

/// What all keys of notes on event classes begin with.
pub const NOTE: &str = "event_";

/// A note on an event class, for which CTF 1.8 has no place of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// What its events mean.
    Description,
    /// How they are printed.
    Print,
    /// Source file of its declaration.
    File,
    /// Line there.
    Line,
    /// Its major class, where it is not 0.
    Major,
    /// The unit of this field.
    Unit(&'a str),
}

impl<'a> Note<'a> {
    /// What the key has after the class's id.
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

/// The event class and the note that a key is for; `None` for other keys.
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
