//! Critical paths on hand-made events whose answer is known, and on any events: their steps are the whole
//! time.

mod activity;

use activity::activity;
use proptest::prelude::*;
use std::io::Cursor;
use tracewing_analysis::{CriticalPath, CriticalPaths, Names, NoPath, Target};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Coverage, Interrupt, Interrupts, Kind, Name, Scope, SuperTrace, SwitchCause, UserThreadKind,
};
use tracewing_trace::{Filter, ThreadPattern};
use tracewing_units::{Duration, Origin, Task, Tid, Timestamp};

const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const READ: Name = Name(0);
const TIMER: Name = Name(1);
const MUTEX: Name = Name(2);
const NET_RX: Name = Name(3);
const SENDTO: Name = Name(4);

type Event = (i64, u32, i32, Kind<'static>);

/// A machine that is recorded: the state, and the analysis.
struct Machine {
    state: SuperTrace,
    paths: CriticalPaths<Cursor<Vec<u8>>>,
}

impl Machine {
    fn new(target: Target) -> Self {
        Machine { state: SuperTrace::default(), paths: CriticalPaths::new(target, Cursor::default()) }
    }

    fn event(&mut self, (time, cpu, tid, kind): &Event) {
        let event = activity(*time, *cpu, *tid, Some(1), *kind);
        self.state.event(&event, &mut self.paths);
    }

    fn path(mut self, from: i64, to: i64) -> Result<CriticalPath, NoPath> {
        self.state.finish(&mut self.paths);
        self.paths.path(Some(Timestamp::from_ns(from)), Some(Timestamp::from_ns(to)), &names(), &mut || true)
    }
}

fn path_of(events: &[Event], target: Target, from: i64, to: i64) -> Result<CriticalPath, NoPath> {
    let mut machine = Machine::new(target);
    events.iter().for_each(|event| machine.event(event));
    machine.path(from, to)
}

fn lwp(tid: i32) -> Target {
    Target::new(&Filter { tids: vec![Tid(tid)], ..Filter::default() }).unwrap()
}

fn user_thread(pattern: &str) -> Target {
    Target::new(&Filter { threads: vec![ThreadPattern::new(pattern)], ..Filter::default() }).unwrap()
}

fn names() -> Names {
    let mut names = Names::default();
    for (name, text) in
        [(READ, "read"), (TIMER, "local_timer"), (MUTEX, "mutex"), (NET_RX, "NET_RX"), (SENDTO, "sendto")]
    {
        names.learn(name, text);
    }
    names
}

fn switch(time: i64, cpu: u32, prev: i32, prev_state: i64, next: i32) -> Event {
    (
        time,
        cpu,
        prev,
        Kind::Switch {
            prev: Tid(prev),
            prev_name: b"lwp",
            prev_state: TaskState(prev_state),
            next: Tid(next),
            next_name: b"lwp",
        },
    )
}

fn waking(time: i64, cpu: u32, by: i32, tid: i32) -> Event {
    (time, cpu, by, Kind::Waking { tid: Tid(tid), name: b"lwp" })
}

fn call(time: i64, cpu: u32, tid: i32) -> Event {
    (time, cpu, tid, Kind::SystemCall { call: READ })
}

fn task(time: i64, cpu: u32, tid: i32, kind: UserThreadKind<'static>) -> Event {
    (time, cpu, tid, Kind::UserThread(kind))
}

fn turns(time: i64, cpu: u32, tid: i32, prev: u64, next: u64, cause: SwitchCause) -> Event {
    task(time, cpu, tid, UserThreadKind::Switch { prev: Task(prev), next: Task(next), cause })
}

/// A path's steps as lines: from, to, party, activity, reason, and for which party.
fn steps(path: &CriticalPath) -> Vec<String> {
    let step = |step: &tracewing_analysis::Step| {
        let waiter = step.waiter.as_ref().map(|waiter| format!(" {waiter}")).unwrap_or_default();
        format!(
            "{}-{} {}: {}, {}{waiter}",
            step.from_ns.as_ns(),
            step.to_ns.as_ns(),
            step.actor,
            step.what,
            step.why
        )
    };
    path.steps.iter().map(step).collect()
}

#[track_caller]
fn assert_covers(path: &CriticalPath, from: i64, to: i64) {
    let (from, to) = (Timestamp::from_ns(from), Timestamp::from_ns(to));
    let mut time = from;
    for step in &path.steps {
        assert!(step.from_ns == time && step.to_ns > time, "a gap or a step back: {path:#?}");
        time = step.to_ns;
    }
    assert_eq!(time, to);
    for sums in [&path.by_actor, &path.by_what] {
        assert_eq!(sums.iter().map(|(_, ns)| *ns).sum::<Duration>(), to - from);
    }
}

#[test]
fn a_block_is_the_wakers_time_and_a_wait_that_of_the_running_thread() {
    let events = [
        switch(0, 0, 0, 0, 7),
        switch(0, 1, 0, 0, 9),
        (50, 0, 7, Kind::User),
        (60, 1, 9, Kind::User),
        call(90, 0, 7),
        switch(100, 0, 7, SLEEPS, 5),
        waking(150, 1, 9, 7),
        (152, 0, 5, Kind::User),
        switch(160, 0, 5, RUNNABLE, 7),
        switch(200, 0, 7, SLEEPS, 0),
    ];
    let path = path_of(&events, lwp(7), 0, 200).unwrap();
    assert_eq!(
        steps(&path),
        [
            "0-50 thread 7 (lwp): running, itself",
            "50-90 thread 7 (lwp): user, itself",
            "90-100 thread 7 (lwp): system call read, itself",
            "100-150 thread 9 (lwp): user, wakes thread 7 (lwp)",
            "150-152 thread 5 (lwp): running, has the CPU for thread 7 (lwp)",
            "152-160 thread 5 (lwp): user, has the CPU for thread 7 (lwp)",
            "160-200 thread 7 (lwp): system call read, itself",
        ]
    );
    assert_covers(&path, 0, 200);
}

#[test]
fn a_thread_that_may_have_been_interrupted_is_not_on_the_path() {
    let mut machine = Machine::new(lwp(7));
    let coverage = Coverage { interrupts: Interrupts::OfFollowed, ..Coverage::default() };
    machine.state = SuperTrace::new(coverage);
    let events = [
        switch(0, 0, 0, 0, 7),
        call(10, 0, 7),
        switch(20, 0, 7, SLEEPS, 0),
        waking(50, 1, 9, 7), // the recording does not follow 9
        switch(55, 0, 0, 0, 7),
        switch(60, 0, 7, SLEEPS, 0),
        (65, 1, 9, Kind::User), // now it does
        waking(70, 1, 9, 7),
        switch(75, 0, 0, 0, 7),
        switch(80, 0, 7, SLEEPS, 0),
    ];
    events.iter().for_each(|event| machine.event(event));
    let path = machine.path(10, 80).unwrap();
    assert_covers(&path, 10, 80);
    let steps = steps(&path);
    assert_eq!(steps[1], "20-50 thread 7 (lwp): blocked on read, itself");
    let woke = |step: &String| step.contains("thread 9") && step.ends_with("wakes thread 7 (lwp)");
    assert!(steps[2..].iter().any(woke), "{steps:#?}");
}

/// 9 sends what 7 waits for; `raised` is what asks for the softirq that delivers it.
fn delivered(raised: &[Event]) -> Vec<String> {
    let mut events = vec![
        switch(0, 0, 0, 0, 7),
        switch(0, 1, 0, 0, 9),
        (1, 1, 9, Kind::User),
        call(5, 0, 7),
        switch(10, 0, 7, SLEEPS, 0),
        (40, 1, 9, Kind::SystemCall { call: SENDTO }),
    ];
    events.extend_from_slice(raised);
    events.extend([
        (50, 1, 9, Kind::InterruptEntry { kind: Interrupt::Softirq, name: NET_RX }),
        waking(55, 1, 9, 7),
        (60, 1, 9, Kind::InterruptExit(Interrupt::Softirq)),
        switch(70, 0, 0, 0, 7),
        switch(80, 0, 7, SLEEPS, 0),
    ]);
    let path = path_of(&events, lwp(7), 10, 80).unwrap();
    assert_covers(&path, 10, 80);
    steps(&path)[..steps(&path).len() - 2].to_vec()
}

#[test]
fn a_path_continues_with_the_thread_that_raised_the_waking_softirq() {
    let raise = |time| (time, 1, 9, Kind::Raise { name: NET_RX });
    assert_eq!(
        delivered(&[raise(45)]),
        [
            "10-40 thread 9 (lwp): user, wakes via NET_RX thread 7 (lwp)",
            "40-50 thread 9 (lwp): system call sendto, wakes via NET_RX thread 7 (lwp)",
            "50-55 interrupt NET_RX: interrupt, interrupts thread 9 (lwp)",
        ]
    );
    // A device asked for it, before or instead of the thread.
    let device = |inner: &[Event]| {
        let entry = (41, 1, 9, Kind::InterruptEntry { kind: Interrupt::Handler, name: TIMER });
        let exit = (43, 1, 9, Kind::InterruptExit(Interrupt::Handler));
        [&[entry, raise(42), exit], inner].concat()
    };
    let ends_there = ["10-55 interrupt NET_RX: blocked on read, wakes thread 7 (lwp)"];
    assert_eq!(delivered(&device(&[])), ends_there);
    assert_eq!(delivered(&device(&[raise(45)])), ends_there);
    assert_eq!(delivered(&[]), ends_there);
    // It did not run then, but runs now: the first follower is irrelevant.
    let ran = [
        raise(41),
        raise(42),
        (43, 1, 9, Kind::InterruptEntry { kind: Interrupt::Softirq, name: NET_RX }),
        (44, 1, 9, Kind::InterruptExit(Interrupt::Softirq)),
    ];
    assert_eq!(delivered(&ran), ends_there);
}

#[test]
fn a_chain_of_wakes_is_followed_only_as_far_as_the_first_one_waited() {
    let events = [
        switch(0, 0, 0, 0, 1),
        switch(0, 1, 0, 0, 2),
        switch(0, 2, 0, 0, 3),
        switch(10, 1, 2, SLEEPS, 0), // 2 waits for 3
        switch(20, 0, 1, SLEEPS, 0), // 1 waits for 2
        waking(50, 2, 3, 2),
        switch(50, 1, 0, 0, 2),
        waking(70, 1, 2, 1),
        switch(70, 0, 0, 0, 1),
        switch(80, 0, 1, SLEEPS, 0),
    ];
    let path = path_of(&events, lwp(1), 0, 80).unwrap();
    assert_eq!(
        steps(&path),
        [
            "0-20 thread 1 (lwp): running, itself",
            "20-50 thread 3 (lwp): running, wakes thread 2 (lwp)",
            "50-70 thread 2 (lwp): running, wakes thread 1 (lwp)",
            "70-80 thread 1 (lwp): running, itself",
        ]
    );
    // A block that ends after the requested time has no waker in it.
    let path = path_of(&events, lwp(1), 5, 40).unwrap();
    let expected = ["5-20 thread 1 (lwp): running, itself", "20-40 thread 1 (lwp): blocked, itself"];
    assert_eq!(steps(&path), expected);
}

#[test]
fn an_interrupt_ends_a_way() {
    let timer = Kind::InterruptEntry { kind: Interrupt::Vector, name: TIMER };
    let events = [
        switch(0, 0, 0, 0, 7),
        call(5, 0, 7),
        switch(10, 0, 7, SLEEPS, 9),
        (20, 0, 9, timer),
        waking(25, 0, 9, 7),
        (30, 0, 9, Kind::InterruptExit(Interrupt::Vector)),
        switch(40, 0, 9, RUNNABLE, 7),
        (50, 0, 7, timer),
        (55, 0, 7, Kind::InterruptExit(Interrupt::Vector)),
        switch(60, 0, 7, SLEEPS, 0),
    ];
    let path = path_of(&events, lwp(7), 0, 60).unwrap();
    assert_eq!(
        steps(&path),
        [
            "0-5 thread 7 (lwp): running, itself",
            "5-10 thread 7 (lwp): system call read, itself",
            "10-25 interrupt local_timer: blocked on read, wakes thread 7 (lwp)",
            "25-30 interrupt local_timer: interrupt, has the CPU for thread 7 (lwp)",
            "30-40 thread 9 (lwp): running, has the CPU for thread 7 (lwp)",
            "40-50 thread 7 (lwp): system call read, itself",
            "50-55 interrupt local_timer: interrupt, interrupts thread 7 (lwp)",
            "55-60 thread 7 (lwp): system call read, itself",
        ]
    );
}

#[test]
fn a_task_waits_for_its_waker_and_for_the_tasks_before_it() {
    use SwitchCause::{Blocked, Ended, Unknown, Yielded};
    let origin = |time, number, name| {
        task(time, 0, 7, UserThreadKind::Origin { origin: Origin(number), name, file: b"", line: 0 })
    };
    let create =
        |time, thread, number| task(time, 0, 7, UserThreadKind::Create { thread, origin: Origin(number) });
    let events = [
        switch(0, 0, 0, 0, 7),
        (0, 0, 7, Kind::User),
        origin(5, 0xa, &b"work"[..]),
        create(5, Task(1), 0xa),
        turns(5, 0, 7, 0, 1, Unknown),
        origin(10, 0xd, b"daemon"),
        create(10, Task(2), 0xd), // by work
        turns(20, 0, 7, 1, 0, Yielded),
        turns(20, 0, 7, 0, 2, Unknown),
        task(28, 0, 7, UserThreadKind::Wait { kind: MUTEX }),
        turns(30, 0, 7, 2, 0, Blocked),
        turns(35, 0, 7, 0, 1, Unknown),
        task(50, 0, 7, UserThreadKind::Wake { thread: Task(2) }),
        turns(60, 0, 7, 1, 0, Yielded),
        turns(60, 0, 7, 0, 2, Unknown),
        turns(80, 0, 7, 2, 0, Ended),
        switch(90, 0, 7, SLEEPS, 0),
    ];
    let path = path_of(&events, user_thread("d*"), 0, 80).unwrap();
    assert_eq!(path.target.to_string(), "task 2 (daemon)");
    assert_eq!(
        steps(&path),
        [
            "0-5 thread 7 (lwp): user, creates task 1 (work)",
            "5-10 task 1 (work): user, creates task 2 (daemon)",
            "10-20 task 1 (work): user, has the thread for task 2 (daemon)",
            "20-30 task 2 (daemon): user, itself",
            "30-35 thread 7 (lwp): user, has the thread for task 1 (work)",
            "35-50 task 1 (work): user, wakes task 2 (daemon)",
            "50-60 task 1 (work): user, has the thread for task 2 (daemon)",
            "60-80 task 2 (daemon): user, itself",
        ]
    );
    assert_eq!(path.by_actor[0], ("task 1 (work)".to_owned(), Duration::from_ns(40)));
    assert_covers(&path, 0, 80);
}

#[test]
fn the_subject_must_be_clear() {
    let create = |thread| task(5, 0, 7, UserThreadKind::Create { thread, origin: Origin(1) });
    let origin =
        task(5, 0, 7, UserThreadKind::Origin { origin: Origin(1), name: b"work", file: b"", line: 0 });
    let events = [switch(0, 0, 0, 0, 7), origin, create(Task(1)), create(Task(2)), (9, 0, 7, Kind::User)];
    let fails = |target| path_of(&events, target, 0, 9).unwrap_err();
    assert!(matches!(fails(lwp(8)), NoPath::Missing(what) if what == "thread 8"));
    assert!(matches!(fails(user_thread("play")), NoPath::Missing(what) if what == "the requested task"));
    assert_eq!(fails(user_thread("work")).to_string(), "the task is ambiguous: 1/1 work, 1/2 work");
    assert!(path_of(&events, user_thread("1/2"), 0, 9).is_ok());
    assert!(matches!(path_of(&events, lwp(7), 9, 9), Err(NoPath::Empty)));
}

/// Any event, most of them in contradiction to each other.
fn any_event() -> impl Strategy<Value = (i64, u32, i32, Kind<'static>)> {
    let tid = || 0..4_i32;
    let thread = || 0..4_u64;
    let cause = prop_oneof![
        Just(SwitchCause::Unknown),
        Just(SwitchCause::Ended),
        Just(SwitchCause::Blocked),
        Just(SwitchCause::Yielded),
        Just(SwitchCause::Nested),
    ];
    let state = prop_oneof![Just(SLEEPS), Just(RUNNABLE), Just(0x20)];
    let user = prop_oneof![
        thread().prop_map(|thread| UserThreadKind::Create { thread: Task(thread), origin: Origin(1) }),
        thread().prop_map(|thread| UserThreadKind::Wake { thread: Task(thread) }),
        thread().prop_map(|thread| UserThreadKind::Exit { thread: Task(thread) }),
        (thread(), thread(), cause).prop_map(|(prev, next, cause)| UserThreadKind::Switch {
            prev: Task(prev),
            next: Task(next),
            cause
        }),
    ];
    let kind = prop_oneof![
        4 => (tid(), state, tid()).prop_map(|(prev, prev_state, next)| Kind::Switch {
            prev: Tid(prev),
            prev_name: b"lwp",
            prev_state: TaskState(prev_state),
            next: Tid(next),
            next_name: b"lwp",
        }),
        2 => tid().prop_map(|tid| Kind::Waking { tid: Tid(tid), name: b"lwp" }),
        1 => tid().prop_map(|tid| Kind::Wakeup { tid: Tid(tid), name: b"lwp" }),
        1 => tid().prop_map(|child| Kind::Fork { child: Tid(child), name: b"lwp" }),
        1 => Just(Kind::SystemCall { call: READ }),
        1 => Just(Kind::InterruptEntry { kind: Interrupt::Vector, name: TIMER }),
        1 => Just(Kind::InterruptExit(Interrupt::Vector)),
        4 => user.prop_map(Kind::UserThread),
    ];
    (0..3_i64, 0..2_u32, tid(), kind)
}

proptest! {
    #[test]
    fn the_steps_of_any_path_are_the_whole_time(
        events in prop::collection::vec(any_event(), 1..80),
        loss in prop::option::of((0..80_i64, 0..20_i64)),
        (from, length) in (-5..100_i64, 1..100_i64),
    ) {
        let lwps = (1..4).map(lwp);
        let tasks = (0..4).map(|id| user_thread(&format!("1/{id}")));
        for target in lwps.chain(tasks) {
            let mut machine = Machine::new(target);
            let mut now = 0;
            for (step, cpu, tid, kind) in &events {
                now += step;
                machine.event(&(now, *cpu, *tid, *kind));
                if let Some((at, for_ns)) = loss.filter(|(at, _)| *at == now) {
                    machine.state.lost(Scope::Kernel(None), Timestamp::from_ns(at), Timestamp::from_ns(at + for_ns), &mut machine.paths);
                    machine.state.lost(Scope::User, Timestamp::from_ns(at), Timestamp::from_ns(at + for_ns), &mut machine.paths);
                }
            }
            if let Ok(path) = machine.path(from, from + length) {
                assert_covers(&path, from, from + length);
            }
        }
    }
}
