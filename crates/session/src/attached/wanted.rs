//! Which copies of tracewing in a process a recorder enters: at first those that are there, and later those
//! that plug-ins have brought since. Where a copy takes part in the recording already, a plug-in's copy joins
//! by itself (`tracewing_abi::ways`); these looks are for the other ones.
//!
//! A plug-in may be unloaded while it is being entered, which would be the end of the program. So one that
//! was loaded a moment ago is left for a later look: programs that load and unload plug-ins all the time do
//! so in less time.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tracewing_programs::Entry;
use tracewing_units::Pid;

use crate::program::Program;

/// How long a plug-in has to have been loaded.
const SETTLED: Duration = Duration::from_secs(1);
/// An object that is loaded within this time after a process begins belongs to its program, and is never
/// unloaded.
const STARTING: Duration = Duration::from_millis(100);

/// A copy of tracewing, as long as its object is loaded: where it is entered, and when that was loaded.
pub(crate) type Loaded = (u64, Option<u64>);

/// The copies that are entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that the process has.
    Present,
    /// Those that it has loaded since.
    New {
        /// Addresses in the copies that take part.
        members: Vec<u64>,
        /// Those that were entered, or refused, before.
        tried: BTreeSet<Loaded>,
    },
}

/// Times of a process, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    now: u64,
    began: u64,
}

impl Times {
    pub(super) fn of(pid: Pid) -> Self {
        let nanoseconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
        };
        let (now, since_boot) = (nanoseconds(ClockId::Monotonic), nanoseconds(ClockId::Boottime));
        // In hundredths of a second, with the time for which the machine was suspended.
        let began = Program::of(pid).began().saturating_mul(10_000_000);
        Self { now, began: now.saturating_sub(since_boot.saturating_sub(began)) }
    }

    /// How long an object has been loaded; `None` where what the process says of that makes no sense.
    pub(super) fn age(self, entry: &Entry) -> Option<Duration> {
        self.now.checked_sub(entry.loaded?).map(Duration::from_nanos)
    }

    /// Whether it was loaded a moment ago.
    fn is_new(self, entry: &Entry) -> bool {
        self.age(entry).is_some_and(|age| age < SETTLED)
    }

    /// Whether it came with the program, which is never unloaded.
    fn is_of_program(self, entry: &Entry) -> bool {
        entry.loaded.is_none_or(|at| at <= self.began + STARTING.as_nanos() as u64)
    }
}

impl Wanted {
    /// Whether a copy is to be entered now.
    pub(super) fn has(&self, entry: &Entry, times: Times) -> bool {
        match self {
            Self::Present => times.is_of_program(entry) || !times.is_new(entry),
            Self::New { members, tried } => {
                entry.loaded.is_some()
                    && !times.is_new(entry)
                    && !tried.contains(&(entry.address, entry.loaded))
                    && !members.iter().any(|member| entry.range.contains(member))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const TIMES: Times = Times { now: 100 * SECOND, began: 10 * SECOND };

    fn entry(loaded: Option<u64>) -> Entry {
        Entry { address: 0x1100, loaded, object: "/lib/plugin.so".to_owned(), range: 0x1000..0x2000 }
    }

    fn new(members: &[u64], tried: &[Loaded]) -> Wanted {
        Wanted::New { members: members.to_vec(), tried: tried.iter().copied().collect() }
    }

    #[test]
    fn what_was_loaded_a_moment_ago_comes_later() {
        for wanted in [Wanted::Present, new(&[], &[])] {
            for (loaded, is_wanted) in
                [(99 * SECOND + SECOND / 2, false), (99 * SECOND, true), (200 * SECOND, true)]
            {
                assert_eq!(wanted.has(&entry(Some(loaded)), TIMES), is_wanted, "{wanted:?}, {loaded}");
            }
        }
        // A program that has just begun is not unloaded; what it has loaded since the first look may be.
        let young = Times { began: 100 * SECOND - 10, ..TIMES };
        let entry = entry(Some(100 * SECOND - 5));
        assert!(Wanted::Present.has(&entry, young) && !new(&[], &[]).has(&entry, young));
    }

    #[test]
    fn new_copies_are_those_not_known_yet() {
        let loaded = Some(50 * SECOND);
        assert!(new(&[0x2000, 0xfff], &[(0x1100, Some(1))]).has(&entry(loaded), TIMES));
        assert!(!new(&[0x1800], &[]).has(&entry(loaded), TIMES));
        assert!(!new(&[], &[(0x1100, loaded)]).has(&entry(loaded), TIMES));
        assert!(!new(&[], &[]).has(&entry(None), TIMES));
        assert!(Wanted::Present.has(&entry(None), TIMES));
    }
}
