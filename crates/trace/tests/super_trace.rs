//! The super-trace's state on hand-made events whose answer is known, whole and with each event missing in
//! turn.

mod hand_made;

use std::collections::BTreeMap;

use hand_made::*;
use tracewing_trace::super_trace::{
    Carried, Change, Doing, Fold, Interrupt, Kind, Lwp, Mode, Name, Place, Scope, SuperTrace, SwitchCause,
    UserThread, UserThreadKind as User,
};
use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

/// Two LWPs of process 10 on two CPUs, and two user threads that both of them run.
fn story() -> Vec<Event> {
    use SwitchCause::{Blocked, Ended, Unknown, Yielded};
    let introduction = Kind::Introduction { process: Pid(10), name: b"program" };
    let create = |thread, number| Kind::UserThread(User::Create { thread, origin: Origin(number) });
    vec![
        (0, 0, 0, switch(0, 0, 10)),
        (10, 0, 10, introduction),
        (20, 0, 10, Kind::NewTask { child: Tid(11), same_process: true }),
        (21, 0, 10, Kind::Fork { child: Tid(11), name: b"worker" }),
        (30, 0, 10, Kind::Wakeup { tid: Tid(11), name: b"worker" }),
        (40, 1, 0, switch(0, 0, 11)),
        (50, 1, 11, introduction),
        (55, 1, 11, Kind::UserThread(User::Worker)),
        (60, 0, 10, Kind::UserThread(User::Origin { origin: Origin(0xa), name: b"a", file: b"", line: 0 })),
        (60, 0, 10, create(Task(1), 0xa)),
        (70, 0, 10, create(Task(2), 0xb)),
        (70, 0, 10, Kind::UserThread(User::Origin { origin: Origin(0xb), name: b"b", file: b"", line: 0 })),
        (80, 1, 11, user_switch(0, 1, Unknown)),
        (90, 1, 11, Kind::SystemCall { call: READ }),
        (100, 1, 11, switch(11, SLEEPS, 0)),
        (110, 0, 10, Kind::SystemCall { call: FUTEX }),
        (115, 0, 10, Kind::Waking { tid: Tid(11), name: b"worker" }),
        (116, 0, 10, Kind::Wakeup { tid: Tid(11), name: b"worker" }),
        (120, 0, 10, Kind::SystemCallEnd { call: FUTEX }),
        (130, 0, 10, switch(10, RUNNABLE, 11)),
        (140, 0, 11, Kind::SystemCallEnd { call: READ }),
        (150, 0, 11, takes(Interrupt::Vector)),
        (155, 0, 11, Kind::InterruptExit(Interrupt::Vector)),
        (157, 0, 11, takes(Interrupt::Softirq)),
        (159, 0, 11, Kind::Kernel),
        (162, 0, 11, Kind::InterruptExit(Interrupt::Softirq)),
        (170, 0, 11, Kind::UserThread(User::Wait { kind: MUTEX })),
        (180, 0, 11, user_switch(1, 2, Blocked)),
        (190, 0, 11, Kind::PageFault { user: true, high: true }),
        (200, 0, 11, switch(11, RUNNABLE, 10)),
        (210, 0, 10, Kind::UserThread(User::Wake { thread: Task(1) })),
        (220, 0, 10, user_switch(0, 1, Unknown)),
        (230, 0, 10, user_switch(1, 0, Ended)),
        (240, 0, 10, Kind::UserThread(User::Exit { thread: Task(1) })),
        (245, 0, 10, Kind::SystemCall { call: FUTEX }),
        (250, 0, 10, switch(10, SLEEPS, 11)),
        (260, 0, 11, user_switch(2, 0, Yielded)),
        (270, 0, 11, user_switch(0, 2, Unknown)),
        (280, 0, 11, Kind::SystemCall { call: READ }),
        (290, 0, 11, switch(11, DEAD, 0)),
        (300, 0, 0, Kind::Kernel),
    ]
}

fn runs(cpu: u32, mode: Mode) -> Doing {
    Doing::Running { cpu: Cpu(cpu), mode }
}

const WOKEN: Doing = Doing::Runnable { preempted: false };
const PREEMPTED: Doing = Doing::Runnable { preempted: true };

