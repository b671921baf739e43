//! What programs have emitted, by their own counts, and what archives have of it: each event once, in order,
//! and none that no program has emitted.

use crate::recorded::list;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

/// Events that were emitted for sure, and how many more may have been.
#[derive(Debug, Default, Clone, Copy)]
pub struct Emitted {
    pub sure: u64,
    pub perhaps: u64,
}

impl Emitted {
    pub fn and(self, more: Self) -> Self {
        Self { sure: self.sure + more.sure, perhaps: self.perhaps + more.perhaps }
    }

    pub fn since(self, before: Self) -> Self {
        Self { sure: self.sure - before.sure, perhaps: self.perhaps - before.perhaps }
    }

    pub fn range(self) -> RangeInclusive<u64> {
        self.sure..=self.sure + self.perhaps
    }
}

/// How a program has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Own,
    Killed,
    KilledWhileItEmits,
}

struct Program {
    tids: Vec<i64>,
    /// Events of each of its threads that emit.
    counts: Vec<u64>,
    end: End,
}

impl Program {
    fn perhaps(&self) -> u64 {
        if self.end == End::KilledWhileItEmits { self.counts.len() as u64 } else { 0 }
    }

    /// The largest number that an event of it can have.
    fn most(&self) -> u64 {
        self.counts.iter().max().unwrap() + self.perhaps().min(1)
    }
}

/// All programs, in the order in which they have begun.
#[derive(Default)]
pub struct Books(Vec<Program>);

impl Books {
    pub fn add(&mut self, tids: Vec<i64>, counts: Vec<u64>, end: End) {
        self.0.push(Program { tids, counts, end });
    }

    pub fn programs(&self) -> usize {
        self.0.len()
    }

    /// Threads that have emitted events.
    pub fn threads(&self) -> u64 {
        self.0.iter().map(|program| program.counts.len() as u64).sum()
    }

    pub fn emitted(&self) -> Emitted {
        self.0.iter().fold(Emitted::default(), |all, program| {
            all.and(Emitted { sure: program.counts.iter().sum(), perhaps: program.perhaps() })
        })
    }

    fn ended(&self, end: End) -> usize {
        self.0.iter().filter(|program| program.end == end).count()
    }

    /// How many of their events the archives of a recording have, each of which is read alone: the numbers of
    /// a thread become larger from event to event, also from one archive to the next, and are those that the
    /// thread has counted.
    pub fn check_archives(&self, recording: &Path) -> u64 {
        let mut threads: BTreeMap<i64, Thread> = BTreeMap::new();
        for program in &self.0 {
            for tid in &program.tids {
                threads.entry(*tid).or_default().most.push(program.most());
            }
        }
        let about = fs::read_to_string(recording.join("tracewing.json")).unwrap();
        let about: Value = serde_json::from_str(&about).unwrap();
        let mut read = 0;
        for archive in about["archives"].as_array().unwrap() {
            let folder = archive["folder"].as_str().unwrap();
            for event in list(&recording.join(folder)).iter().filter(|event| event.name == "pilot:count") {
                let thread = threads.get_mut(&event.tid);
                let thread = thread.unwrap_or_else(|| panic!("{folder}: thread {} of no program", event.tid));
                thread.take(event.number("number"), folder);
                read += 1;
            }
        }
        read
    }
}

/// The threads that have had a number, one after the other.
#[derive(Default)]
struct Thread {
    most: Vec<u64>,
    /// Which of them was seen last, and its last event's number.
    at: usize,
    last: u64,
}

impl Thread {
    fn take(&mut self, number: u64, folder: &str) {
        if number <= self.last {
            self.at += 1; // another thread has this id now, or it is a second time that this event is here
        }
        while self.most.get(self.at).is_some_and(|most| number > *most) {
            self.at += 1;
        }
        assert!(
            self.at < self.most.len(),
            "{folder}: event {number} after {}, of {:?}",
            self.last,
            self.most
        );
        self.last = number;
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (idle, emitting) = (self.ended(End::Killed), self.ended(End::KilledWhileItEmits));
        let Emitted { sure, perhaps } = self.emitted();
        writeln!(f, "| | |\n|---|--:|\n| programs | {} |", self.programs())?;
        writeln!(
            f,
            "| of these killed, while they waited | {idle} |\n| and while they emitted | {emitting} |"
        )?;
        write!(
            f,
            "| events emitted, by their counts | {sure} |\n| and perhaps, when they were killed | {perhaps} |"
        )
    }
}
