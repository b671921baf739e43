//! What is counted: accounts by lines of the table, the histogram, the graph, and the holders of locks.

use std::collections::HashMap;

use tracewing_units::{Caller, Duration, LockAddress, Pid, Tid};

use super::account::{Account, Bins, Histogram, Kind, Party, Sum};
use super::event::LockEvent;
use super::graph::Graph;
use super::owners::Owners;
use super::places::Places;
use super::table::{Group, LONG_HOLD, Subject};
use super::thread::{Acquisition, By, Hold, Outcome, Wait};
use super::tickets::Ticketed;
use crate::images::Epoch;
use crate::run::LocksLack;
use crate::times::grow;

/// Of an account: process, subject, and the epoch since when the place is valid.
pub(super) type Key = (Option<Pid>, Subject, Epoch);

/// What is counted: accounts of the rows, and figures of the whole recording.
#[derive(Debug, Clone)]
pub(super) struct Totals {
    /// Whether what is analysed has begun: before, only owners are noted.
    pub(super) begun: bool,
    /// Whether events of programs are missing just now: two events of a thread need not belong together.
    pub(super) blind: bool,
    pub(super) group: Group,
    pub(super) accounts: HashMap<Key, Account>,
    pub(super) owners: HashMap<(Option<Pid>, LockAddress), Owners>,
    /// In what is analysed: how many holders of a lock at once were not followed, at most.
    pub(super) forgotten_holders: usize,
    pub(super) graph: Graph,
    pub(super) histogram: Histogram,
    /// Acquisitions of which the depth is not known.
    pub(super) unknown_depths: usize,
    /// Whether threads have acquired locks that are held, and whether user threads have.
    pub(super) have_held: [bool; 2],
    /// By process, lock, and the place where it was taken.
    pub(super) across_awaits: HashMap<(Option<Pid>, LockAddress, Caller), Across>,
    pub(super) incomplete: u64,
}

/// As in [`AcrossAwait`].
#[derive(Debug, Clone)]
pub(super) struct Across {
    pub(super) kind: Kind,
    pub(super) epoch: Epoch,
    pub(super) holds: Sum,
    pub(super) waiters: usize,
    pub(super) waited_ns: Duration,
}

impl Totals {
    pub(super) fn new(group: Group, bins: Bins) -> Self {
        Self {
            begun: false,
            blind: false,
            group,
            accounts: HashMap::new(),
            owners: HashMap::new(),
            forgotten_holders: 0,
            graph: Graph::default(),
            histogram: Histogram::new(bins),
            unknown_depths: 0,
            have_held: [false; 2],
            across_awaits: HashMap::new(),
            incomplete: 0,
        }
    }

    /// What is analysed begins now.
    pub(super) fn begins(&mut self) {
        self.begun = true;
        self.forgotten_holders = self.owners.values().map(Owners::forgotten).max().unwrap_or(0);
    }

    /// Forgets locks that nothing holds.
    pub(super) fn forget_free(&mut self) {
        self.owners.retain(|_, owners| !owners.is_empty());
        self.owners.shrink_to_fit();
    }

    /// Whether lines are of threads or tasks: then waits for locks of the kernel belong to a process.
    pub(super) fn is_by_party(&self) -> bool {
        matches!(self.group, Group::Thread | Group::Task)
    }

    /// Forgets what needs events that were not recorded: whether the histogram does, and whether waits of
    /// threads and of user threads do.
    pub(super) fn forget(&mut self, lacks: &[LocksLack; 2]) -> (bool, [bool; 2]) {
        let lacks_owners = lacks.map(|of| of.requests || of.acquisitions || of.releases);
        let has_no_holds = |(of, held): (&LocksLack, bool)| of.acquisitions || (of.releases && held);
        let lacks_holds = lacks.iter().zip(self.have_held).any(has_no_holds);
        if lacks_holds {
            self.histogram = Histogram::new(self.histogram.bins());
            self.unknown_depths = 0;
        }
        self.graph.forget(|waiter| lacks_owners[usize::from(is_task(waiter))]);
        if lacks_owners[1] {
            self.across_awaits.clear();
        }
        (lacks_holds, lacks_owners)
    }