fn blocked(on: Option<Name>) -> Doing {
    Doing::Blocked { on }
}

#[test]
fn both_levels_are_followed_through_all_states() {
    use Mode::{Interrupt, SystemCall, Unknown, User};
    let notes = fold(&story());
    assert_eq!(
        *notes.of(Actor::Lwp(10)),
        [
            (0, 60, runs(0, Unknown)), // nothing is known before its program's first event
            (60, 110, runs(0, User)),
            (110, 120, runs(0, SystemCall(FUTEX))),
            (120, 130, runs(0, User)),
            (130, 200, PREEMPTED),
            (200, 245, runs(0, User)),
            (245, 250, runs(0, SystemCall(FUTEX))),
            (250, 300, blocked(Some(FUTEX))),
        ]
    );
    let on_11_for_1 = [
        (80, 90, runs(1, User)),
        (90, 100, runs(1, SystemCall(READ))),
        (100, 115, blocked(Some(READ))),
        (115, 130, WOKEN),
        (130, 140, runs(0, SystemCall(READ))),
        (140, 150, runs(0, User)),
        (150, 155, runs(0, Interrupt(Some(IRQ)))),
        (155, 157, runs(0, User)),
        (157, 162, runs(0, Interrupt(Some(IRQ)))),
    ];
    let mut expected =
        vec![(20, 30, blocked(None)), (30, 40, WOKEN), (40, 55, runs(1, Unknown)), (55, 90, runs(1, User))];
    expected.extend(&on_11_for_1[1..]);
    expected.extend([
        (162, 200, runs(0, User)),
        (200, 250, PREEMPTED),
        (250, 280, runs(0, User)),
        (280, 290, runs(0, SystemCall(READ))),
    ]);
    assert_eq!(*notes.of(Actor::Lwp(11)), expected);
    let mut expected = vec![(60, 80, WOKEN)];
    expected.extend(on_11_for_1);
    expected.extend([
        (162, 180, runs(0, User)),
        (180, 210, blocked(Some(MUTEX))),
        (210, 220, WOKEN),
        (220, 230, runs(0, User)),
    ]);
    assert_eq!(*notes.of(Actor::Thread(1)), expected);
    assert_eq!(
        *notes.of(Actor::Thread(2)),
        [
            (70, 180, WOKEN),
            (180, 200, runs(0, User)),
            (200, 250, PREEMPTED),
            (250, 260, runs(0, User)),
            (260, 270, PREEMPTED),
            (270, 280, runs(0, User)),
            (280, 290, runs(0, SystemCall(READ))), // it ends with its LWP
        ]
    );
    assert_eq!(notes.counts, BTreeMap::from([(1, [2, 1, 1, 1]), (2, [2, 0, 0, 0])]));
}

/// The threads that an event is about: the one that recorded it, and those that it names.
fn concerns(event: &Event) -> Vec<Actor> {
    let mut actors = vec![Actor::Lwp(event.2)];
    match event.3 {
        Kind::Switch { prev, next, .. } => actors.extend([Actor::Lwp(prev.0), Actor::Lwp(next.0)]),
        Kind::Waking { tid, .. } | Kind::Wakeup { tid, .. } => actors.push(Actor::Lwp(tid.0)),
        Kind::NewTask { child, .. } | Kind::Fork { child, .. } => actors.push(Actor::Lwp(child.0)),
        Kind::UserThread(User::Create { thread, .. } | User::Wake { thread } | User::Exit { thread }) => {
            actors.push(Actor::Thread(thread.0));
        }
        Kind::UserThread(User::Switch { prev, next, .. }) => {
            actors.extend([Actor::Thread(prev.0), Actor::Thread(next.0)]);
        }
        Kind::UserThread(User::Wait { .. }) => actors.push(Actor::Thread(1)),
        _ => {}
    }
    actors
}

