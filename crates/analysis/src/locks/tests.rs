//! What becomes of acquisitions that several things at one address have.

use tracewing_units::{Caller, Duration, LockAddress, Pid, Task, Ticket, Tid, Timestamp};

use super::Locks;
use super::account::{Account, Bins, Kind, Party};
use super::event::LockEvent;
use super::owners::HOLDERS;
use super::places::Places;
use super::table::{Group, Subject};
use super::thread::{Acquisition, By, Hold, Outcome, Wait};
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
        hold: Hold::None,
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
        let (owner, spins, depth, hold) = (None, None, None, Hold::None);
        let acquired = Outcome::Acquired { acquisition, wait, owner, spins, depth, hold };
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

const PROCESS: Option<Pid> = Some(Pid(1));
const MUTEX: LockAddress = LockAddress(0x10);
const OTHER: LockAddress = LockAddress(0x20);
const CONDITION: LockAddress = LockAddress(0x30);

/// Has threads do something with locks whose requests do not name the holder, one after the other.
fn happens(locks: &mut Locks, events: &[(i32, LockEvent)]) {
    for (tid, event) in events {
        let by = By { process: PROCESS, tid: Tid(*tid), ..By::default() };
        locks.of_party(Party::Thread(Tid(*tid)), PROCESS, event, by, Timestamp::from_ns(1000));
    }
}

fn asks(lock: LockAddress) -> LockEvent {
    LockEvent::Requested { lock, caller: Caller(1), kind: Kind::Mutex, owner: None, ends: true }
}

fn takes(lock: LockAddress) -> LockEvent {
    LockEvent::Acquired { lock, caller: Caller(1), kind: Kind::Mutex, waited: false }
}

fn gives(lock: LockAddress) -> LockEvent {
    LockEvent::Released { lock }
}

/// Those that hold a lock, and which of these a request would be blamed on.
fn owners(locks: &Locks, lock: LockAddress) -> (Vec<Party>, Option<Party>) {
    let found = locks.totals.owners.get(&(PROCESS, lock));
    (found.map_or(Vec::new(), |owners| owners.in_order().collect()), locks.holder((PROCESS, lock)))
}

fn threads(tids: &[i32]) -> Vec<Party> {
    tids.iter().map(|tid| Party::Thread(Tid(*tid))).collect()
}

#[test]
fn after_a_wait_for_a_condition_a_thread_holds_the_mutex_again() {
    for came in [true, false] {
        let mut locks = Locks::new(Group::Lock, Bins::Log);
        locks.begins(Timestamp::ORIGIN);
        let waits = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: Caller(1) };
        let woken = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX, came };
        happens(&mut locks, &[(7, takes(MUTEX)), (7, waits)]);
        assert_eq!(owners(&locks, MUTEX), (Vec::new(), None));
        happens(&mut locks, &[(7, woken)]);
        assert_eq!(owners(&locks, MUTEX), (threads(&[7]), Some(Party::Thread(Tid(7)))));
        happens(&mut locks, &[(8, takes(OTHER)), (8, asks(MUTEX)), (7, asks(OTHER))]);
        locks.note_waiters(Timestamp::from_ns(2000));
        let mut graph = locks.totals.graph.clone();
        graph.finish(|_| String::new(), &locks.places);
        assert_eq!(graph.cycles.len(), 1, "each waits for what the other one holds");
        let refused = LockEvent::Refused { lock: OTHER, caller: Caller(1), kind: Kind::Mutex, waited: true };
        happens(&mut locks, &[(7, refused), (7, gives(MUTEX)), (8, takes(MUTEX))]);
        let account = &locks.totals.accounts[&(PROCESS, Subject::Lock(MUTEX), 0)];
        assert_eq!((account.acquired, account.owners.keys().next()), (2, Some(&Party::Thread(Tid(7)))));
    }
}