    /// `has_ticket`: the holder in the meantime is recorded by itself.
    pub(super) fn add(&mut self, party: Party, outcome: &Outcome, has_ticket: bool, places: &Places) {
        let unpaired = (self.blind && !has_ticket).then(|| outcome.unpaired());
        match unpaired.as_ref().unwrap_or(outcome) {
            Outcome::Acquired { acquisition, wait, owner, spins, depth, hold } => {
                if self.begun {
                    self.acquired(party, acquisition, *wait, (owner.as_slice(), *spins), places);
                }
                if acquisition.kind.is_held() {
                    self.nested(party, *depth);
                }
                self.takes(party, acquisition, *hold);
            }
            Outcome::HeldAgain { acquisition, hold } => self.takes(party, acquisition, *hold),
            Outcome::Refused { acquisition, wait, owner, spins, .. } if self.begun => {
                let owners = self.owners_of(acquisition, *owner);
                self.tried(party, acquisition, *wait, &owners, *spins, places).refused += 1;
            }
            // Neither refused nor acquired, but waited for.
            Outcome::Unserved { acquisition, wait, owner, .. } if self.begun => {
                let owners = self.owners_of(acquisition, *owner);
                self.tried(party, acquisition, *wait, &owners, None, places);
            }
            Outcome::Held { acquisition, length, .. } => {
                if self.begun {
                    self.held(acquisition, *length, places);
                }
                if !has_ticket {
                    self.leaves(party, acquisition);
                }
            }
            Outcome::Abandoned { acquisition } => self.leaves(party, acquisition),
            Outcome::Unended { acquisition } if self.begun => self.held(acquisition, None, places),
            Outcome::Incomplete if self.begun => self.incomplete += 1,
            Outcome::Refused { .. }
            | Outcome::Unserved { .. }
            | Outcome::Unended { .. }
            | Outcome::Incomplete => {}
        }
    }

    /// An acquisition of what is analysed.
    fn acquired(
        &mut self,
        party: Party,
        acquisition: &Acquisition,
        wait: Wait,
        (owners, spins): (&[Party], Option<u64>),
        places: &Places,
    ) {
        let length = match wait {
            Wait::For(length) => Some(length),
            Wait::No | Wait::Unknown => None,
        };
        let account = self.tried(party, acquisition, length, owners, spins, places);
        account.acquired += 1;
        if wait == Wait::Unknown {
            account.unknown_waits += 1;
            self.incomplete += 1;
        }
    }

    /// The party has acquired a lock that it holds, in addition to `depth` others.
    fn nested(&mut self, party: Party, depth: Option<usize>) {
        match depth {
            _ if !self.begun => {}
            Some(depth) => self.histogram.nested(depth),
            None => self.unknown_depths += 1,
        }
        self.have_held[usize::from(is_task(&party))] = true;
    }

    /// The party holds the lock from now on, if `hold` says so.
    fn takes(&mut self, party: Party, acquisition: &Acquisition, hold: Hold) {
        if hold == Hold::None {
            return;
        }
        let owners = self.owners.entry((acquisition.by.process, acquisition.lock)).or_default();
        owners.takes(party, hold);
        if self.begun {
            self.forgotten_holders = self.forgotten_holders.max(owners.forgotten());
        }
    }

    /// The party holds the lock no longer.
    pub(super) fn leaves(&mut self, party: Party, acquisition: &Acquisition) {
        if let Some(owners) = self.owners.get_mut(&(acquisition.by.process, acquisition.lock)) {
            owners.leaves(party);
        }
    }

    /// A critical section: its length, where both ends are known.
    fn held(&mut self, acquisition: &Acquisition, length: Option<Duration>, places: &Places) {
        let account = self.account(acquisition, places);
        let Some(length) = length else {
            account.unknown_holds += 1;
            self.incomplete += 1;
            return;
        };
        account.holds.add(length);
        if let Some(caller) = acquisition.caller.known() {
            *account.held_at.entry(caller).or_default() += length;
        }
        self.histogram.held(length);
    }

    /// Adds the outcome of a request with a ticket. `ends`: the recording ends, so a wait that lasts may be a
    /// deadlock.
    pub(super) fn ticketed(&mut self, party: Party, outcome: &Ticketed, ends: bool, places: &Places) {
        match outcome {
            Ticketed::Outcome(outcome) => {
                self.add(party, outcome, true, places);
                if let Some(acquisition) = outcome.acquisition().filter(|_| self.begun) {
                    self.account(acquisition, places).has_tickets = true;
                }
            }
            _ if !self.begun => {}
            Ticketed::Blocked { acquisition, owner, ns, lasts } => {
                let blamed = self.account(acquisition, places).owners.entry(*owner).or_default();
                *blamed += *ns;
                match *lasts && ends {
                    true => self.graph.waits(party, acquisition, &[*owner], *ns, false),
                    false => self.graph.waited(party, acquisition, &[*owner], *ns),
                }
            }
            Ticketed::AcrossAwait { acquisition, length, waiters, waited } => {
                self.across_await(acquisition, *length, *waiters, *waited);
            }
        }
    }