#[test]
fn a_missing_event_costs_what_it_reaches_and_nothing_else() {
    let story = story();
    let whole = fold(&story);
    let mut grown = 0;
    for missing in 0..story.len() {
        let mut events = story.clone();
        let gone = events.remove(missing);
        let notes = fold(&events);
        let actors = concerns(&gone);
        // An event's error about a thread is corrected by the next event that concerns the same thread;
        // interrupts do not concern the thread that they interrupt.
        let next = |actor: Actor| {
            let interrupt =
                |kind| matches!(kind, Kind::InterruptEntry { .. } | Kind::InterruptExit(_) | Kind::Kernel);
            let mut later = story[missing + 1..].iter().filter(|event| !interrupt(event.3));
            later.find(|event| concerns(event).contains(&actor)).map_or(300, |event| event.0)
        };
        let lwps: Vec<Actor> =
            actors.iter().copied().filter(|actor| matches!(actor, Actor::Lwp(_))).collect();
        let reach = actors.iter().map(|actor| next(*actor)).max().unwrap_or(300);
        for (actor, spans) in &whole.spans {
            for time in spans.iter().flat_map(|span| span.0..span.1) {
                let (is, was) = (notes.at(*actor, time), whole.at(*actor, time));
                let unknown = is.is_none_or(is_unknown);
                if is == was || unknown {
                    continue;
                }
                // A user thread shares what its LWP does.
                let concerned =
                    actors.contains(actor) || (matches!(actor, Actor::Thread(_)) && !lwps.is_empty());
                assert!(
                    concerned && (gone.0..reach).contains(&time),
                    "without {gone:?}, {actor:?} at {time} is {is:?} and was {was:?}"
                );
            }
        }
        assert!(notes.spans.len() >= whole.spans.len(), "without {gone:?} a thread is never seen");
        assert!(notes.unknown() >= whole.unknown() - 60, "without {gone:?} less is unknown");
        grown += usize::from(notes.unknown() > whole.unknown());
    }
    assert!(grown > story.len() / 2, "only {grown} missing events leave time unknown");
}

fn is_of_programs(event: &Event) -> bool {
    matches!(event.3, Kind::User | Kind::Waits { .. } | Kind::UserThread(_) | Kind::Introduction { .. })
}

#[test]
fn kernel_events_alone_show_only_lwps() {
    let (whole, story) = (fold(&story()), story());
    let kernel: Vec<Event> = story.into_iter().filter(|event| !is_of_programs(event)).collect();
    let notes = fold(&kernel);
    assert_eq!(notes.spans.keys().collect::<Vec<_>>(), [&Actor::Lwp(10), &Actor::Lwp(11)]);
    for actor in [Actor::Lwp(10), Actor::Lwp(11)] {
        for (from, to, was) in whole.of(actor) {
            for time in *from..*to {
                let is = notes.at(actor, time).expect("no gaps");
                assert!(is == *was || is_unknown(is), "{actor:?} at {time} is {is:?} and was {was:?}");
            }
        }
    }
    let event = (295, 0, 10, Kind::SystemCall { call: READ });
    place(&kernel, event, |place| assert_eq!(place.thread, Carried::Unknown));
}

#[test]
fn program_events_alone_show_what_user_threads_do_off_lwps() {
    let story: Vec<Event> = story().into_iter().filter(is_of_programs).collect();
    let notes = fold(&story);
    let unknown = |from, to| (from, to, Doing::Unknown);
    assert_eq!(
        *notes.of(Actor::Thread(1)),
        [
            (60, 80, WOKEN),
            unknown(80, 180),
            (180, 210, blocked(Some(MUTEX))),
            (210, 220, WOKEN),
            unknown(220, 230)
        ]
    );
    assert_eq!(
        *notes.of(Actor::Thread(2)),
        [(70, 180, WOKEN), unknown(180, 260), (260, 270, PREEMPTED)] // the last event is at 270
    );
    assert_eq!(notes.counts, BTreeMap::from([(1, [2, 1, 1, 1]), (2, [2, 0, 0, 0])]));
}

