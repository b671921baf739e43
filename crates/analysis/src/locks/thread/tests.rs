//! What threads' events amount to, written as short lines.

use tracewing_units::Duration;

use super::holds::MOST;
use super::*;
use crate::analysis::Analysis;
use crate::locks::{Bins, EarlierLocks, Group, Locks};
use crate::stored::PartKind;

const MUTEX: LockAddress = LockAddress(0x10);
const OTHER: LockAddress = LockAddress(0x20);
const CONDITION: LockAddress = LockAddress(0x30);

fn acquired(lock: LockAddress) -> LockEvent {
    LockEvent::Acquired { lock, caller: Caller(0x99), kind: Kind::Mutex, waited: false }
}

fn requested(lock: LockAddress, owner: i32) -> LockEvent {
    let owner = (owner != 0).then_some(Tid(owner));
    LockEvent::Requested { lock, caller: Caller(0x99), kind: Kind::Mutex, owner, ends: true }
}

fn released(lock: LockAddress) -> LockEvent {
    LockEvent::Released { lock }
}

/// The results of events at 10, 20, 30, … and of the end of the recording after them, in short.
fn outcomes(events: &[LockEvent]) -> Vec<String> {
    let (mut thread, mut all) = (Thread::default(), Vec::new());
    let mut report = |outcome: Outcome| {
        all.push(match outcome {
            Outcome::Acquired { acquisition, wait, owner, depth, .. } => {
                let depth = depth.unwrap();
                let Party::Thread(owner) = owner.unwrap_or(Party::Thread(Tid(0))) else { panic!() };
                format!("acquired {:#x} wait {wait:?} owner {owner} depth {depth}", acquisition.lock)
            }
            Outcome::Refused { acquisition, wait, .. } => {
                format!("refused {:#x} wait {wait:?}", acquisition.lock)
            }
            Outcome::Unserved { acquisition, wait, .. } => {
                format!("unserved {:#x} wait {wait:?}", acquisition.lock)
            }
            Outcome::Held { acquisition, length, .. } => {
                format!("held {:#x} for {:?}", acquisition.lock, length.unwrap())
            }
            Outcome::HeldAgain { acquisition, .. } => format!("holds {:#x} again", acquisition.lock),
            Outcome::Abandoned { acquisition } => format!("abandoned {:#x}", acquisition.lock),
            Outcome::Incomplete | Outcome::Unended { .. } => "incomplete".to_owned(),
        });
    };
    let mut at = Timestamp::ORIGIN;
    let step = Duration::from_ns(10);
    for event in events {
        at = at + step;
        thread.event(event, By::default(), at, &mut report);
    }
    thread.finish(at + step, &mut report);
    all
}

#[test]
fn waits_holds_and_nesting() {
    let events = [acquired(MUTEX), requested(OTHER, 7), acquired(OTHER), released(MUTEX), released(OTHER)];
    assert_eq!(
        outcomes(&events),
        [
            "acquired 0x10 wait No owner 0 depth 0",
            "acquired 0x20 wait For(10 ns) owner 7 depth 1",
            "held 0x10 for 30 ns",
            "held 0x20 for 20 ns"
        ]
    );
}

#[test]
fn a_recursive_lock_is_one_critical_section() {
    let events = [acquired(MUTEX), acquired(MUTEX), acquired(OTHER), released(MUTEX), released(MUTEX)];
    let acquired = ["acquired 0x10 wait No owner 0 depth 0", "acquired 0x10 wait No owner 0 depth 1"];
    let rest = ["acquired 0x20 wait No owner 0 depth 1", "held 0x10 for 40 ns", "incomplete"];
    assert_eq!(outcomes(&events), [&acquired[..], &rest].concat());
}

#[test]
fn a_release_that_failed_is_none() {
    let events = [
        acquired(MUTEX),
        released(MUTEX),
        LockEvent::NotReleased { lock: MUTEX },
        released(OTHER),
        LockEvent::NotReleased { lock: OTHER },
        released(MUTEX),
    ];
    assert_eq!(outcomes(&events), ["acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 50 ns"]);
}

