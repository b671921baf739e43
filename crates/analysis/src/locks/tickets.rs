//! Requests of user threads, paired by their tickets, whichever threads and user threads emit their events.
//!
//! For the holder of a lock it is also known whether its task was suspended in the meantime, that is, held
//! the lock across an `.await`: it releases the lock on another thread, or the thread that took it ran
//! something else before, because it parked, or another request began or ended to wait there, or a switch
//! shows it. Without such evidence it is not claimed.

use std::collections::HashMap;
use tracewing_units::{Caller, Duration, LockAddress, Pid, Task, Ticket, Tid, Timestamp};

use super::account::Party;
use super::event::LockEvent;
use super::thread::{Acquisition, By, Hold, Outcome, Wait};
use crate::stored::stored;

/// By its process and the ticket.
type Key = (Option<Pid>, Ticket);

/// All requests that wait or hold something.
#[derive(Debug, Clone, Default)]
pub(super) struct Tickets {
    requests: HashMap<Key, Request>,
    /// By process and address: the waiters and the holders of a lock.
    locks: HashMap<(Option<Pid>, LockAddress), Lock>,
    /// How many locks a user thread holds.
    depths: HashMap<Party, usize>,
    /// When a thread last ran another task than before, if events show it.
    suspended: HashMap<Tid, Timestamp>,
}

#[derive(Debug, Clone, Default)]
struct Lock {
    waiting: Vec<Key>,
    holding: Vec<Key>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    acquisition: Acquisition,
    party: Party,
    since: Timestamp,
    /// Whether it has the lock; else it waits for it.
    holds: bool,
    /// While it holds: since when its party has held the lock without a break, and since when requests of its
    /// place have. Readers hold it together; what waits for them waits once.
    kept: [Timestamp; 2],
    /// When its user thread ended: it waits no longer.
    ended: Option<Timestamp>,
    /// Whether it may have been given up without an event that says so.
    may_have_ended: bool,
    /// Whether it began before what is analysed.
    before: bool,
    /// Whether what ended it may have been lost.
    doubtful: bool,
}

stored! {
    SHAPE:
    Tickets { requests locks depths suspended }
    Lock { waiting holding }
    Request { acquisition party since holds kept ended may_have_ended before doubtful }
}

/// What is recorded of requests, and their makers.
#[derive(Debug)]
pub(super) enum Ticketed {
    Outcome(Outcome),
    /// `owner` had the lock for so long of the request's wait, or has it still, when the recording ends.
    Blocked {
        acquisition: Acquisition,
        owner: Party,
        ns: Duration,
        lasts: bool,
    },
    /// A lock was held across an `.await` while others waited for it.
    AcrossAwait {
        acquisition: Acquisition,
        length: Duration,
        waiters: usize,
        waited: Duration,
    },
}

impl Tickets {
    /// How many things are known.
    pub(super) fn count(&self) -> usize {
        let Self { requests, locks, depths, suspended } = self;
        requests.len() + locks.len() + depths.len() + suspended.len()
    }

    /// The thread runs another task from now on.
    pub(super) fn suspends(&mut self, tid: Tid, at: Timestamp) {
        self.suspended.insert(tid, at);
    }

    /// A user thread has ended.
    pub(super) fn ends(&mut self, party: Party, at: Timestamp) {
        let its = self.requests.values_mut().filter(|request| request.party == party);
        its.for_each(|request| request.ended = Some(at));
        self.depths.remove(&party);
    }