#[test]
fn an_event_belongs_to_what_ran_before_it() {
    let story = story();
    let at = |time: i64, look: &dyn Fn(Place<'_>)| {
        let index = story.iter().position(|event| event.0 == time).expect("such an event");
        place(&story[..index], story[index], look);
    };
    let a = Carried::Thread { id: Task(1), name: "a" };
    let expect = |time, process, tid, thread, mode| {
        at(time, &|place| {
            let is = (place.process, place.tid, place.thread, place.mode);
            assert_eq!(is, (process, Some(tid), thread, mode), "at {time}");
        });
    };
    expect(0, None, Tid(0), Carried::Unknown, Mode::Unknown);
    expect(80, Some(Pid(10)), Tid(11), Carried::None, Mode::User);
    expect(100, Some(Pid(10)), Tid(11), a, Mode::SystemCall(READ));
    expect(120, Some(Pid(10)), Tid(10), Carried::Unknown, Mode::SystemCall(FUTEX));
    expect(150, Some(Pid(10)), Tid(11), Carried::None, Mode::Interrupt(Some(IRQ)));
    expect(155, Some(Pid(10)), Tid(11), Carried::None, Mode::Interrupt(Some(IRQ)));
    expect(159, Some(Pid(10)), Tid(11), Carried::None, Mode::Interrupt(Some(IRQ)));
    expect(180, Some(Pid(10)), Tid(11), a, Mode::User);
    expect(200, Some(Pid(10)), Tid(11), Carried::Thread { id: Task(2), name: "b" }, Mode::User);
    expect(210, Some(Pid(10)), Tid(10), Carried::Unknown, Mode::User);
    expect(230, Some(Pid(10)), Tid(10), a, Mode::User);
    // A thread that has not been seen may be known from a state dump.
    let dump = Kind::Dump { tid: Tid(21), process: Pid(20), name: b"old", is_kernel: false };
    place(&[(1, 0, 5, dump)], (2, 0, 21, Kind::SystemCall { call: READ }), |place| {
        assert_eq!((place.process, place.tid), (Some(Pid(20)), Some(Tid(21))));
    });
    // The switch itself is evidence, even if it was not expected.
    place(&[], (5, 0, 11, user_switch(7, 0, SwitchCause::Yielded)), |place| {
        assert_eq!(place.thread, Carried::Thread { id: Task(7), name: "" });
    });
}

#[test]
fn what_is_lost_is_unknown_until_the_next_evidence() {
    let mut notes = Notes::default();
    let mut state = SuperTrace::default();
    for (time, cpu, tid, kind) in story() {
        if time == 190 {
            state.lost(Scope::User, Timestamp::from_ns(185), Timestamp::from_ns(230), &mut notes);
        }
        state.event(&activity(&(time, cpu, tid, kind)), &mut notes);
    }
    state.finish(&mut notes);
    let whole = fold(&story());
    assert_eq!(notes.of(Actor::Lwp(10)), whole.of(Actor::Lwp(10)), "the kernel's events are all there");
    let of_2 = notes.of(Actor::Thread(2));
    assert_eq!(of_2[..2], [(70, 180, WOKEN), (180, 185, runs(0, Mode::User))]);
    assert_eq!(of_2[2..4], [(185, 260, Doing::Unknown), (260, 270, PREEMPTED)]);
    assert_eq!(notes.of(Actor::Thread(1)).last(), Some(&(185, 230, Doing::Unknown)));
}

#[test]
fn a_nested_user_thread_is_reported_separately() {
    let story = [
        (0, 0, 0, switch(0, 0, 10)),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, user_switch(1, 2, SwitchCause::Nested)),
        (30, 0, 10, user_switch(2, 1, SwitchCause::Blocked)),
        (40, 0, 10, user_switch(1, 0, SwitchCause::Blocked)),
        (50, 0, 10, Kind::User),
    ];
    let notes = fold(&story);
    let of_1 = notes.of(Actor::Thread(1));
    let user = runs(0, Mode::User);
    assert_eq!(of_1[1..], [(10, 20, user), (20, 30, Doing::Nested), (30, 40, user), (40, 50, blocked(None))]);
    assert_eq!(notes.of(Actor::Thread(2))[1..], [(20, 30, user), (30, 50, blocked(None))]);
    assert_eq!(notes.counts, BTreeMap::from([(1, [1, 0, 0, 0]), (2, [1, 0, 0, 0])]));
}