    fn across_await(
        &mut self,
        acquisition: &Acquisition,
        length: Duration,
        waiters: usize,
        waited: Duration,
    ) {
        if length < LONG_HOLD || waiters == 0 {
            return;
        }
        let &Acquisition { lock, kind, caller, by, .. } = acquisition;
        let across = self.across_awaits.entry((by.process, lock, caller)).or_insert_with(|| Across {
            kind,
            epoch: by.epoch,
            holds: Sum::default(),
            waiters: 0,
            waited_ns: Duration::ZERO,
        });
        across.holds.add(length);
        across.waiters = across.waiters.max(waiters);
        across.waited_ns += waited;
    }

    /// An event of an unknown user thread, in a recording without tickets.
    pub(super) fn unpaired(&mut self, event: &LockEvent, by: By, places: &Places) {
        if let LockEvent::Acquired { lock, caller, kind, .. } = *event
            && self.begun
        {
            let account = self.account(&Acquisition { lock, kind, caller, chain: None, by }, places);
            account.acquired += 1;
            account.unpaired += 1;
        }
    }

    /// The holders of a lock at present: as the request reports, otherwise as other events show. The last one
    /// has taken it last.
    pub(super) fn owners_of(&self, acquisition: &Acquisition, owner: Option<Tid>) -> Vec<Party> {
        let lock = (acquisition.by.process, acquisition.lock);
        match owner {
            _ if acquisition.kind == Kind::Futex => Vec::new(),
            None => self.owners.get(&lock).map(Owners::up_to_last).unwrap_or_default(),
            Some(owner) => vec![Party::Thread(owner)],
        }
    }

    fn tried(
        &mut self,
        party: Party,
        acquisition: &Acquisition,
        wait: Option<Duration>,
        owners: &[Party],
        spins: Option<u64>,
        places: &Places,
    ) -> &mut Account {
        if let Some(wait) = wait {
            self.graph.waited(party, acquisition, owners, wait);
        }
        let account = self.account(acquisition, places);
        if let Some(wait) = wait {
            account.waits.add(wait);
            if let Some(owner) = owners.last() {
                grow(account.owners.entry(*owner).or_default(), wait);
            }
        }
        if let Some(spins) = spins {
            let sum = account.spins.get_or_insert(0);
            *sum = sum.saturating_add(spins);
        }
        account
    }

    fn account(&mut self, acquisition: &Acquisition, places: &Places) -> &mut Account {
        let by = acquisition.by;
        let subject = match self.group {
            Group::Lock if acquisition.kind == Kind::Futex => Subject::Futex(acquisition.lock),
            Group::Lock => Subject::Lock(acquisition.lock),
            Group::Thread => Subject::Thread(by.tid),
            Group::Task => Subject::Task(Some(by.task).filter(|task| !task.is_none())),
            Group::Caller => Subject::Caller(acquisition.caller.known()),
            Group::Chain => Subject::Chain(acquisition.chain),
        };
        let since = match subject {
            Subject::Caller(caller) => places.since(by.process, caller, by.epoch),
            Subject::Chain(chain) => places.chain_since(by.process, chain, by.epoch),
            Subject::Lock(_) | Subject::Futex(_) | Subject::Thread(_) | Subject::Task(_) => 0,
        };
        let account = self.accounts.entry((by.process, subject, since)).or_default();
        account.kinds.add(acquisition.kind);
        account
    }
}

/// Whether it is a user thread, known or not.
fn is_task(party: &Party) -> bool {
    !matches!(party, Party::Thread(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::thread::By;

    #[test]
    fn any_numbers_of_spins_have_a_sum() {
        let mut totals = Totals { begun: true, ..Totals::new(Group::Lock, Bins::Log) };
        let (lock, kind, caller, by) = (LockAddress(8), Kind::Spin, Caller(1), By::default());
        let acquisition = Acquisition { lock, kind, caller, chain: None, by };
        let spins = Some(u64::MAX);
        let (wait, owner, depth, hold) = (Wait::No, None, None, Hold::None);
        let outcome = Outcome::Acquired { acquisition, wait, owner, spins, depth, hold };
        for _ in 0..2 {
            totals.add(Party::Thread(Tid(1)), &outcome, false, &Places::default());
        }
        assert_eq!(totals.accounts.values().map(|account| account.spins).collect::<Vec<_>>(), [spins]);
    }
}
