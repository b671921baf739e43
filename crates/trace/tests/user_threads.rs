//! User threads of which events are missing.

use tracewing_trace::super_trace::{
    Activity, Change, Context, Coverage, Doing, Fold, Kind, Lwp, Name, Scope, SuperTrace, SwitchCause,
    UserThread, UserThreadKind as User,
};
use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

/// What each did, and how long.
#[derive(Default)]
struct Times(Vec<(u64, Doing, i64)>);

impl Fold for Times {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::UserThreadDid { thread, doing, from, to } = change {
            self.user_thread(thread, doing, from.as_ns(), to.as_ns());
        }
    }
}

impl Times {
    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        if to > from {
            self.0.push((thread.id.0, doing, to - from));
        }
    }
}

/// Two are created by an LWP; the first runs to its end at once, the second does not appear again.
const EVENTS: [(i64, User<'static>); 4] = [
    (10, User::Create { thread: Task(1), origin: Origin(1) }),
    (20, User::Switch { prev: Task(0), next: Task(1), cause: SwitchCause::Unknown }),
    (30, User::Switch { prev: Task(1), next: Task(0), cause: SwitchCause::Ended }),
    (40, User::Create { thread: Task(2), origin: Origin(1) }),
];

fn follow(state: SuperTrace, loss: Option<(i64, i64)>) -> Vec<(u64, Doing, i64)> {
    follow_events(state, loss, &EVENTS)
}

fn follow_events(
    mut state: SuperTrace,
    loss: Option<(i64, i64)>,
    events: &[(i64, User<'static>)],
) -> Vec<(u64, Doing, i64)> {
    let mut times = Times::default();
    let event = |time, kind| Activity {
        time,
        cpu: Some(Cpu(0)),
        tid: Some(Tid(7)),
        process: Some(Pid(7)),
        context: Context::Unknown,
        kind,
    };
    state.event(
        &event(Timestamp::ORIGIN, Kind::Introduction { process: Pid(7), name: b"program" }),
        &mut times,
    );
    if let Some((from, to)) = loss {
        state.lost(Scope::User, Timestamp::from_ns(from), Timestamp::from_ns(to), &mut times);
    }
    for (time, kind) in events {
        state.event(&event(Timestamp::from_ns(*time), Kind::UserThread(*kind)), &mut times);
    }
    state.event(&event(Timestamp::from_ns(100), Kind::User), &mut times);
    let has_ended =
        events.iter().any(|(_, kind)| matches!(kind, User::Switch { cause: SwitchCause::Ended, .. }));
    assert_eq!(state.user_thread(Some(Pid(7)), Tid(7), Task(1)).is_none(), has_ended);
    state.finish(&mut times);
    times.0
}

const READY: Doing = Doing::Runnable { preempted: false };

#[test]
fn a_created_task_is_ready() {
    assert_eq!(follow(SuperTrace::default(), None), [(1, READY, 10), (2, READY, 60)]);
}

#[test]
fn a_task_created_while_events_are_missing_may_have_run() {
    assert_eq!(
        follow(SuperTrace::default(), Some((1, 50))),
        [(1, Doing::Unknown, 20), (2, Doing::Unknown, 60)]
    );
}

#[test]
fn without_switches_no_task_is_reported_as_ready() {
    let coverage = Coverage { user_switches: false, ..Coverage::default() };
    let times = follow(SuperTrace::new(coverage), None);
    assert!(
        times.contains(&(2, Doing::Unknown, 60)) && times.iter().all(|(_, doing, _)| *doing != READY),
        "{times:?}"
    );
}

/// A task that runs from 20 to 30 and, if it says so, begins to wait for something; and again from 50 to 60,
/// if it does so.
fn polled(cause: SwitchCause, waits: bool, again: bool) -> Vec<(u64, Doing, i64)> {
    let run = |time| (time, User::Switch { prev: Task(0), next: Task(1), cause: SwitchCause::Unknown });
    let stop = |time| (time, User::Switch { prev: Task(1), next: Task(0), cause });
    let wait = waits.then_some((25, User::Wait { kind: WAITED_FOR }));
    let created = (10, User::Create { thread: Task(1), origin: Origin(1) });
    let mut events: Vec<_> = [created, run(20)].into_iter().chain(wait).collect();
    events.push(stop(30));
    if again {
        events.extend([run(50), stop(60)]);
    }
    follow_events(SuperTrace::default(), None, &events)
}

const WAITED_FOR: Name = Name(3);

/// Tokio's hooks report polls and no wakes: after a poll a task may be blocked or ready, until the next poll
/// or the end of the recording.
#[test]
fn after_a_poll_that_only_hooks_report_a_task_is_blocked_or_ready() {
    use Doing::{Blocked, Unknown};
    let pending = |waits, again| polled(SwitchCause::Pending, waits, again);
    assert_eq!(pending(false, false), [(1, READY, 10), (1, Unknown, 70)]);
    assert_eq!(pending(false, true), [(1, READY, 10), (1, Unknown, 20), (1, Unknown, 40)]);
    assert_eq!(pending(true, false), [(1, READY, 10), (1, Blocked { on: Some(WAITED_FOR) }, 70)]);
}

/// One that runs again without a wake has none in the recording: it may be ready later, too.
#[test]
fn a_task_whose_wakes_are_not_recorded_is_not_known_to_be_blocked_at_the_end() {
    use Doing::{Blocked, Unknown};
    let blocked = |again| polled(SwitchCause::Blocked, false, again);
    assert_eq!(blocked(false), [(1, READY, 10), (1, Blocked { on: None }, 70)]);
    let times = blocked(true);
    assert_eq!(times.iter().filter(|(_, doing, _)| *doing == Unknown).map(|time| time.2).sum::<i64>(), 60);
    assert!(times.iter().all(|(_, doing, ns)| !matches!(doing, Blocked { .. }) || *ns == 0), "{times:?}");
}

/// Of one that says what it waits for, that is known until the next poll.
#[test]
fn where_no_wakes_are_recorded_a_task_is_blocked_only_on_what_it_names() {
    use Doing::{Blocked, Unknown};
    let runs = |next| User::Switch { prev: Task(0), next: Task(next), cause: SwitchCause::Unknown };
    let stops = |prev| User::Switch { prev: Task(prev), next: Task(0), cause: SwitchCause::Blocked };
    let created = |thread| User::Create { thread: Task(thread), origin: Origin(1) };
    let events = [
        (10, created(1)),
        (10, created(2)),
        (10, runs(1)),
        (15, User::Wait { kind: WAITED_FOR }),
        (20, stops(1)),
        (20, runs(2)),
        (30, stops(2)),
        (60, runs(1)),
        (70, stops(1)),
    ];
    let times = |user_wakes| {
        let coverage = Coverage { user_wakes, ..Coverage::default() };
        let mut times = follow_events(SuperTrace::new(coverage), None, &events);
        times.retain(|(_, doing, _)| *doing != READY);
        times
    };
    let named = (1, Blocked { on: Some(WAITED_FOR) }, 40);
    assert_eq!(times(true), [named, (1, Blocked { on: None }, 30), (2, Blocked { on: None }, 70)]);
    assert_eq!(times(false), [named, (1, Unknown, 30), (2, Unknown, 70)]);
}

/// What LWP 7 and LWP 8 run of one process: when each user thread ran and stopped, and what ended.
#[derive(Default)]
struct Runs(Vec<String>);

impl Fold for Runs {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::UserThreadRuns { thread, lwp, at, .. } => self.user_thread_runs(thread, lwp, at.as_ns()),
            Change::UserThreadStops { thread, lwp, at, .. } => {
                self.user_thread_stops(thread, lwp, at.as_ns())
            }
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Runs {
    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {
        self.0.push(format!("{at} {} runs on {}", thread.id, lwp.tid));
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {
        self.0.push(format!("{at} {} stops on {}", thread.id, lwp.tid));
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.0.push(format!("{} ends, {} polls", thread.id, thread.polls));
    }
}

/// A worker of tokio reports by its hooks that a poll is over when another one may have begun the next, or
/// have ended the task.
#[test]
fn the_end_of_a_run_may_be_reported_after_the_next_one_has_begun_elsewhere() {
    let switch = |prev, next, cause| User::Switch { prev, next, cause };
    let events = [
        (10, 7, switch(Task(0), Task(1), SwitchCause::Unknown)),
        (20, 8, switch(Task(0), Task(1), SwitchCause::Unknown)),
        (25, 7, switch(Task(1), Task(0), SwitchCause::Blocked)),
        (30, 8, switch(Task(1), Task(0), SwitchCause::Blocked)),
        (40, 7, switch(Task(0), Task(1), SwitchCause::Unknown)),
        (50, 8, switch(Task(0), Task(1), SwitchCause::Unknown)),
        (60, 8, User::Exit { thread: Task(1) }),
        (61, 8, switch(Task(1), Task(0), SwitchCause::Ended)),
        (70, 7, switch(Task(1), Task(0), SwitchCause::Blocked)),
    ];
    let (mut state, mut runs) = (SuperTrace::default(), Runs::default());
    let event = |time, tid: i32, kind| Activity {
        time,
        cpu: Some(Cpu(tid.cast_unsigned())),
        tid: Some(Tid(tid)),
        process: Some(Pid(7)),
        context: Context::Unknown,
        kind,
    };
    for tid in [7, 8] {
        state.event(
            &event(Timestamp::ORIGIN, tid, Kind::Introduction { process: Pid(7), name: b"program" }),
            &mut runs,
        );
    }
    for (time, tid, kind) in events {
        state.event(&event(Timestamp::from_ns(time), tid, Kind::UserThread(kind)), &mut runs);
    }
    state.finish(&mut runs);
    let expected = [
        "10 1 runs on 7",
        "20 1 stops on 7",
        "20 1 runs on 8",
        "30 1 stops on 8",
        "40 1 runs on 7",
        "50 1 stops on 7",
        "50 1 runs on 8",
        "61 1 stops on 8",
        "1 ends, 4 polls",
    ];
    assert_eq!(runs.0, expected);
}

#[test]
fn names_of_user_threads_that_existed_before() {
    let origin = |number, name| User::Origin { origin: Origin(number), name, file: b"", line: 0 };
    let events = [
        origin(1, b"one"),
        User::Existed { thread: Task(1), origin: Origin(1) },
        User::Switch { prev: Task(0), next: Task(1), cause: SwitchCause::Unknown },
        // Its origin comes later, on another CPU.
        User::Existed { thread: Task(2), origin: Origin(2) },
        origin(2, b"two"),
        User::Switch { prev: Task(1), next: Task(2), cause: SwitchCause::Blocked },
        // What renames one is newer than its origin.
        User::Rename { thread: Task(3), name: b"three" },
        User::Existed { thread: Task(3), origin: Origin(1) },
        User::Create { thread: Task(4), origin: Origin(2) },
        User::Existed { thread: Task(4), origin: Origin(1) },
    ];
    let (mut state, mut times) = (SuperTrace::default(), Times::default());
    for (time, kind) in (10..).step_by(10).zip(events) {
        let activity = Activity {
            time: Timestamp::from_ns(time),
            cpu: Some(Cpu(0)),
            tid: Some(Tid(7)),
            process: Some(Pid(7)),
            context: Context::Unknown,
            kind: Kind::UserThread(kind),
        };
        state.event(&activity, &mut times);
    }
    let names =
        [1, 2, 3, 4].map(|id| state.user_thread(Some(Pid(7)), Tid(7), Task(id)).unwrap().name.clone());
    assert_eq!(names, ["one", "two", "three", "two"]);
    state.finish(&mut times);
    let of_before = times.0.iter().filter(|(id, ..)| *id == 3).map(|(_, doing, _)| *doing);
    assert!(of_before.clone().count() == 1 && of_before.into_iter().all(|doing| doing == Doing::Unknown));
}