#[test]
fn waiting_for_a_condition_releases_the_mutex() {
    let wait = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: Caller(1) };
    let woken = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX, came: true };
    let first = ["acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 10 ns"];
    let then = ["acquired 0x30 wait For(10 ns) owner 0 depth 0", "holds 0x10 again", "held 0x10 for 10 ns"];
    assert_eq!(outcomes(&[acquired(MUTEX), wait, woken, released(MUTEX)]), [&first[..], &then].concat());
    let cancelled = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: Caller(1) };
    assert_eq!(
        outcomes(&[acquired(MUTEX), cancelled, released(MUTEX)]),
        [&first[..], &["incomplete"]].concat()
    );
}

#[test]
fn a_wait_that_ends_with_another_object_or_with_another_wait_is_incomplete() {
    let wait = || LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: Caller(1) };
    let woken = || LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX, came: true };
    let barrier = || LockEvent::BarrierWait { barrier: OTHER, caller: Caller(1) };
    let passed = || LockEvent::BarrierPassed { barrier: OTHER };
    let came = "acquired 0x20 wait For(10 ns) owner 0 depth 0";
    assert_eq!(outcomes(&[barrier(), barrier(), passed()]), ["incomplete", came]);
    assert_eq!(outcomes(&[wait(), barrier(), passed()]), ["incomplete", came]);
    assert_eq!(outcomes(&[barrier(), woken(), passed()]), ["incomplete"; 3], "each lacks its counterpart");
    let first = ["acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 10 ns", "incomplete"];
    let then = ["acquired 0x30 wait For(10 ns) owner 0 depth 0", "incomplete"];
    let events = [acquired(MUTEX), wait(), wait(), woken(), released(MUTEX)];
    assert_eq!(
        outcomes(&events),
        [&first[..], &then].concat(),
        "the mutex's section after the first wait too"
    );
}

#[test]
fn a_wait_for_a_condition_whose_time_is_up_is_refused() {
    let wait = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: Caller(1) };
    let late = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX, came: false };
    let expected = [
        "acquired 0x10 wait No owner 0 depth 0",
        "held 0x10 for 10 ns",
        "refused 0x30 wait Some(10 ns)",
        "holds 0x10 again",
        "held 0x10 for 10 ns",
    ];
    assert_eq!(outcomes(&[acquired(MUTEX), wait, late, released(MUTEX)]), expected);
}

#[test]
fn a_wait_without_its_begin_lacks_a_counterpart() {
    let woken = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX, came: true };
    assert_eq!(outcomes(&[woken]), ["incomplete"]);
    assert_eq!(outcomes(&[LockEvent::BarrierPassed { barrier: OTHER }]), ["incomplete"]);
}

#[test]
fn a_wait_whose_end_is_not_recorded_lacks_a_counterpart_and_has_not_that_of_another() {
    let futex = |address| LockEvent::FutexWait { address };
    let end = || LockEvent::FutexEnd { result: 0 };
    let came = "acquired 0x20 wait For(10 ns) owner 0 depth 0";
    assert_eq!(outcomes(&[futex(MUTEX), futex(OTHER), end()]), ["incomplete", came]);
    assert_eq!(outcomes(&[futex(OTHER), futex(OTHER), end()]), ["incomplete", came]);
    let took = "acquired 0x10 wait For(20 ns) owner 0 depth 0";
    assert_eq!(
        outcomes(&[futex(OTHER), requested(MUTEX, 0), end(), acquired(MUTEX), released(MUTEX)]),
        ["incomplete", took, "held 0x10 for 10 ns"]
    );
    assert_eq!(
        outcomes(&[requested(OTHER, 0), acquired(MUTEX), released(MUTEX)]),
        ["incomplete", "acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 10 ns"]
    );
    let refused = LockEvent::Refused { lock: MUTEX, caller: Caller(1), kind: Kind::Mutex, waited: false };
    assert_eq!(outcomes(&[requested(OTHER, 0), refused]), ["incomplete", "refused 0x10 wait None"]);
}