    /// Takes an event of the request with this ticket.
    pub(super) fn event(
        &mut self,
        ticket: Ticket,
        event: &LockEvent,
        by: By,
        at: Timestamp,
        report: &mut impl FnMut(Party, Ticketed),
    ) {
        let key = (by.process, ticket);
        let party = |caller| match by.task {
            Task(0) => Party::Place(by.process, caller),
            task => Party::Task(by.process, task),
        };
        let new = |lock, kind, caller| Request {
            acquisition: Acquisition { lock, kind, caller, chain: None, by },
            party: party(caller),
            since: at,
            holds: false,
            kept: [at; 2],
            ended: None,
            may_have_ended: false,
            before: false,
            doubtful: false,
        };
        match *event {
            // From no request of this ticket: each has its own.
            LockEvent::Requested { lock, caller, kind, ends, .. } => {
                self.suspends(by.tid, at);
                let request = Request { may_have_ended: !ends, ..new(lock, kind, caller) };
                self.requests.insert(key, request);
                self.lock(by.process, lock).waiting.push(key);
            }
            // From a wait, or from no request: it had the lock at once, or its request is missing.
            LockEvent::Acquired { lock, caller, kind, waited } => {
                self.acquired(key, new(lock, kind, caller), waited, report);
            }
            // From no request: a try does not wait.
            LockEvent::Refused { lock, caller, kind, waited: false } => {
                let request = new(lock, kind, caller);
                report(request.party, Ticketed::Outcome(request.refused(at, None)));
            }
            // From a wait. From no request, its beginning is missing.
            LockEvent::Refused { .. } => {
                let Some(request) = self.takes_back(key) else {
                    return report(party(Caller::UNKNOWN), Ticketed::Outcome(Outcome::Incomplete));
                };
                self.blames(&request, at, report);
                report(request.party, Ticketed::Outcome(request.refused(at, Some(at - request.since))));
            }
            LockEvent::Released { .. } => {
                // From a hold. Of one that waits, or that is unknown, the acquisition was lost.
                let Some(request) = self.takes_back(key).filter(|request| request.holds) else {
                    return report(party(Caller::UNKNOWN), Ticketed::Outcome(Outcome::Incomplete));
                };
                self.releases(&request, by.tid, at, report);
            }
            // No other event has a ticket.
            _ => {}
        }
    }

    /// A request has its lock, since [`Request::since`], whether or not there was an event of its wait.
    fn acquired(
        &mut self,
        key: Key,
        request: Request,
        waited: bool,
        report: &mut impl FnMut(Party, Ticketed),
    ) {
        let Request { acquisition, party, since: at, .. } = request;
        let waits = self.takes_back(key).map(|waiting| at - waiting.since);
        if waited {
            self.suspends(acquisition.by.tid, at);
        }
        let is_known = !acquisition.by.task.is_none();
        let depth = is_known.then(|| self.depths.get(&party).copied().unwrap_or(0));
        let wait = Wait::new(waits, waited);
        // Which requests hold a lock is known here.
        let (owner, spins, hold) = (None, None, Hold::None);
        let outcome = Outcome::Acquired { acquisition, wait, owner, spins, depth, hold };
        report(party, Ticketed::Outcome(outcome));
        if acquisition.kind.is_held() {
            self.requests.insert(key, Request { holds: true, ..request });
            self.lock(key.0, acquisition.lock).holding.push(key);
            let depth = self.depths.entry(party).or_default();
            *depth = depth.saturating_add(1);
        }
    }

    /// What is analysed begins now.
    pub(super) fn begin(&mut self, at: Timestamp, report: &mut impl FnMut(Party, Ticketed)) {
        let Self { requests, locks, .. } = self;
        for (key, request) in requests {
            request.before = true;
            let lock = locks.get(&(key.0, request.acquisition.lock));
            if lock.is_some_and(|lock| lock.waiting.contains(key)) {
                request.since = at;
                report(request.party, Ticketed::Outcome(Outcome::Incomplete));
            }
        }
    }

    /// Events were missing up to now: of what was begun, the end may be among them.
    pub(super) fn doubt(&mut self) {
        self.requests.values_mut().for_each(|request| request.doubtful = true);
    }

    /// Nothing more is known of any request, or of those of a process.
    pub(super) fn finish(
        &mut self,
        at: Timestamp,
        of: Option<Pid>,
        report: &mut impl FnMut(Party, Ticketed),
    ) {
        let mut locks: Vec<_> =
            self.locks.extract_if(|(process, _), _| of.is_none() || of == *process).collect();
        locks.sort_unstable_by_key(|(place, _)| *place);
        for (_, Lock { waiting, holding }) in locks {
            let owners: Vec<Request> = holding.iter().filter_map(|key| self.requests.remove(key)).collect();
            for request in waiting.iter().filter_map(|key| self.requests.remove(key)) {
                report(request.party, Ticketed::Outcome(Outcome::Incomplete));
                if request.doubtful || (request.may_have_ended && request.ended.is_none()) {
                    continue;
                }
                let until = request.until(at);
                for (owner, kept) in parties(owners.iter()) {
                    let (acquisition, ns) = (request.acquisition, until - request.since.max(kept));
                    report(request.party, Ticketed::Blocked { acquisition, owner, ns, lasts: true });
                }
                report(request.party, Ticketed::Outcome(request.unserved(until)));
            }
            for owner in owners {
                report(owner.party, Ticketed::Outcome(Outcome::Unended { acquisition: owner.acquisition }));
            }
        }
        if of.is_none() {
            *self = Self::default();
        }
    }

