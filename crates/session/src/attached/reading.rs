//! Reading of what programs contain: the only part of attaching that parses what a program, or the maker of
//! its files, has written (ELF headers, notes, names). A recorder does it itself, or has it done with the
//! rights of the program's user, and no others: a [`Reader`] decides.

use std::fs::File;
use std::path::{Path, PathBuf};

use tracewing_programs::image::{Files, Process, started_with};
use tracewing_programs::{Entry, entries};
use tracewing_units::{Pid, Timestamp};

/// A copy of tracewing in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    /// Whether the program has started with its object, which is then never unloaded. Not looked at where all
    /// have been loaded for long.
    pub(crate) has_started: bool,
}

/// A process, or its executable, as it is handed to the part that parses it.
#[derive(Debug)]
pub(crate) enum Source {
    /// Its memory.
    Memory {
        /// `mem` and `maps` of `/proc/PID`.
        memory: File,
        maps: File,
        /// The path of its executable, in the words of the kernel.
        executable: PathBuf,
        /// Objects that were loaded after that may be plug-ins. `None`: none are distinguished.
        settled: Option<Timestamp>,
    },
    /// Its executable, where its memory cannot be read.
    Executable { path: PathBuf, file: File },
}

impl Source {
    /// What is known of a process, and is open to this one.
    pub(crate) fn open(pid: Pid, settled: Option<Timestamp>) -> Option<Self> {
        let open = |name| File::open(format!("/proc/{pid}/{name}"));
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if let (Ok(memory), Ok(maps)) = (open("mem"), open("maps")) {
            return Some(Self::Memory { memory, maps, executable, settled });
        }
        Some(Self::Executable { path: executable, file: open("exe").ok()? })
    }
}

/// Parses what programs contain.
pub(crate) trait Reader: Sync {
    /// Finds the copies of tracewing.
    ///
    /// # Errors
    /// Why it could not.
    fn find(&self, pid: Pid, source: Source) -> Result<Vec<Found>, Unread>;
}

/// Why the contents of a process are unknown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// It has ended, or is no program.
    #[error("it has ended")]
    Nothing,
    /// There is no process that could read it.
    #[error("the system refuses a process that reads it ({0})")]
    NoProcess(std::io::Error),
    /// That process has ended.
    #[error("the process that reads it has failed")]
    Failed,
    /// That process was killed.
    #[error("the process that reads it was not done in time")]
    Late,
}

/// Reads in the calling process.
#[derive(Debug)]
pub(crate) struct Here;

impl Reader for Here {
    fn find(&self, _: Pid, source: Source) -> Result<Vec<Found>, Unread> {
        find(source).ok_or(Unread::Nothing)
    }
}

/// The copies; `None` where there is nothing to read.
pub(crate) fn find(source: Source) -> Option<Vec<Found>> {
    let all = |entries: Vec<Entry>| entries.into_iter().map(|entry| Found { entry, has_started: false });
    match source {
        Source::Memory { memory, maps, executable, settled } => {
            let process = Process::of(memory, maps).ok()??;
            Some(of_memory(&process, &executable, settled, all(entries(&process)).collect()))
        }
        Source::Executable { path, file } => {
            let files = Files::of(&path, file).ok()?;
            Some(all(entries(&files)).collect())
        }
    }
}

fn of_memory(
    process: &Process,
    executable: &Path,
    settled: Option<Timestamp>,
    mut all: Vec<Found>,
) -> Vec<Found> {
    let may_be_plug_in =
        |found: &Found| settled.is_some_and(|settled| found.entry.loaded.is_none_or(|at| at > settled));
    if all.iter().any(may_be_plug_in) {
        let started = started_with(executable, process);
        all.iter_mut().for_each(|found| found.has_started = started.contains(&found.entry.number));
    }
    all
}