#[test]
fn a_user_thread_without_a_switch_away_ran_for_an_unknown_time() {
    let story = [
        (0, 0, 0, switch(0, 0, 10)),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, Kind::SystemCall { call: READ }),
        (60, 0, 10, user_switch(0, 2, SwitchCause::Unknown)),
        (80, 0, 10, user_switch(2, 0, SwitchCause::Blocked)),
    ];
    let notes = fold(&story);
    assert_eq!(*notes.of(Actor::Thread(1)), [(0, 80, Doing::Unknown)]);
    assert_eq!(notes.of(Actor::Thread(2))[1..], [(60, 80, runs(0, Mode::User))]);
}

#[test]
fn events_in_any_order_leave_no_gaps() {
    let story = story();
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..300 {
        let mut time = 0;
        let mut event = |_| {
            let (_, cpu, tid, kind) = story[next(story.len())];
            time += next(10) as i64;
            // Stamps of two CPUs may be out of step; LWPs and user threads appear where they never were.
            let tid = if next(10) == 0 { 11 } else { tid };
            (time - next(3) as i64, if next(10) == 0 { 1 } else { cpu }, tid, kind)
        };
        let events: Vec<Event> = (0..200).map(&mut event).collect();
        let mut notes = Renumbered::default();
        let mut state = SuperTrace::default();
        for (number, event) in events.iter().enumerate() {
            if number % 50 == 49 {
                let scope = if number < 100 { Scope::User } else { Scope::Kernel(Some(Cpu(1))) };
                state.lost(scope, Timestamp::from_ns(event.0), Timestamp::from_ns(event.0 + 20), &mut notes);
            }
            state.event(&activity(event), &mut notes);
        }
        let end = events.iter().map(|event| event.0).max();
        state.finish(&mut notes);
        assert!(notes.ends.values().all(|to| Some(*to) <= end), "no state lasts past the end");
    }
}

/// Checks that the intervals of each LWP and user thread have no gaps; numbers may be reused.
#[derive(Default)]
struct Renumbered {
    ends: BTreeMap<(bool, usize), i64>,
}

impl Renumbered {
    fn add(&mut self, actor: (bool, usize), from: i64, to: i64) {
        assert!(from <= to);
        let last = self.ends.insert(actor, to);
        assert!(last.is_none_or(|last| last <= from), "{actor:?} does two things before {from}");
    }
}

impl Fold for Renumbered {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, from, to, .. } => self.lwp(lwp, from.as_ns(), to.as_ns()),
            Change::UserThreadDid { thread, from, to, .. } => {
                self.user_thread(thread, from.as_ns(), to.as_ns())
            }
            _ => {}
        }
    }
}

impl Renumbered {
    fn lwp(&mut self, lwp: &Lwp, from: i64, to: i64) {
        let gap = self.ends.get(&(false, lwp.serial.0)).is_some_and(|last| *last != from);
        assert!(!gap, "LWP {} has a gap before {from}", lwp.tid);
        self.add((false, lwp.serial.0), from, to);
    }

    fn user_thread(&mut self, thread: &UserThread, from: i64, to: i64) {
        self.add((true, thread.serial.0), from, to);
    }
}

