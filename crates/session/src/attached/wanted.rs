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
use tracewing_units::Timestamp;

/// How long a plug-in has to have been loaded.
const SETTLED: Duration = Duration::from_secs(1);

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

/// The time by `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now(Timestamp);

impl Now {
    pub(super) fn get() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        Self(Timestamp::from_ns(time.tv_sec * 1_000_000_000 + time.tv_nsec))
    }

    /// How long an object has been loaded; `None` where what the process says of that makes no sense, as
    /// with another clock in a time namespace.
    pub(super) fn age(self, entry: &Entry) -> Option<Duration> {
        let age = self.0.checked_since(entry.loaded?)?;
        Some(Duration::from_nanos(age.as_ns()))
    }

    /// Whether it was loaded a moment ago.
    fn is_new(self, entry: &Entry) -> bool {
        self.age(entry).is_some_and(|age| age < SETTLED)
    }
}

impl Wanted {
    /// Whether a copy is to be entered now that may be a plug-in's.
    pub(super) fn has(&self, entry: &Entry, now: Now) -> bool {
        let is_settled = entry.loaded.is_some() && !now.is_new(entry);
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
        Entry { address: 0x1100, loaded, word: None, object, range }
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
                assert_eq!(wanted.has(&entry(Some(loaded)), NOW), is_wanted, "{wanted:?}, {loaded}");
            }
        }
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
