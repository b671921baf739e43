//! The task analysis on hand-made events whose answer is known.

mod activity;

use activity::activity;
use tracewing_analysis::{Task, Tasks, Thresholds};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{Kind, Name, SuperTrace, SwitchCause, UserThreadKind as User};
use tracewing_units::{Duration, Pid, Tid, Timestamp};
use tracewing_units::{Origin, Task as Number};

const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const READ: Name = Name(0);
const MUTEX: Name = Name(1);
const MS: i64 = 1_000_000;

/// When, in whatever unit, by which thread; all on one CPU.
type Event = (i64, i32, Kind<'static>);

fn fold(events: &[Event], unit: i64, by_name: bool) -> Vec<Task> {
    let mut state = SuperTrace::default();
    let mut tasks = Tasks::new(Thresholds::default(), by_name);
    for (time, tid, kind) in events {
        let process = (*tid != 0).then_some(10);
        let event = activity(time * unit, 0, *tid, process, *kind);
        state.event(&event, &mut tasks);
    }
    state.finish(&mut tasks);
    tasks.finish()
}

fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch {
        prev: Tid(prev),
        prev_name: b"a",
        prev_state: TaskState(prev_state),
        next: Tid(next),
        next_name: b"b",
    }
}

fn runs(thread: u64) -> Kind<'static> {
    Kind::UserThread(User::Switch { prev: Number(0), next: Number(thread), cause: SwitchCause::Unknown })
}

fn stops(thread: u64, cause: SwitchCause) -> Kind<'static> {
    Kind::UserThread(User::Switch { prev: Number(thread), next: Number(0), cause })
}

fn create(thread: u64) -> Kind<'static> {
    Kind::UserThread(User::Create { thread: Number(thread), origin: Origin(1) })
}

fn work() -> Kind<'static> {
    Kind::UserThread(User::Origin { origin: Origin(1), name: b"work", file: b"", line: 0 })
}

fn wake(thread: u64) -> Kind<'static> {
    Kind::UserThread(User::Wake { thread: Number(thread) })
}

/// A poll that sleeps in a system call and is preempted, then waits for a mutex; another one that runs long.
fn story() -> Vec<Event> {
    vec![
        (0, 0, switch(0, 0, 10)),
        (1, 10, work()),
        (1, 10, create(1)),
        (3, 10, runs(1)),
        (5, 10, Kind::SystemCall { call: READ }),
        (6, 10, switch(10, SLEEPS, 0)),
        (9, 0, Kind::Waking { tid: Tid(10), name: b"b" }),
        (10, 0, switch(0, 0, 10)),
        (11, 10, Kind::SystemCallEnd { call: READ }),
        (12, 10, switch(10, RUNNABLE, 11)),
        (14, 11, switch(11, SLEEPS, 10)),
        (15, 10, Kind::PageFault { user: true, high: true }),
        (16, 10, Kind::UserThread(User::Wait { kind: MUTEX })),
        (17, 10, stops(1, SwitchCause::Blocked)),
        (20, 10, wake(1)),
        (24, 10, runs(1)),
        (36, 10, stops(1, SwitchCause::Ended)),
    ]
}

#[test]
fn a_poll_is_what_its_worker_did() {
    let tasks = fold(&story(), MS, false);
    let expected = Task {
        process: Some(Pid(10)),
        task: Some(Number(1)),
        tasks: 1,
        name: "work".to_owned(),
        polls: 2,
        busy_ns: Duration::from_ns(26),
        scheduled_ns: Duration::from_ns(2 + 4),
        idle_ns: Duration::from_ns(3),
        longest_ns: Duration::from_ns(14),
        longest_begin: Some(Timestamp::from_ns(3 * MS)),
        running_ns: Duration::from_ns(3 + 2 + 3 + 12),
        preempted_ns: Duration::from_ns(1 + 2),
        system_ns: Duration::from_ns(1 + 3 + 1),
        slept_ns: Duration::from_ns(3),
        longest_sleep_ns: Duration::from_ns(3),
        slept_on: Some(READ),
        page_faults: 1,
        delays: 2,
        delay_ns: Duration::from_ns(6),
        max_delay_ns: Duration::from_ns(4),
        max_delay_end: Some(Timestamp::from_ns(24 * MS)),
        long_polls: 1,
        long_ns: Duration::from_ns(12),
        blocking_polls: 1,
        ..Task::default()
    };
    let in_ms = |time: Duration| time * MS as u64;
    let expected = Task {
        busy_ns: Duration::from_ns(in_ms(expected.busy_ns).as_ns()),
        scheduled_ns: Duration::from_ns(in_ms(expected.scheduled_ns).as_ns()),
        idle_ns: Duration::from_ns(in_ms(expected.idle_ns).as_ns()),
        longest_ns: Duration::from_ns(in_ms(expected.longest_ns).as_ns()),
        running_ns: Duration::from_ns(in_ms(expected.running_ns).as_ns()),
        preempted_ns: Duration::from_ns(in_ms(expected.preempted_ns).as_ns()),
        system_ns: Duration::from_ns(in_ms(expected.system_ns).as_ns()),
        slept_ns: Duration::from_ns(in_ms(expected.slept_ns).as_ns()),
        longest_sleep_ns: Duration::from_ns(in_ms(expected.longest_sleep_ns).as_ns()),
        delay_ns: Duration::from_ns(in_ms(expected.delay_ns).as_ns()),
        max_delay_ns: Duration::from_ns(in_ms(expected.max_delay_ns).as_ns()),
        long_ns: Duration::from_ns(in_ms(expected.long_ns).as_ns()),
        ..expected
    };
    assert_eq!(tasks, [expected]);
}

