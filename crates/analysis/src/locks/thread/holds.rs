//! The locks that a thread holds. Releases may be missing, and bytes of a checkpoint may say anything: only
//! so many holds are followed that each event takes a bounded time.

use std::collections::HashSet;

use tracewing_trace::super_trace::{Bytes, Stored};
use tracewing_units::{LockAddress, Timestamp};

use super::outcome::{Acquisition, Hold};
use crate::stored::stored;

/// Maximum number of holds that are followed per thread.
pub(super) const MOST: usize = 1 << 10;

/// A lock that the thread has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) acquisition: Acquisition,
    pub(super) at: Timestamp,
    /// Whether that was before the analysed range.
    pub(super) before: bool,
}

stored! {
    OF_HELD:
    Held { acquisition at before }
}

/// The last release, which the next event may take back.
#[derive(Debug, Clone, Copy)]
pub(super) enum GivenBack {
    /// Of the last hold of its lock, and when it ended.
    Ended(Held, Timestamp),
    /// Of a recursive lock that the thread still holds.
    Inner(Held),
    /// Of a lock that it did not hold.
    Unmatched,
}

impl Stored for GivenBack {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ended(held, end) => (0_u8, (*held, *end)).put(out),
            Self::Inner(held) => (1_u8, *held).put(out),
            Self::Unmatched => 2_u8.put(out),
        }
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(match u8::take(bytes)? {
            0 => Self::Ended(Stored::take(bytes)?, Stored::take(bytes)?),
            1 => Self::Inner(Stored::take(bytes)?),
            2 => Self::Unmatched,
            _ => return None,
        })
    }
}

/// What a thread holds; a recursive lock as often as it has it.
#[derive(Debug, Clone, Default)]
pub(super) struct Holds {
    list: Vec<Held>,
    /// How many different locks are in the list.
    locks: usize,
}

impl Holds {
    pub(super) fn of(list: Vec<Held>) -> Self {
        let locks = list.iter().map(|held| held.acquisition.lock).collect::<HashSet<_>>().len();
        Self { list, locks }
    }

    /// Whether there are more than are followed, as only bytes can say that are not those of a thread.
    pub(super) fn are_too_many(&self) -> bool {
        self.list.len() > MOST
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// How many locks these are.
    pub(super) fn depth(&self) -> usize {
        self.locks
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.list.iter()
    }

    /// The first hold of a lock.
    pub(super) fn of_lock(&self, lock: LockAddress) -> Option<&Held> {
        self.list.iter().find(|held| held.acquisition.lock == lock)
    }

    /// Adds one, if there is room.
    pub(super) fn add(&mut self, held: Held) -> Hold {
        if self.list.len() >= MOST {
            return Hold::None;
        }
        let is_again = self.of_lock(held.acquisition.lock).is_some();
        self.locks += usize::from(!is_again);
        self.list.push(held);
        if is_again { Hold::Again } else { Hold::First }
    }

    /// Takes away the last hold of a lock.
    pub(super) fn give_back(&mut self, lock: LockAddress, at: Timestamp) -> GivenBack {
        let is_it = |held: &Held| held.acquisition.lock == lock;
        let Some(place) = self.list.iter().rposition(is_it) else { return GivenBack::Unmatched };
        let held = self.list.remove(place);
        if self.list[..place].iter().any(is_it) {
            return GivenBack::Inner(held);
        }
        self.locks -= 1;
        GivenBack::Ended(held, at)
    }

    /// The analysed range begins.
    pub(super) fn begin(&mut self) {
        self.list.iter_mut().for_each(|held| held.before = true);
    }
}

impl Stored for Holds {
    fn put(&self, out: &mut Vec<u8>) {
        self.list.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Stored::take(bytes).map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::account::Kind;
    use crate::locks::thread::By;
    use crate::recount;
    use std::cell::Cell;
    use tracewing_units::Caller;

    fn held(lock: u64) -> Held {
        let (lock, kind, caller, by) = (LockAddress(lock), Kind::Mutex, Caller(1), By::default());
        let acquisition = Acquisition { lock, kind, caller, chain: None, by };
        Held { acquisition, at: Timestamp::ORIGIN, before: false }
    }

    #[test]
    fn each_lock_that_is_held_is_counted_once() {
        let deepest = Cell::new(0);
        recount::check::<Holds, _>(
            |holds, kind, _, addresses| {
                for lock in addresses.map(|address| address % 4) {
                    match kind {
                        0 | 1 => _ = holds.add(held(lock)),
                        2 => _ = holds.give_back(LockAddress(lock), Timestamp::ORIGIN),
                        _ => {
                            let mut bytes = Vec::new();
                            holds.put(&mut bytes);
                            *holds = Holds::take(&mut Bytes::new(&bytes)).unwrap();
                        }
                    }
                }
                deepest.set(deepest.get().max(holds.depth()));
            },
            |holds| [holds.depth(), Holds::of(holds.list.clone()).locks],
            |_| {},
        );
        assert!(deepest.get() >= 3);
    }

    #[test]
    fn what_is_beyond_the_limit_is_not_followed() {
        let mut holds = Holds::default();
        assert_eq!((holds.add(held(1)), holds.add(held(1))), (Hold::First, Hold::Again));
        (2..MOST as u64).for_each(|lock| assert_eq!(holds.add(held(lock)), Hold::First));
        assert_eq!([1, MOST as u64].map(|lock| holds.add(held(lock))), [Hold::None; 2]);
        assert_eq!((holds.len(), holds.depth()), (MOST, MOST - 1));
    }
}
