//! What becomes of acquisitions that several things at one address have.

use tracewing_units::{Caller, Duration, LockAddress, Pid, Task, Ticket, Tid, Timestamp};

use super::account::{Account, Bins, Kind, Party};
use super::event::LockEvent;
use super::places::Places;
use super::table::{Group, Subject};
use super::thread::{Acquisition, By, Outcome, Wait};
use super::tickets::{Ticketed, Tickets};
use super::totals::Totals;

/// tokio's mutex begins with a lock of threads, whose futex lies at the same address.
#[test]
fn a_futex_that_is_part_of_a_lock_is_no_wait_for_it() {
    const LOCK: LockAddress = LockAddress(0x1000);
    let by = By { process: Some(Pid(1)), tid: Tid(2), ..By::default() };
    let of = |kind| Acquisition { lock: LOCK, kind, caller: Caller::UNKNOWN, chain: None, by };
    let acquired = |kind, ns| Outcome::Acquired {
        acquisition: of(kind),
        wait: Wait::For(Duration::from_ns(ns)),
        owner: None,
        spins: None,
        depth: None,
    };
    let mut totals = Totals::new(Group::Lock, Bins::default());
    totals.begun = true;
    let places = Places::default();
    totals.add(Party::Thread(Tid(2)), &acquired(Kind::Mutex, 100), false, &places);
    totals.add(Party::Thread(Tid(3)), &acquired(Kind::Futex, 7), false, &places);
    let account = |subject| &totals.accounts[&(Some(Pid(1)), subject, 0)];
    let (lock, futex) = (account(Subject::Lock(LOCK)), account(Subject::Futex(LOCK)));
    assert_eq!((lock.acquired, lock.waits.total_ns.as_ns()), (1, 100));
    assert_eq!((futex.acquired, futex.waits.total_ns.as_ns()), (1, 7));
    assert!(futex.owners.is_empty(), "the mutex' owner is not the futex'");
}

/// Two readers of one place hold a lock at the same time, for which a writer waits: that is one wait.
#[test]
fn threads_that_share_a_lock_are_blamed_once() {
    const WRITER: Party = Party::Place(Some(Pid(1)), Caller(20));
    let by = |tid| By { process: Some(Pid(1)), tid, ..By::default() };
    let took = |kind, caller, waited| LockEvent::Acquired { lock: LockAddress(1), caller, kind, waited };
    let (reads, gives) = (took(Kind::Read, Caller(10), false), LockEvent::Released { lock: LockAddress(1) });
    let asks = LockEvent::Requested {
        lock: LockAddress(1),
        caller: Caller(20),
        kind: Kind::Write,
        owner: None,
        ends: true,
    };
    let mut reported = Vec::new();
    let mut tickets = Tickets::default();
    let events = [
        (1, &reads, 100),
        (2, &reads, 200),
        (3, &asks, 300),
        (2, &gives, 1000),
        (1, &gives, 1500),
        (3, &took(Kind::Write, Caller(20), true), 1500),
    ];
    for (ticket, event, at) in events {
        let mut report = |party, what| reported.push((party, what));
        tickets.event(Ticket(ticket), event, by(Tid(ticket as i32)), Timestamp::from_ns(at), &mut report);
    }
    let blamed = reported.iter().filter_map(|(party, what)| match what {
        Ticketed::Blocked { owner, ns, .. } if *party == WRITER => Some((*owner, ns.as_ns())),
        _ => None,
    });
    assert_eq!(blamed.collect::<Vec<_>>(), [(Party::Place(Some(Pid(1)), Caller(10)), 1200)]);
}

/// Plain `tokio::spawn`, recorded by a tracewing-tokio whose events have no tickets.
#[test]
fn what_no_ticket_pairs_is_counted_and_has_no_length() {
    let by = By { process: Some(Pid(1)), tid: Tid(2), ..By::default() };
    let mut totals = Totals::new(Group::Lock, Bins::default());
    totals.begun = true;
    let places = Places::default();
    let took =
        LockEvent::Acquired { lock: LockAddress(1), caller: Caller(10), kind: Kind::Mutex, waited: true };
    totals.unpaired(&took, by, &places);
    totals.unpaired(&LockEvent::Released { lock: LockAddress(1) }, by, &places);
    let account = &totals.accounts[&(Some(Pid(1)), Subject::Lock(LockAddress(1)), 0)];
    assert_eq!((account.acquired, account.waited()), (1, None));
    assert!(account.known_waits().is_none() && account.known_holds().is_none());
}

/// A wait for a futex begins on a chosen CPU and ends on another one; the next end on the first one is
/// another wait's.
#[test]
fn what_only_pairs_show_is_not_counted_without_them() {
    let by = By { process: Some(Pid(1)), tid: Tid(2), ..By::default() };
    let mut totals = Totals::new(Group::Lock, Bins::default());
    totals.begun = true;
    for kind in [Kind::Mutex, Kind::Futex, Kind::Condition, Kind::Barrier, Kind::KernelMutex] {
        let lock = LockAddress(kind as u64);
        let acquisition = Acquisition { lock, kind, caller: Caller::UNKNOWN, chain: None, by };
        let wait = Wait::For(Duration::from_ns(7));
        let acquired = Outcome::Acquired { acquisition, wait, owner: None, spins: None, depth: None };
        totals.add(Party::Thread(Tid(2)), &acquired, false, &Places::default());
    }
    let known = |account: &Account| account.acquisitions().is_some();
    assert!(totals.accounts.values().all(known));
    totals.accounts.values_mut().for_each(Account::unpair);
    assert_eq!(totals.accounts.values().filter(|account| known(account)).count(), 1, "the mutex");
}

/// The same recording is drawn the same way each time.
#[test]
fn waits_that_the_end_cuts_off_are_reported_by_lock() {
    let mut tickets = Tickets::default();
    let asks =
        |lock| LockEvent::Requested { lock, caller: Caller(1), kind: Kind::Mutex, owner: None, ends: true };
    for number in [5, 3, 8, 1, 7, 2, 6, 4] {
        let by = By { process: Some(Pid(1)), tid: Tid(2), task: Task(3), ..By::default() };
        tickets.event(Ticket(number), &asks(LockAddress(number)), by, Timestamp::from_ns(1), &mut |_, _| {});
    }
    let mut locks = Vec::new();
    tickets.finish(Timestamp::from_ns(9), None, &mut |_, what| {
        if let Ticketed::Outcome(Outcome::Unserved { acquisition, .. }) = what {
            locks.push(acquisition.lock.0);
        }
    });
    assert_eq!(locks, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// A killed thread has neither tried for the lock, nor waited in vain.
#[test]
fn a_request_without_an_end_is_waited_for_and_not_refused() {
    const LOCK: LockAddress = LockAddress(0x1000);
    let by = By { process: Some(Pid(1)), tid: Tid(2), ..By::default() };
    let acquisition = Acquisition { lock: LOCK, kind: Kind::Mutex, caller: Caller::UNKNOWN, chain: None, by };
    let (wait, at, owner) = (Some(Duration::from_ns(100)), Timestamp::from_ns(900), None);
    let mut totals = Totals::new(Group::Lock, Bins::default());
    totals.begun = true;
    let unserved = Outcome::Unserved { acquisition, wait, at, owner };
    totals.add(Party::Thread(Tid(2)), &unserved, false, &Places::default());
    let account = &totals.accounts[&(Some(Pid(1)), Subject::Lock(LOCK), 0)];
    assert_eq!((account.acquired, account.refused, account.waited()), (0, 0, Some(1)));
    assert_eq!(account.waits.total_ns.as_ns(), 100);
}