#[test]
fn polls_are_known_without_the_kernel() {
    let is_of_program = |event: &&Event| matches!(event.2, Kind::UserThread(_));
    let events: Vec<Event> = story().iter().filter(is_of_program).copied().collect();
    let tasks = fold(&events, MS, false);
    let [task] = &tasks[..] else { panic!("{tasks:?}") };
    let ms = |ns: u64| ns / MS as u64;
    let ms = |time: Duration| ms(time.as_ns());
    assert_eq!((task.polls, ms(task.busy_ns), ms(task.scheduled_ns), ms(task.idle_ns)), (2, 26, 6, 3));
    assert_eq!(
        (task.running_ns.as_ns(), task.preempted_ns.as_ns(), task.blocking_polls, task.long_polls),
        (0, 0, 0, 0)
    );
}

#[test]
fn a_wake_without_effect_is_spurious() {
    let wait = Kind::UserThread(User::Wait { kind: MUTEX });
    let poll = |at: i64, within: &[Kind<'static>], cause| {
        let mut events = vec![(at, 10, wake(1)), (at + 1, 10, runs(1))];
        events.extend(within.iter().zip(at + 2..).map(|(kind, at)| (at, 10, *kind)));
        events.push((at + 8, 10, stops(1, cause)));
        events
    };
    let vain = |within: &[Kind<'static>], cause, unit| {
        let mut events = vec![(0, 10, create(1))];
        events.extend(poll(10, &[], SwitchCause::Blocked)); // the first one
        events.extend(poll(20, within, cause));
        fold(&events, unit, false)[0].vain_polls
    };
    assert_eq!(vain(&[], SwitchCause::Blocked, 1000), 1);
    assert_eq!(vain(&[wait], SwitchCause::Blocked, 1000), 1);
    assert_eq!(vain(&[], SwitchCause::Yielded, 1000), 0);
    assert_eq!(vain(&[], SwitchCause::Blocked, 10_000), 0, "it ran for long");
    assert_eq!(vain(&[Kind::User], SwitchCause::Blocked, 1000), 0);
    assert_eq!(vain(&[wake(2)], SwitchCause::Blocked, 1000), 0);
    assert_eq!(vain(&[wait, Kind::UserThread(User::Acquired)], SwitchCause::Blocked, 1000), 0);
    let call = [Kind::SystemCall { call: READ }, Kind::SystemCallEnd { call: READ }];
    assert_eq!(vain(&call, SwitchCause::Blocked, 1000), 0);
}

#[test]
fn a_poll_continues_when_a_nested_one_ends() {
    let within = |prev, next, cause| Kind::UserThread(User::Switch { prev, next, cause });
    let events = [
        (0, 10, runs(1)),
        (5, 10, within(Number(1), Number(2), SwitchCause::Nested)),
        (25, 10, within(Number(2), Number(1), SwitchCause::Blocked)),
        (30, 10, stops(1, SwitchCause::Blocked)),
    ];
    let tasks = fold(&events, 1, false);
    let reported: Vec<_> = tasks
        .iter()
        .map(|task| {
            let times = [task.busy_ns, task.nested_ns, task.longest_ns].map(Duration::as_ns);
            (task.task, task.polls, times, task.longest_begin.map(Timestamp::as_ns))
        })
        .collect();
    assert_eq!(
        reported,
        [(Some(Number(2)), 1, [20, 0, 20], Some(5)), (Some(Number(1)), 1, [10, 20, 10], Some(0))]
    );
}

#[test]
fn tasks_of_one_name_make_one_row() {
    let mut events = vec![(0, 10, work()), (0, 10, create(1)), (0, 10, create(2))];
    for (at, thread) in [(10, 1), (20, 2), (40, 1)] {
        events.push((at, 10, runs(thread)));
        events.push((at + thread as i64, 10, stops(thread, SwitchCause::Yielded)));
    }
    let tasks = fold(&events, 1, true);
    let [sum] = &tasks[..] else { panic!("{tasks:?}") };
    assert_eq!(
        (sum.task, sum.tasks, sum.name.as_str(), sum.polls, sum.busy_ns.as_ns()),
        (None, 2, "work", 3, 4)
    );
    assert_eq!((sum.longest_ns.as_ns(), sum.max_delay_ns.as_ns(), sum.delays), (2, 29, 3));
    assert_eq!(sum.longest_begin, Some(Timestamp::from_ns(20)));
}

#[test]
fn a_sum_that_no_number_holds_is_the_greatest_and_not_a_small_one() {
    let begin = -9_000_000_000_000_000_000;
    let mut events = vec![(begin, 10, work())];
    events.extend((1..4).map(|thread| (begin, 10, create(thread))));
    events.extend((1..4).map(|thread| (-begin, 10, runs(thread))));
    let tasks = fold(&events, 1, true);
    let [sum] = &tasks[..] else { panic!("{tasks:?}") };
    assert_eq!(sum.scheduled_ns, Duration::MAX);
}