/// The next event, which is lost, could have said that the lock was not given back.
#[test]
fn a_section_that_ends_with_the_last_event_before_a_loss_is_unfinished() {
    let unfinished = |events: &[LockEvent]| {
        let mut thread = Thread::default();
        for (number, event) in events.iter().enumerate() {
            thread.event(event, By::default(), Timestamp::from_ns(number as i64), &mut |_| {});
        }
        thread.unfinished()
    };
    assert_eq!(unfinished(&[acquired(MUTEX), released(MUTEX)]), 1);
    assert_eq!(unfinished(&[acquired(MUTEX), released(MUTEX), requested(OTHER, 0)]), 1);
    assert_eq!(unfinished(&[acquired(MUTEX), acquired(MUTEX), released(MUTEX)]), 1, "still held");
    assert_eq!(unfinished(&[released(MUTEX)]), 1, "its acquisition is missing, if it is not taken back");
}

#[test]
fn what_is_cut_off_is_incomplete() {
    assert_eq!(outcomes(&[released(MUTEX)]), ["incomplete"]);
    assert_eq!(outcomes(&[acquired(MUTEX)]), ["acquired 0x10 wait No owner 0 depth 0", "incomplete"]);
    assert_eq!(outcomes(&[requested(MUTEX, 0)]), ["unserved 0x10 wait Some(10 ns)", "incomplete"]);
}

#[test]
fn a_wait_whose_begin_is_not_recorded_has_no_length() {
    let late = LockEvent::Acquired { lock: MUTEX, caller: Caller(0x99), kind: Kind::Mutex, waited: true };
    assert_eq!(
        outcomes(&[late, released(MUTEX)]),
        ["acquired 0x10 wait Unknown owner 0 depth 0", "held 0x10 for 10 ns"]
    );
}

#[test]
fn another_thread_with_its_number_has_nothing_of_one_that_has_ended() {
    let (mut thread, mut waits) = (Thread::default(), Vec::new());
    let mut report = |outcome: Outcome| match outcome {
        Outcome::Unserved { wait, .. } => waits.push(("unserved", wait)),
        Outcome::Acquired { wait: Wait::No, .. } => waits.push(("acquired", None)),
        _ => {}
    };
    let at = Timestamp::from_ns;
    thread.event(&requested(MUTEX, 7), By::default(), at(10), &mut report);
    thread.ended = Some(at(30));
    thread.event(&acquired(MUTEX), By::default(), at(90), &mut report);
    thread.event(&requested(OTHER, 0), By::default(), at(100), &mut report);
    thread.finish(at(150), &mut report);
    assert_eq!(
        waits,
        [
            ("unserved", Some(Duration::from_ns(20))),
            ("acquired", None),
            ("unserved", Some(Duration::from_ns(50)))
        ]
    );
}

#[test]
fn a_futex_is_waited_for_unless_it_is_part_of_a_lock() {
    let wait = || LockEvent::FutexWait { address: OTHER };
    let end = |result| LockEvent::FutexEnd { result };
    let (woken, changed, late) = (0, -11, -110);
    assert_eq!(
        outcomes(&[wait(), end(woken), wait(), end(changed), wait(), end(late), end(1)]),
        ["acquired 0x20 wait For(10 ns) owner 0 depth 0", "refused 0x20 wait Some(10 ns)"]
    );
    assert_eq!(
        outcomes(&[requested(MUTEX, 0), wait(), end(woken), acquired(MUTEX), released(MUTEX)]),
        ["acquired 0x10 wait For(30 ns) owner 0 depth 0", "held 0x10 for 10 ns"]
    );
    assert_eq!(outcomes(&[wait()]), ["unserved 0x20 wait Some(10 ns)", "incomplete"]);
}

