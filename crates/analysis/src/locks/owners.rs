//! The holders of a lock, as far as events show.
//!
//! Releases may be missing, so that holders seem to be ever more: only some of them are followed.

use super::account::Party;
use super::thread::Hold;
use crate::stored::stored;

/// Holders of a lock that are followed, at most: those that have taken it last.
pub(super) const HOLDERS: usize = 1 << 10;

/// The holders of a lock.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    /// Each once, in the order in which they have begun to hold it, with the number of their last
    /// acquisition.
    followed: Vec<(Party, u64)>,
    acquired: u64,
    /// Number of those that are not followed, since others have taken the lock later.
    forgotten: usize,
}

stored! {
    SHAPE:
    Owners { followed acquired forgotten }
}

impl Owners {
    /// Whether nothing holds the lock.
    pub(super) fn is_empty(&self) -> bool {
        self.followed.is_empty() && self.forgotten == 0
    }

    /// Whether more are followed than can be, as only bytes can say that are not those of an analysis.
    pub(super) fn are_too_many(&self) -> bool {
        self.followed.len() > HOLDERS
    }

    /// How many hold the lock and are not followed.
    pub(super) fn forgotten(&self) -> usize {
        self.forgotten
    }

    /// Those that are followed, in the order in which they have begun to hold the lock.
    pub(super) fn in_order(&self) -> impl Iterator<Item = Party> {
        self.followed.iter().map(|(party, _)| *party)
    }

    /// Those that are followed; the last one has taken the lock last.
    pub(super) fn up_to_last(&self) -> Vec<Party> {
        let mut all: Vec<Party> = self.in_order().collect();
        let last = self.followed.iter().enumerate().max_by_key(|(_, (_, number))| *number);
        if let Some((place, _)) = last {
            let end = all.len() - 1;
            all.swap(place, end);
        }
        all
    }

    /// The party holds the lock, from now on or still.
    pub(super) fn takes(&mut self, party: Party, hold: Hold) {
        self.acquired = self.acquired.saturating_add(1);
        if let Some((_, number)) = self.followed.iter_mut().find(|(known, _)| *known == party) {
            *number = self.acquired;
            return;
        }
        if hold == Hold::Again {
            self.forgotten = self.forgotten.saturating_sub(1);
        }
        if self.followed.len() >= HOLDERS {
            let first = self.followed.iter().enumerate().min_by_key(|(_, (_, number))| *number);
            first.map(|(place, _)| place).into_iter().for_each(|place| _ = self.followed.remove(place));
            self.forgotten = self.forgotten.saturating_add(1);
        }
        self.followed.push((party, self.acquired));
    }

    /// The party holds the lock no longer.
    pub(super) fn leaves(&mut self, party: Party) {
        match self.followed.iter().position(|(known, _)| *known == party) {
            Some(place) => _ = self.followed.remove(place),
            None => self.forgotten = self.forgotten.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_units::Tid;

    fn thread(tid: usize) -> Party {
        Party::Thread(Tid(tid as i32))
    }

    #[test]
    fn a_holder_is_known_once_and_which_one_has_taken_the_lock_last() {
        let mut owners = Owners::default();
        for (tid, hold) in [(7, Hold::First), (7, Hold::Again), (9, Hold::First), (8, Hold::First)] {
            owners.takes(thread(tid), hold);
        }
        assert_eq!(owners.up_to_last(), [7, 9, 8].map(thread));
        owners.takes(thread(7), Hold::Again);
        assert_eq!(owners.in_order().collect::<Vec<_>>(), [7, 9, 8].map(thread));
        assert_eq!(owners.up_to_last().last(), Some(&thread(7)));
        owners.leaves(thread(7));
        assert_eq!(owners.up_to_last(), [9, 8].map(thread));
        owners.leaves(thread(9));
        owners.leaves(thread(8));
        assert!(owners.is_empty() && owners.up_to_last().is_empty());
    }

    #[test]
    fn of_too_many_holders_those_that_took_the_lock_last_are_followed_and_the_others_counted() {
        let mut owners = Owners::default();
        (0..HOLDERS).for_each(|tid| owners.takes(thread(tid), Hold::First));
        owners.takes(thread(0), Hold::Again);
        assert_eq!(owners.forgotten(), 0);
        owners.takes(thread(HOLDERS), Hold::First);
        let has = |owners: &Owners, tid| owners.in_order().any(|party| party == thread(tid));
        assert!(has(&owners, 0) && !has(&owners, 1) && has(&owners, HOLDERS));
        assert_eq!(owners.forgotten(), 1);
        // One that holds it already, and is followed again.
        owners.takes(thread(1), Hold::Again);
        assert!(has(&owners, 1) && !has(&owners, 2));
        assert_eq!(owners.forgotten(), 1);
        owners.leaves(thread(2));
        assert_eq!(owners.forgotten(), 0);
        assert!(!owners.are_too_many());
    }
}