#[test]
fn of_several_holders_the_one_that_has_held_the_lock_longest_is_blamed() {
    let mut locks = Locks::new(Group::Lock, Bins::Log);
    happens(&mut locks, &[(7, takes(MUTEX)), (8, takes(MUTEX)), (7, takes(MUTEX))]);
    assert_eq!(owners(&locks, MUTEX), (threads(&[7, 8]), Some(Party::Thread(Tid(7)))));
    happens(&mut locks, &[(7, gives(MUTEX)), (7, gives(MUTEX))]);
    assert_eq!(owners(&locks, MUTEX).1, Some(Party::Thread(Tid(8))), "the next event may take it back");
    happens(&mut locks, &[(7, LockEvent::NotReleased { lock: MUTEX })]);
    assert_eq!(owners(&locks, MUTEX).1, Some(Party::Thread(Tid(7))));
    happens(&mut locks, &[(7, gives(MUTEX)), (7, asks(OTHER))]);
    assert_eq!(owners(&locks, MUTEX), (threads(&[8]), Some(Party::Thread(Tid(8)))));
}

#[test]
fn what_is_not_followed_has_no_holder() {
    let mut locks = Locks::new(Group::Lock, Bins::Log);
    for lock in 0x1000..0x1000 + 1024 {
        happens(&mut locks, &[(7, takes(LockAddress(lock)))]);
    }
    happens(&mut locks, &[(7, takes(MUTEX)), (7, gives(MUTEX)), (7, asks(OTHER))]);
    assert_eq!(owners(&locks, MUTEX), (Vec::new(), None));
    assert_eq!(owners(&locks, LockAddress(0x1000)).0, threads(&[7]));
}

/// The program of a thread that was killed holds its locks on, until another thread has its number.
#[test]
fn a_thread_does_not_hold_what_another_one_with_its_number_held() {
    let seven = Party::Thread(Tid(7));
    for is_before in [false, true] {
        let mut locks = Locks::new(Group::Lock, Bins::Log);
        happens(&mut locks, &[(7, takes(MUTEX)), (8, takes(MUTEX)), (7, takes(OTHER))]);
        locks.ends(seven, Timestamp::from_ns(1500));
        if is_before {
            locks.begins(Timestamp::from_ns(1600));
        }
        assert_eq!([MUTEX, OTHER].map(|lock| owners(&locks, lock).0), [threads(&[7, 8]), threads(&[7])]);
        happens(&mut locks, &[(7, asks(MUTEX))]);
        assert_eq!([MUTEX, OTHER].map(|lock| owners(&locks, lock).0), [threads(&[8]), Vec::new()]);
        assert_eq!(locks.totals.incomplete, 0);
    }
}

/// Many threads read at once; or the events of their releases are missing.
#[test]
fn how_many_holders_are_not_followed_is_known_of_what_is_analysed() {
    let mut locks = Locks::new(Group::Lock, Bins::Log);
    let all = 1..=HOLDERS as i32 + 2;
    all.clone().for_each(|tid| happens(&mut locks, &[(tid, takes(MUTEX))]));
    // Those that take it again are no further ones.
    all.clone().for_each(|tid| happens(&mut locks, &[(tid, takes(MUTEX))]));
    let with = |change: &dyn Fn(&mut Locks)| {
        let mut locks = locks.same();
        change(&mut locks);
        locks.begins(Timestamp::from_ns(2000));
        locks.totals.forgotten_holders
    };
    assert_eq!(locks.totals.forgotten_holders, 0, "before what is analysed");
    assert_eq!(with(&|_| {}), 2);
    let leave = |locks: &mut Locks, tid| happens(locks, &[(tid, gives(MUTEX)), (tid, gives(MUTEX))]);
    assert_eq!(with(&|locks| leave(locks, 1)), 1);
    assert_eq!(with(&|locks| [1, 2, 9].into_iter().for_each(|tid| leave(locks, tid))), 0);
    locks.begins(Timestamp::from_ns(2000));
    all.clone().for_each(|tid| leave(&mut locks, tid));
    assert_eq!(locks.totals.forgotten_holders, 2);
    all.for_each(|tid| happens(&mut locks, &[(tid, asks(OTHER))]));
    assert_eq!(locks.totals.owners[&(PROCESS, MUTEX)].forgotten(), 0);
}
