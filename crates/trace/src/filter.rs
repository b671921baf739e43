//! Which part of a recording is wanted: a time range, and in it events, threads, processes and CPUs.

use crate::listing;
use crate::open::Recording;
use crate::select::Selection;
use crate::time_range::{TimePoint, TimeRange};
use crate::{Error, Zone};
use std::ops::RangeInclusive;
use tracewing_rules::{Glob, Predicate, ProcessPattern};

/// What a user wants of a recording; everything by default.
///
/// A list without elements is no restriction; of a list with some, one must fit. All restrictions must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// What lies before is left out.
    pub from: Option<TimePoint>,
    /// What lies behind is left out.
    pub to: Option<TimePoint>,
    /// The zone of civil times.
    pub zone: Zone,
    /// Patterns for the names of events.
    pub events: Vec<String>,
    /// Patterns, none of which an event's name may match.
    pub exclude: Vec<String>,
    /// What must hold for an event.
    pub predicate: Option<Predicate>,
    /// Events of the kernel, or of programs.
    pub level: Option<Level>,
    /// User threads.
    pub threads: Vec<ThreadPattern>,
    /// Processes, by the number of their first thread.
    pub pids: Vec<i32>,
    /// LWPs, by their number.
    pub tids: Vec<i32>,
    /// Processes, by number or name: the name of their first thread.
    pub processes: Vec<ProcessPattern>,
    /// CPUs, by their number.
    pub cpus: Vec<RangeInclusive<u32>>,
}

/// One of the two levels of the super-trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Programs: their own events.
    User,
    /// The kernel's events.
    Kernel,
}

/// Chooses user threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPattern {
    /// By number, unique in a process; of one process where it is given.
    Number {
        /// The process.
        process: Option<i32>,
        /// The user thread.
        thread: u64,
    },
    /// By name.
    Name(Glob),
}

impl ThreadPattern {
    /// `12` is a number, `4711/12` a process and a number, all else a pattern for names.
    pub fn new(text: &str) -> Self {
        let number = match text.split_once('/') {
            Some((process, thread)) => process.parse().ok().map(Some).zip(thread.parse().ok()),
            None => text.parse().ok().map(|thread| (None, thread)),
        };
        match number {
            Some((process, thread)) => Self::Number { process, thread },
            None => Self::Name(Glob::new(text)),
        }
    }

    /// Whether a user thread of this process, number and name is meant; one without a name has none.
    pub fn matches(&self, process: Option<i32>, thread: u64, name: &str) -> bool {
        match self {
            Self::Number { process: wanted, thread: number } => {
                *number == thread && wanted.is_none_or(|wanted| Some(wanted) == process)
            }
            Self::Name(glob) => !name.is_empty() && glob.matches(name),
        }
    }
}

impl Filter {
    /// The time range.
    ///
    /// # Errors
    /// [`Error::Usage`] where its ends make no sense; the recording's begin has to be read for them, and cannot be.
    pub fn range(&self, recording: &Recording) -> Result<TimeRange, Error> {
        let begin = match (self.from, self.to) {
            (None, None) => 0,
            _ => listing::begin(recording)?,
        };
        TimeRange::between(self.from, self.to, begin, self.zone)
    }

    /// The events, by what they are.
    ///
    /// # Errors
    /// [`Error::Usage`] where the predicate fits no event of the recording.
    pub fn selection(&self, recording: &Recording) -> Result<Selection, Error> {
        let selection = Selection::new(&self.events).excluding(&self.exclude);
        match &self.predicate {
            Some(predicate) => selection.with_predicate(predicate.clone(), recording),
            None => Ok(selection),
        }
    }

    /// Whether events of a CPU are wanted; those of none only where all are.
    pub fn has_cpu(&self, cpu: Option<u32>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.iter().any(|range| range.contains(&cpu)))
    }
}