#[test]
fn a_wake_while_it_runs_makes_a_user_thread_ready_when_it_stops() {
    let wake = Kind::UserThread(User::Wake { thread: Task(1) });
    let story = [
        (0, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (10, 1, 11, wake),
        (20, 0, 10, user_switch(1, 0, SwitchCause::Blocked)),
        (30, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (40, 0, 10, user_switch(1, 0, SwitchCause::Blocked)),
        (50, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (60, 0, 10, Kind::User),
    ];
    // The process is unknown: a thread that another LWP wakes may be another one, and it is unknown how long
    // it was blocked.
    assert_eq!(*fold(&story).of(Actor::Thread(1)), [(0, 60, Doing::Unknown)]);
    let mut events = vec![
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (0, 1, 11, Kind::Introduction { process: Pid(10), name: b"program" }),
    ];
    events.extend(story);
    let notes = fold(&events);
    // The second wake is missing: its time is unknown.
    assert_eq!(
        notes.of(Actor::Thread(1))[1..],
        [(20, 30, WOKEN), (30, 60, Doing::Unknown)],
        "no kernel event shows what its LWP does"
    );
    assert_eq!(notes.counts[&1], [3, 1, 0, 0]);
}

/// The ends of user threads, by their numbers.
#[derive(Default)]
struct Ended(Vec<Task>);

impl Fold for Ended {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::UserThreadEnds { thread } = change {
            self.0.push(thread.id);
        }
    }
}

/// Its last poll begins where events are missing: the exit ends it, and the switch that follows is its own.
#[test]
fn a_user_thread_that_has_exited_does_not_end_once_more() {
    let exit = Kind::UserThread(User::Exit { thread: Task(1) });
    let events = [
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, user_switch(1, 0, SwitchCause::Blocked)),
        (40, 0, 10, exit),
        (50, 0, 10, user_switch(1, 0, SwitchCause::Ended)),
        // Another one of that number.
        (60, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (70, 0, 10, user_switch(1, 0, SwitchCause::Ended)),
    ];
    let mut state = SuperTrace::default();
    let mut ended = Ended::default();
    events.iter().for_each(|event| state.event(&activity(event), &mut ended));
    state.finish(&mut ended);
    assert_eq!(ended.0, [Task(1), Task(1)]);
}

#[test]
fn a_user_thread_whose_wakes_are_never_recorded_waits_for_what_it_says() {
    let acquired = Kind::UserThread(User::Acquired);
    let events = [
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, Kind::UserThread(User::Wait { kind: MUTEX })),
        (30, 0, 10, user_switch(1, 0, SwitchCause::Blocked)),
        (60, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (65, 0, 10, acquired),
        (70, 0, 10, user_switch(1, 0, SwitchCause::Blocked)), // by what, it does not say
        (90, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (95, 0, 10, Kind::User),
    ];
    let notes = fold(&events);
    let spans = notes.of(Actor::Thread(1));
    assert!(spans.contains(&(30, 60, blocked(Some(MUTEX)))), "{spans:?}");
    assert!(spans.contains(&(60, 95, Doing::Unknown)), "{spans:?}");
}

#[test]
fn an_interrupt_without_its_begin_or_its_end_is_not_made_up() {
    let interrupts = |entry: bool, exit: bool| {
        let mut story = vec![
            (0, 0, 0, switch(0, 0, 10)),
            (10, 0, 10, Kind::SystemCall { call: READ }),
            (20, 0, 10, takes(Interrupt::Softirq)),
            (30, 0, 10, takes(Interrupt::Vector)), // within the softirq, and its end is missing
            (40, 0, 10, Kind::InterruptExit(Interrupt::Softirq)),
            (50, 0, 10, Kind::SystemCallEnd { call: READ }),
        ];
        story.retain(|event| (entry || event.0 != 20) && (exit || event.0 != 40));
        if !entry {
            story.retain(|event| event.0 != 30);
        }
        fold(&story).of(Actor::Lwp(10)).clone()
    };
    let read = runs(0, Mode::SystemCall(READ));
    let unknown = runs(0, Mode::Unknown);
    assert_eq!(
        interrupts(true, true),
        [(0, 10, unknown), (10, 20, read), (20, 40, runs(0, Mode::Interrupt(Some(IRQ)))), (40, 50, read)]
    );
    assert_eq!(interrupts(false, true), [(0, 40, unknown), (40, 50, read)]);
    assert_eq!(interrupts(true, false), [(0, 10, unknown), (10, 20, read), (20, 50, unknown)]);
}

/// The end of the vector is missing, and so is the beginning of the softirq that ends: it is no longer in the
/// vector.
#[test]
fn an_end_without_its_begin_ends_what_lies_within_it() {
    let story = [
        (0, 0, 0, switch(0, 0, 10)),
        (10, 0, 10, Kind::SystemCall { call: READ }),
        (30, 0, 10, takes(Interrupt::Vector)),
        (40, 0, 10, Kind::InterruptExit(Interrupt::Softirq)),
        (60, 1, 11, Kind::Waking { tid: Tid(12), name: b"other" }),
        (70, 0, 10, switch(10, SLEEPS, 0)),
    ];
    let read = Mode::SystemCall(READ);
    assert_eq!(
        *fold(&story).of(Actor::Lwp(10)),
        [
            (0, 10, runs(0, Mode::Unknown)),
            (10, 30, runs(0, read)),
            (30, 40, runs(0, Mode::Unknown)),
            (40, 70, runs(0, read)),
        ]
    );
}

#[test]
fn an_interrupt_that_cannot_lie_in_the_last_one_says_that_it_has_ended() {
    let story = [
        (0, 0, 0, switch(0, 0, 10)),
        (20, 0, 10, takes(Interrupt::Vector)),
        (40, 0, 10, takes(Interrupt::Vector)),
        (45, 0, 10, Kind::InterruptExit(Interrupt::Vector)),
    ];
    assert_eq!(
        *fold(&story).of(Actor::Lwp(10)),
        [(0, 40, runs(0, Mode::Unknown)), (40, 45, runs(0, Mode::Interrupt(Some(IRQ))))]
    );
}

#[test]
fn a_wait_for_a_lock_is_what_the_lwp_is_blocked_on() {
    let sleeps_and_continues = |at: i64| {
        [
            (at, 0, 10, switch(10, SLEEPS, 0)),
            (at + 10, 0, 0, Kind::Waking { tid: Tid(10), name: b"b" }),
            (at + 20, 0, 0, switch(0, 0, 10)),
        ]
    };
    let waits = |at: i64, on| (at, 0, 10, Kind::Waits { on });
    let first = [(0, 0, 0, switch(0, 0, 10)), waits(10, Some(MUTEX))];
    let call = [(15, 0, 10, Kind::SystemCall { call: FUTEX })];
    let second = [waits(50, None), (55, 0, 10, Kind::SystemCall { call: FUTEX })];
    let story = [&first[..], &call, &sleeps_and_continues(20), &second, &sleeps_and_continues(60)].concat();
    let notes = fold(&story);
    let of = |from: i64| {
        notes.of(Actor::Lwp(10)).iter().find(|(begin, ..)| *begin == from).map(|(.., doing)| *doing)
    };
    assert_eq!(of(20), Some(blocked(Some(MUTEX))));
    assert_eq!(of(60), Some(blocked(Some(FUTEX))));
}

#[test]
fn a_user_thread_goes_where_its_lwp_goes() {
    let story = [
        (0, 0, 0, switch(0, 0, 10)),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, switch(10, RUNNABLE, 0)),
        (30, 1, 0, switch(0, 0, 10)),
        (40, 1, 10, switch(10, RUNNABLE, 0)),
        (50, 0, 0, switch(0, 0, 10)),
        (60, 0, 10, Kind::User),
    ];
    assert_eq!(fold(&story).counts[&1], [1, 0, 0, 2]);
}

#[test]
fn a_user_thread_that_stops_on_another_lwp_did_not_run_where_it_was_thought_to() {
    let story = [
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (0, 1, 11, Kind::Introduction { process: Pid(10), name: b"program" }),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (30, 1, 11, user_switch(1, 0, SwitchCause::Blocked)),
        (50, 0, 10, user_switch(0, 2, SwitchCause::Unknown)),
        (60, 0, 10, user_switch(2, 0, SwitchCause::Blocked)),
    ];
    let notes = fold(&story);
    assert_eq!(*notes.of(Actor::Thread(1)), [(0, 30, Doing::Unknown), (30, 60, blocked(None))]);
    assert_eq!(*notes.of(Actor::Thread(2)), [(0, 60, Doing::Unknown)]);
}

/// Which LWPs the recording follows.
#[derive(Default)]
struct Followed(BTreeMap<i32, bool>);

impl Fold for Followed {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpEnds { lwp } = change {
            self.lwp_ends(lwp);
        }
    }
}

impl Followed {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.0.insert(lwp.tid.0, lwp.followed);
    }
}