    fn lock(&mut self, process: Option<Pid>, lock: LockAddress) -> &mut Lock {
        self.locks.entry((process, lock)).or_default()
    }

    /// Removes the request, which no longer waits for the lock or holds it.
    fn takes_back(&mut self, key: Key) -> Option<Request> {
        let request = self.requests.remove(&key)?;
        let place = (key.0, request.acquisition.lock);
        if let Some(lock) = self.locks.get_mut(&place) {
            lock.waiting.retain(|other| *other != key);
            lock.holding.retain(|other| *other != key);
            if lock.waiting.is_empty() && lock.holding.is_empty() {
                self.locks.remove(&place);
            }
        }
        Some(request)
    }

    /// The request gives up: blames the present holders of the lock for its wait.
    fn blames(&self, request: &Request, at: Timestamp, report: &mut impl FnMut(Party, Ticketed)) {
        let acquisition = request.acquisition;
        let Some(lock) = self.locks.get(&(acquisition.by.process, acquisition.lock)) else { return };
        for (owner, kept) in parties(lock.holding.iter().filter_map(|key| self.requests.get(key))) {
            let ns = at - request.since.max(kept);
            report(request.party, Ticketed::Blocked { acquisition, owner, ns, lasts: false });
        }
    }

    /// The request gives its lock back, on this thread.
    fn releases(
        &mut self,
        held: &Request,
        tid: Tid,
        at: Timestamp,
        report: &mut impl FnMut(Party, Ticketed),
    ) {
        if let Some(depth) = self.depths.get_mut(&held.party) {
            *depth = depth.saturating_sub(1);
            if *depth == 0 {
                self.depths.remove(&held.party);
            }
        }
        let acquisition = held.acquisition;
        let length = (!held.before).then(|| at - held.since);
        report(held.party, Ticketed::Outcome(Outcome::Held { acquisition, begin: held.since, length }));
        let lock = self.locks.get(&(acquisition.by.process, acquisition.lock));
        let waiting = lock.map_or(&[][..], |lock| &lock.waiting);
        // Where another request of its party, or of its place, still holds the lock, that one is blamed for
        // both, in the end.
        let mut continues = [false; 2];
        for key in lock.map_or(&[][..], |lock| &lock.holding) {
            let Some(other) = self.requests.get_mut(key).filter(|other| !other.doubtful) else { continue };
            let is_same = [other.party == held.party, other.acquisition.caller == acquisition.caller];
            for at in (0..2).filter(|at| is_same[*at]) {
                other.kept[at] = other.kept[at].min(held.kept[at]);
                continues[at] = true;
            }
        }
        let waiting =
            waiting.iter().filter_map(|key| self.requests.get(key)).filter(|waiter| !waiter.doubtful);
        let (mut waited, mut waiters) = (Duration::ZERO, 0);
        for waiter in waiting {
            waiters += 1;
            let waits = |kept: Timestamp| waiter.until(at) - waiter.since.max(kept);
            if !continues[1] {
                waited += waits(held.kept[1]);
            }
            if !continues[0] {
                let (acquisition, owner, ns) = (waiter.acquisition, held.party, waits(held.kept[0]));
                report(waiter.party, Ticketed::Blocked { acquisition, owner, ns, lasts: false });
            }
        }
        let was_suspended = self.suspended.get(&acquisition.by.tid).is_some_and(|last| *last > held.since);
        if let Some(length) = length
            && (was_suspended || tid != acquisition.by.tid)
        {
            report(held.party, Ticketed::AcrossAwait { acquisition, length, waiters, waited });
        }
    }
}

/// The holders of a lock, and since when without a break.
fn parties<'a>(holding: impl Iterator<Item = &'a Request>) -> Vec<(Party, Timestamp)> {
    let holding = holding.filter(|request| !request.doubtful);
    let mut parties: Vec<(Party, Timestamp)> =
        holding.map(|request| (request.party, request.kept[0])).collect();
    parties.sort_unstable();
    parties.dedup_by_key(|(party, _)| *party);
    parties
}

impl Request {
    /// The last time at which it can have waited, up to `at`.
    fn until(&self, at: Timestamp) -> Timestamp {
        self.ended.map_or(at, |ended| ended.min(at))
    }

    fn unserved(&self, at: Timestamp) -> Outcome {
        let wait = Some(at - self.since);
        Outcome::Unserved { acquisition: self.acquisition, wait, at, owner: None }
    }

    fn refused(&self, at: Timestamp, wait: Option<Duration>) -> Outcome {
        Outcome::Refused { acquisition: self.acquisition, wait, at, owner: None, spins: None }
    }
}
