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
use tracewing_units::{Pid, Timestamp};

use crate::program::Program;

/// How long a plug-in has to have been loaded.
const SETTLED: Duration = Duration::from_secs(1);
/// An object that is loaded within this time after a process begins belongs to its program, and is never
/// unloaded.
const STARTING: Duration = Duration::from_millis(100);

/// A copy of tracewing, as long as its object is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loaded {
    /// Where it is entered.
    address: u64,
    /// As [`Entry::loaded`].
    at: Option<Timestamp>,
}

impl Loaded {
    pub(super) fn of(entry: &Entry) -> Self {
        Self { address: entry.address, at: entry.loaded }
    }
}

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

/// Times of a process, by `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    now: Timestamp,
    began: Timestamp,
}

impl Times {
    pub(super) fn of(pid: Pid) -> Self {
        let time_of = |clock| {
            let time = clock_gettime(clock);
            Timestamp::from_ns(time.tv_sec * 1_000_000_000 + time.tv_nsec)
        };
        let (now, since_boot) = (time_of(ClockId::Monotonic), time_of(ClockId::Boottime));
        // In hundredths of a second, with the time for which the machine was suspended.
        let began = Program::of(pid).began().saturating_mul(10_000_000);
        let began = Timestamp::from_ns(began.try_into().unwrap_or(i64::MAX));
        Self { now, began: now.saturating_sub(since_boot - began) }
    }

    /// How long an object has been loaded; `None` where what the process says of that makes no sense.
    pub(super) fn age(self, entry: &Entry) -> Option<Duration> {
        let age = self.now.checked_since(entry.loaded?)?;
        Some(Duration::from_nanos(age.as_ns()))
    }

    /// Whether it was loaded a moment ago.
    fn is_new(self, entry: &Entry) -> bool {
        self.age(entry).is_some_and(|age| age < SETTLED)
    }

    /// Whether it came with the program, which is never unloaded.
    fn is_of_program(self, entry: &Entry) -> bool {
        let since_began = |at: Timestamp| Duration::from_nanos((at - self.began).as_ns());
        entry.loaded.is_none_or(|at| since_began(at) <= STARTING)
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
                    && !tried.contains(&Loaded::of(entry))
                    && !members.iter().any(|member| entry.range.contains(member))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const TIMES: Times =
        Times { now: Timestamp::from_ns(100 * SECOND), began: Timestamp::from_ns(10 * SECOND) };

    fn entry(loaded: Option<i64>) -> Entry {
        let loaded = loaded.map(Timestamp::from_ns);
        Entry { address: 0x1100, loaded, object: "/lib/plugin.so".to_owned(), range: 0x1000..0x2000 }
    }

    fn new(members: &[u64], tried: &[(u64, Option<i64>)]) -> Wanted {
        let tried =
            tried.iter().map(|(address, at)| Loaded { address: *address, at: at.map(Timestamp::from_ns) });
        Wanted::New { members: members.to_vec(), tried: tried.collect() }
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
        let young = Times { began: Timestamp::from_ns(100 * SECOND - 10), ..TIMES };
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