#[test]
fn what_is_recorded_while_a_switch_is_made_is_no_sign_that_the_old_thread_runs() {
    let events = [
        (0, 0, 7, Kind::SystemCall { call: READ }),
        (10, 0, 7, switch(7, RUNNABLE, 5)),
        (20, 0, 5, switch(5, SLEEPS, 7)),
        // A lock that the kernel waited for, still in the name of the thread that it leaves.
        (21, 0, 5, Kind::Kernel),
        (22, 0, 5, Kind::Kernel),
        (30, 0, 7, Kind::SystemCallEnd { call: READ }),
        (40, 0, 7, switch(7, SLEEPS, 0)),
        (41, 0, 7, Kind::Kernel),
        (50, 0, 0, switch(0, 0, 7)),
        (60, 0, 7, Kind::SystemCall { call: READ }),
    ];
    let mut state = SuperTrace::default();
    let mut followed = Followed::default();
    events.iter().for_each(|event| state.event(&activity(event), &mut followed));
    assert!(!state.is_partial(), "no switch is missing");
    state.finish(&mut followed);
    assert_eq!(followed.0, BTreeMap::from([(5, false), (7, true)]));
    let notes = fold(&events);
    let running = |tid, time| matches!(notes.at(Actor::Lwp(tid), time), Some(Doing::Running { .. }));
    assert!(running(7, 22) && running(7, 35) && !running(7, 45) && !running(5, 25), "{:?}", notes.spans);
}

