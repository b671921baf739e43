//! The threads of running processes. Each has one perf event per CPU; all events of a CPU write into one
//! buffer.
//!
//! Threads that they start inherit their events. A thread that is started while its process's threads are
//! being listed may be in the list and inherit as well, so it would be sampled twice. The record of its
//! creation, written by the creator's event, reveals this, and its own events are closed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tracewing_units::{Cpu, Pid, Tid};

use crate::attribute::{Terms, switch, write_into};
use crate::counters::{Available, Counters, SinceBegin};
use crate::present;
use crate::record::Thread;

/// Number of rounds after which a process that keeps starting threads is accepted as it is.
const MOST_ROUNDS: usize = 100;
/// Within this time, a record of a thread's creation refers to a thread that was just listed, not to a later
/// one that reuses its number.
const CREATION: Duration = Duration::from_secs(1);
/// When there are so many heirs, those that have ended are forgotten.
const MOST_HEIRS: usize = 1 << 14;

/// The open events of running processes.
pub(crate) struct Followed {
    terms: Terms,
    available: Available,
    threads: BTreeMap<Tid, Opened>,
    /// Processes that have inherited their events.
    heirs: BTreeSet<Pid>,
    counted: SinceBegin,
}

struct Opened {
    samplers: Vec<OwnedFd>,
    counters: Counters,
    at: Instant,
}

/// The threads of a process that have no samples: how many, and why.
#[derive(Debug)]
pub struct Unsampled {
    process: Pid,
    not_allowed: usize,
    no_descriptors: usize,
    /// Threads that failed for another reason, and the last such error.
    other: Option<(usize, io::Error)>,
}

impl Followed {
    pub(crate) fn new(terms: Terms, available: Available) -> Self {
        Self {
            terms,
            available,
            threads: BTreeMap::new(),
            heirs: BTreeSet::new(),
            counted: SinceBegin::default(),
        }
    }

    /// Whether a process has inherited its events, according to the records read so far.
    pub(crate) fn is_heir(&self, process: Pid) -> bool {
        self.heirs.contains(&process)
    }

    /// Opens events for all threads of a process; call it once per process. The events write into the buffers
    /// of `outputs`, one per CPU.
    pub(crate) fn follow(&mut self, process: Pid, outputs: &[(Cpu, &OwnedFd)]) -> Unsampled {
        let mut missing = Unsampled::none(process);
        let mut tried = BTreeSet::new();
        for _ in 0..MOST_ROUNDS {
            let listed = present::threads(process).into_iter();
            let new: Vec<Tid> = listed.filter(|tid| tried.insert(*tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                match self.open(tid, outputs) {
                    Ok(opened) => drop(self.threads.insert(tid, opened)),
                    Err(error) => missing.add(error),
                }
            }
        }
        missing
    }

    fn open(&self, tid: Tid, outputs: &[(Cpu, &OwnedFd)]) -> io::Result<Opened> {
        let mut samplers = Vec::with_capacity(outputs.len());
        for (cpu, output) in outputs {
            let sampler = self.terms.open_sampler_of(tid, *cpu)?;
            write_into(&sampler, output)?;
            samplers.push(sampler);
        }
        let counters = self.available.open_of(&self.terms, tid);
        samplers.iter().try_for_each(|sampler| switch(sampler, true))?;
        counters.enable();
        Ok(Opened { samplers, counters, at: Instant::now() })
    }

    /// Handles the record that a followed thread has created this one, which inherits its events.
    pub(crate) fn created(&mut self, child: Thread) {
        if self.threads.get(&child.tid).is_some_and(|opened| opened.at.elapsed() < CREATION) {
            self.threads.remove(&child.tid);
        }
        if child.tid == child.pid.first_thread() {
            self.heirs.insert(child.pid);
        }
        if self.heirs.len() > MOST_HEIRS {
            self.heirs.retain(|process| !present::threads(*process).is_empty());
        }
    }

    /// The sum of each counter over all threads, since the trace's beginning.
    pub(crate) fn counters(&mut self) -> impl Iterator<Item = u64> {
        let mut sums = vec![0_u64; self.available.names().count()];
        for opened in self.threads.values() {
            for (sum, value) in sums.iter_mut().zip(opened.counters.read()) {
                *sum = sum.saturating_add(value);
            }
        }
        self.counted.of(sums.into_iter())
    }

    /// A trace begins with the values that were read last.
    pub(crate) fn restart(&mut self) {
        self.counted.restart();
    }

    /// Disables sampling on the CPU with this index in the outputs.
    pub(crate) fn stop(&self, place: usize) {
        let samplers = self.threads.values().filter_map(|opened| opened.samplers.get(place));
        samplers.for_each(|sampler| drop(switch(sampler, false)));
    }
}

impl Unsampled {
    /// All threads of the process have samples.
    pub(crate) fn none(process: Pid) -> Self {
        Self { process, not_allowed: 0, no_descriptors: 0, other: None }
    }

    fn add(&mut self, error: io::Error) {
        match Errno::from_io_error(&error) {
            // The thread has ended in the meantime.
            Some(Errno::SRCH) => {}
            Some(Errno::ACCESS | Errno::PERM) => self.not_allowed += 1,
            Some(Errno::MFILE | Errno::NFILE) => self.no_descriptors += 1,
            _ => self.other = Some((self.other.as_ref().map_or(0, |(count, _)| *count) + 1, error)),
        }
    }

    /// A line for the user; `None` if no thread lacks samples.
    pub fn note(&self) -> Option<String> {
        let threads = |count| if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
        let of = |count| format!("profile: no samples of {} of process {}", threads(count), self.process);
        match self {
            Self { not_allowed: count @ 1.., .. } => Some(format!("{}: not permitted", of(*count))),
            Self { no_descriptors: count @ 1.., .. } => Some(format!(
                "{}: each takes an open file for each CPU and counter, and the limit (ulimit -n) allows no more",
                of(*count)
            )),
            Self { other: Some((count, error)), .. } => Some(format!("{}: {error}", of(*count))),
            _ => None,
        }
    }
}