#[test]
fn a_futex_that_a_signal_interrupts_is_waited_for_until_it_is_had_or_the_thread_is_killed() {
    let wait = || LockEvent::FutexWait { address: OTHER };
    let end = |result| LockEvent::FutexEnd { result };
    let (woken, interrupted, late) = (0, -512, -110);
    let kernels = || LockEvent::KernelWait { lock: MUTEX, kind: Kind::KernelMutex };
    let has = || LockEvent::KernelHas { lock: MUTEX };
    let kernel = "acquired 0x10 wait For(10 ns) owner 0 depth 0";
    assert_eq!(
        outcomes(&[wait(), end(interrupted), wait(), end(woken)]),
        ["acquired 0x20 wait For(30 ns) owner 0 depth 0"],
        "begun again"
    );
    assert_eq!(
        outcomes(&[wait(), end(interrupted), kernels(), has()]),
        [kernel, "unserved 0x20 wait Some(10 ns)", "incomplete"],
        "killed"
    );
    assert_eq!(
        outcomes(&[wait(), end(interrupted), released(MUTEX)]),
        ["refused 0x20 wait Some(10 ns)", "incomplete"],
        "reported to the program; and a release without its acquisition"
    );
    let other = LockEvent::FutexWait { address: CONDITION };
    assert_eq!(
        outcomes(&[wait(), end(-516), other, end(late)]),
        ["refused 0x20 wait Some(10 ns)", "refused 0x30 wait Some(10 ns)"]
    );
}

#[test]
fn the_kernels_mutex_reports_its_wait_twice() {
    let wait = || LockEvent::KernelWait { lock: MUTEX, kind: Kind::KernelMutex };
    let has = || LockEvent::KernelHas { lock: MUTEX };
    assert_eq!(
        outcomes(&[wait(), wait(), has(), has()]),
        ["acquired 0x10 wait For(20 ns) owner 0 depth 0", "incomplete"]
    );
}

/// From its exit to its last switch, the kernel has work to do for a thread.
#[test]
fn a_thread_that_exits_waits_for_locks_of_the_kernel_only() {
    let at = Timestamp::from_ns;
    let (mut thread, mut waits) = (Thread::default(), Vec::new());
    let mut report = |outcome: Outcome| {
        if let Outcome::Unserved { acquisition, wait: Some(wait), .. } = outcome {
            waits.push((acquisition.lock, wait.as_ns()));
        }
    };
    thread.event(&requested(MUTEX, 7), By::default(), at(10), &mut report);
    thread.exits(at(30));
    let waits_in_kernel = LockEvent::KernelWait { lock: OTHER, kind: Kind::Mutex };
    thread.event(&waits_in_kernel, By::default(), at(50), &mut report);
    assert!(thread.waits().is_some(), "what it waited for before may be part of a deadlock");
    thread.ended = Some(at(90));
    thread.finish(at(150), &mut report);
    assert_eq!(waits, [(MUTEX, 20), (OTHER, 40)]);
}

#[test]
fn another_thread_with_its_number_ends_the_wait_of_one_that_has_exited() {
    let at = Timestamp::from_ns;
    let (mut thread, mut waits) = (Thread::default(), Vec::new());
    let mut report = |outcome: Outcome| {
        if let Outcome::Unserved { wait: Some(wait), .. } = outcome {
            waits.push(wait.as_ns());
        }
    };
    thread.event(&requested(MUTEX, 7), By::default(), at(10), &mut report);
    thread.exits(at(30));
    thread.event(&requested(OTHER, 7), By::default(), at(60), &mut report);
    thread.finish(at(70), &mut report);
    assert_eq!(waits, [20, 10]);
}

/// A checkpoint may be of anything: what it says takes no more than what a thread does.
#[test]
fn a_checkpoint_with_a_thread_that_holds_too_much_is_not_used() {
    let (lock, kind, caller, by) = (MUTEX, Kind::Mutex, Caller(0x99), By::default());
    let acquisition = Acquisition { lock, kind, caller, chain: None, by };
    let held = Held { acquisition, at: Timestamp::ORIGIN, before: false };
    let is_used = |count| {
        let thread = Thread { held: Holds::of(vec![held; count]), ..Thread::default() };
        let mut locks = Locks::new(Group::Lock, Bins::Log);
        locks.threads.insert(Party::Thread(Tid(1)), thread);
        let part = PartKind::Locks.part(EarlierLocks::SHAPE, &locks);
        Locks::new(Group::Lock, Bins::Log).take(&[part])
    };
    assert!(is_used(MOST) && !is_used(MOST + 1));
}