fn sample(user: bool, by_timer: bool) -> Kind<'static> {
    Kind::Sample { user, by_timer }
}

#[test]
fn a_sample_belongs_to_the_thread_that_its_timer_interrupted() {
    let read = (10, 0, 10, Kind::SystemCall { call: READ });
    let timer = Kind::InterruptEntry { kind: Interrupt::Vector, name: Name(8) };
    let vector = (20, 0, 10, timer);
    let softirq = (15, 0, 10, takes(Interrupt::Softirq));
    let runs = (0, 0, 0, switch(0, 0, 10));
    let mode = |events: &[Event], kind| place(events, (30, 0, 10, kind), |place| place.mode);
    assert_eq!(mode(&[runs, read, vector], sample(false, true)), Mode::SystemCall(READ));
    assert_eq!(
        mode(&[runs, read, vector], sample(true, true)),
        Mode::User,
        "the interrupted thread's mode applies"
    );
    assert_eq!(mode(&[runs, read, softirq, vector], sample(false, true)), Mode::Interrupt(Some(IRQ)));
    assert_eq!(
        mode(&[runs, read, vector], sample(false, false)),
        Mode::Interrupt(Some(Name(8))),
        "by a counter"
    );
    assert_eq!(mode(&[runs, (5, 0, 10, Kind::User)], sample(false, true)), Mode::Unknown);
}

#[test]
fn samples_change_no_threads_account() {
    let story = story();
    let whole = fold(&story);
    let with_sample = |event: &Event| {
        let (time, cpu, tid, _) = *event;
        // As if from a CPU and a thread that contradict the scheduler's events.
        [(time, cpu, tid, sample(true, true)), (time, 1 - cpu, 10, sample(false, true)), *event]
    };
    let sampled = fold(&story.iter().flat_map(with_sample).collect::<Vec<_>>());
    let spans = |notes: &Notes, tid| notes.spans.get(&Actor::Lwp(tid)).cloned();
    for tid in [10, 11] {
        assert_eq!(spans(&sampled, tid), spans(&whole, tid), "{tid}");
    }
}

#[test]
fn samples_give_names_where_nothing_else_does() {
    let name = |events: &[Event], tid: i32| {
        let mut state = SuperTrace::default();
        events.iter().for_each(|event| state.event(&activity(event), &mut ()));
        state.lwp(Tid(tid)).map(|lwp| (lwp.process, lwp.name.clone()))
    };
    let named = (0, 0, 10, Kind::Named { process: Pid(10), name: b"sh" });
    let made = (1, 0, 10, Kind::Made { child: Tid(11), process: Pid(11) });
    let of_child = (2, 1, 11, sample(true, true));
    assert_eq!(name(&[named, made], 11), None, "nothing shows that it is there");
    assert_eq!(name(&[named, made, of_child], 11), Some((Some(Pid(11)), "sh".to_owned())));
    let executed = (3, 1, 11, Kind::Named { process: Pid(11), name: b"make" });
    assert_eq!(name(&[named, made, of_child, executed], 11), Some((Some(Pid(11)), "make".to_owned())));
}
