//! Which copies of tracewing in a process a recorder enters: at first those that are there, and later those
//! that plug-ins have brought since. Where a copy takes part in the recording already, a plug-in's copy joins
//! by itself (`tracewing_abi::ways`); these looks are for the other ones.
//!
//! A plug-in may be unloaded while it is being entered, which would be the end of the program. So one that
//! was loaded a moment ago is left for a later look: programs that load and unload plug-ins all the time do
//! so in less time. What the program started with is never unloaded, and is entered at once.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tracewing_programs::Entry;
use tracewing_units::{Pid, Timestamp};

/// How long a plug-in has to have been loaded.
const SETTLED: Duration = Duration::from_secs(1);

/// A copy of tracewing, as long as its object is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loaded {
    /// Where it is entered.
    pub(crate) address: u64,
    /// As [`Entry::loaded`].
    pub(crate) at: Option<Timestamp>,
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

/// The time by `CLOCK_MONOTONIC` of a process, which may be in another time namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now(Timestamp);

impl Now {
    pub(super) fn of(pid: Pid) -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let offset = |process: &str| {
            let offsets = std::fs::read_to_string(format!("/proc/{process}/timens_offsets"));
            offset(&offsets.unwrap_or_default())
        };
        let other = offset(&pid.to_string()).wrapping_sub(offset("self"));
        Self(Timestamp::from_ns((time.tv_sec * 1_000_000_000 + time.tv_nsec).wrapping_add(other)))
    }

    /// How long an object has been loaded; `None` where what the process says of that makes no sense.
    pub(super) fn age(self, entry: &Entry) -> Option<Duration> {
        let age = self.0.checked_since(entry.loaded?)?;
        Some(Duration::from_nanos(age.as_ns()))
    }

    /// What was loaded by then was loaded long ago.
    pub(super) fn settled(self) -> Timestamp {
        Timestamp::from_ns(self.0.as_ns().saturating_sub(SETTLED.as_nanos() as i64))
    }

    /// Whether it was loaded long ago.
    fn is_settled(self, entry: &Entry) -> bool {
        self.age(entry).is_some_and(|age| age >= SETTLED)
    }
}

/// By how much the clock of a time namespace is ahead of the machine's, ns: `/proc/PID/timens_offsets`, a
/// line for each clock with its name, seconds and nanoseconds (`man 7 time_namespaces`). 0 where there are no
/// such namespaces.
fn offset(text: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix("monotonic"));
    let mut numbers =
        line.unwrap_or_default().split_whitespace().map_while(|word| word.parse::<i64>().ok()).fuse();
    let (seconds, ns) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

impl Wanted {
    /// Whether a copy that may be a plug-in's is to be entered now.
    pub(super) fn has(&self, entry: &Entry, now: Now) -> bool {
        let is_settled = now.is_settled(entry);
        match self {
            Self::Present => is_settled,
            Self::New { members, tried } => {
                is_settled
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
    const NOW: Now = Now(Timestamp::from_ns(100 * SECOND));

    fn entry(loaded: Option<i64>) -> Entry {
        let loaded = loaded.map(Timestamp::from_ns);
        let (object, range) = ("/lib/plugin.so".to_owned(), 0x1000..0x2000);
        Entry { address: 0x1100, loaded, word: None, number: 0, object, range }
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
                [(99 * SECOND + SECOND / 2, false), (99 * SECOND, true), (200 * SECOND, false)]
            {
                assert_eq!(wanted.has(&entry(Some(loaded)), NOW), is_wanted, "{wanted:?}, {loaded}");
            }
        }
    }

    #[test]
    fn clocks_of_time_namespaces_are_ahead() {
        assert_eq!(
            offset("monotonic         -2         5\nboottime           7         0\n"),
            -1_999_999_995
        );
        assert_eq!((offset(""), offset("monotonic x 1"), offset("boottime 1 1")), (0, 0, 0));
    }

    #[test]
    fn new_copies_are_those_not_known_yet() {
        let loaded = Some(50 * SECOND);
        assert!(new(&[0x2000, 0xfff], &[(0x1100, Some(1))]).has(&entry(loaded), NOW));
        assert!(!new(&[0x1800], &[]).has(&entry(loaded), NOW));
        assert!(!new(&[], &[(0x1100, loaded)]).has(&entry(loaded), NOW));
        assert!(!new(&[], &[]).has(&entry(None), NOW));
        assert!(!Wanted::Present.has(&entry(None), NOW), "it is being loaded, or unloaded");
    }
}
