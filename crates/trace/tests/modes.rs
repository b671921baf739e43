//! The mode of running threads, user code or system call, is reported only if every beginning and end of a
//! system call is recorded.

use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Activity, Change, Context, Coverage, Doing, Fold, Interrupt, Kind, Lwp, Mode, Name, SuperTrace,
};
use tracewing_units::{Cpu, Tid, Timestamp};

const READ: Name = Name(1);

#[derive(Default)]
struct Notes(Vec<(Doing, i64, i64)>);

impl Fold for Notes {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpDid { lwp, doing, from, to } = change {
            self.lwp(lwp, doing, from.as_ns(), to.as_ns());
        }
    }
}

impl Notes {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        if lwp.tid == Tid(10) && from < to {
            self.0.push((doing, from, to));
        }
    }
}

/// What modes are settled later.
#[derive(Default)]
struct Was(Vec<Mode>);

impl Fold for Was {
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpWas { mode, .. } = change {
            self.0.push(mode);
        }
    }
}

fn fold(state: SuperTrace) -> Vec<(Doing, i64, i64)> {
    fold_call(state, Kind::SystemCall { call: READ })
}

fn fold_call(state: SuperTrace, call: Kind<'static>) -> Vec<(Doing, i64, i64)> {
    fold_all(state, &with_call(call, TaskState::SLEEPING))
}

/// A thread that leaves its CPU in a state, 10 ns after this event.
fn with_call(call: Kind<'static>, left_in: TaskState) -> [(i64, i32, Kind<'static>); 4] {
    [
        (0, 10, Kind::PageFault { user: true, high: true }),
        (20, 10, call),
        (30, 10, leaves(left_in)),
        (50, 11, Kind::Waking { tid: Tid(10), name: b"woken" }),
    ]
}

fn leaves(prev_state: TaskState) -> Kind<'static> {
    Kind::Switch { prev: Tid(10), prev_name: b"prev", prev_state, next: Tid(0), next_name: b"next" }
}

fn fold_all(state: SuperTrace, events: &[(i64, i32, Kind<'static>)]) -> Vec<(Doing, i64, i64)> {
    let mut notes = Notes::default();
    fold_into(state, events, &mut notes);
    notes.0
}

fn fold_into(mut state: SuperTrace, events: &[(i64, i32, Kind<'static>)], fold: &mut impl Fold) {
    for &(time, tid, kind) in events {
        state.event(&activity(time, tid, kind), fold);
    }
    state.finish(fold);
}

fn activity(time: i64, tid: i32, kind: Kind<'static>) -> Activity<'static> {
    Activity {
        time: Timestamp::from_ns(time),
        cpu: Some(Cpu(0)),
        tid: Some(Tid(tid)),
        process: None,
        context: Context::Unknown,
        kind,
    }
}

#[test]
fn without_all_system_calls_the_programs_own_time_is_unknown() {
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let blocked = (Doing::Blocked { on: Some(READ) }, 30, 50);
    let whole = fold(SuperTrace::default());
    assert_eq!(whole[..3], [(runs(Mode::User), 0, 20), (runs(Mode::SystemCall(READ)), 20, 30), blocked]);
    let some = fold(SuperTrace::new(Coverage { system_calls: false, ..Coverage::default() }));
    assert!(some.contains(&blocked), "{some:?}");
    assert!(some.iter().all(|(doing, _, to)| *to > 30 || *doing == runs(Mode::Unknown)), "{some:?}");
}

#[test]
fn the_end_of_a_call_is_known_only_from_events() {
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let unended = |returns, left_in| {
        let events = with_call(Kind::UnendedCall { call: READ, returns }, left_in);
        fold_all(SuperTrace::default(), &events)
    };
    let blocked = (Doing::Blocked { on: None }, 30, 50);
    let did = unended(false, TaskState::SLEEPING);
    assert_eq!(did[..3], [(runs(Mode::User), 0, 20), (runs(Mode::Unknown), 20, 30), blocked]);
    let returned = unended(true, TaskState::RUNNING);
    assert_eq!(returned[..2], [(runs(Mode::User), 0, 20), (runs(Mode::User), 20, 30)]);
}

/// The kernel records no system call of a 32-bit program, not even the end of the one that executed it.
#[test]
fn where_no_event_shows_that_calls_are_recorded_running_code_is_no_sign_of_none() {
    const EXECVE: Name = Name(2);
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let fault = |high| Kind::PageFault { user: true, high };
    let execute = Kind::Exec { file: b"program" };
    let exit = leaves(TaskState::RUNNING);
    let modes = |events: &[(i64, i32, Kind<'static>)]| -> Vec<_> {
        let did = fold_all(SuperTrace::new(Coverage::default()), events).into_iter();
        did.filter(|(doing, ..)| matches!(doing, Doing::Running { .. })).collect()
    };
    let call = Kind::SystemCall { call: EXECVE };
    let of_32_bits =
        [(0, 10, fault(true)), (10, 10, call), (20, 10, execute), (30, 10, fault(false)), (90, 10, exit)];
    assert_eq!(modes(&of_32_bits), [(runs(Mode::User), 0, 10), (runs(Mode::Unknown), 10, 90)]);
    let end = Kind::SystemCallEnd { call: EXECVE };
    let mut of_64_bits = of_32_bits.to_vec();
    of_64_bits.insert(3, (25, 10, end));
    let known =
        [(runs(Mode::User), 0, 10), (runs(Mode::SystemCall(EXECVE)), 10, 25), (runs(Mode::User), 25, 90)];
    assert_eq!(modes(&of_64_bits), known, "its first code comes after the end of its execution");
    let there_before = [(0, 10, fault(false)), (40, 10, fault(false)), (90, 10, exit)];
    assert_eq!(modes(&there_before), [(runs(Mode::Unknown), 0, 90)]);
    let touches = [(0, 10, fault(false)), (40, 10, fault(true)), (90, 10, exit)];
    assert_eq!(modes(&touches), [(runs(Mode::Unknown), 0, 40), (runs(Mode::User), 40, 90)]);
    let mut was = Was::default();
    let calls = [(0, 10, fault(false)), (40, 10, call), (90, 10, exit)];
    fold_into(SuperTrace::new(Coverage::default()), &calls, &mut was);
    assert_eq!(
        was.0,
        [Mode::User],
        "a call that is recorded shows that all are, and that there was none before"
    );
}

/// A thread of a 32-bit program has that program, too, until it executes another one.
#[test]
fn threads_without_calls_are_counted() {
    let fault = |high| Kind::PageFault { user: true, high };
    let new = Kind::NewTask { child: Tid(11), same_process: true };
    let count = |events: &[(i64, i32, Kind<'static>)]| {
        let mut state = SuperTrace::new(Coverage::default());
        for &(time, tid, kind) in events {
            state.event(&activity(time, tid, kind), &mut ());
        }
        state.without_calls()
    };
    assert_eq!(count(&[(0, 10, fault(true)), (10, 10, new), (20, 11, fault(false))]), 0);
    assert_eq!(count(&[(0, 10, fault(false)), (10, 10, new), (20, 11, fault(false))]), 2);
    let execute = Kind::Exec { file: b"program" };
    let executes = [(0, 10, fault(false)), (10, 10, execute), (20, 10, fault(true))];
    assert_eq!(count(&executes), 1, "it had a program without calls");
    assert_eq!(count(&[(0, 10, fault(true)), (10, 10, execute), (20, 10, fault(false))]), 1);
    assert_eq!(count(&[(0, 10, fault(false)), (10, 10, fault(true))]), 0);
}

/// A 64-bit program can make calls by `int 0x80`, which the kernel does not record.
#[test]
fn a_thread_that_sleeps_in_its_program_makes_calls_that_are_not_recorded() {
    #[derive(Default)]
    struct Sums {
        user: u64,
        unknown: u64,
        system: u64,
        hides: usize,
    }
    impl Fold for Sums {
        fn change(&mut self, change: Change<'_>) {
            match change {
                Change::LwpDid { doing: Doing::Running { mode, .. }, from, to, lwp }
                    if lwp.tid == Tid(10) =>
                {
                    let sum = match mode {
                        Mode::User => &mut self.user,
                        Mode::SystemCall(_) => &mut self.system,
                        _ => &mut self.unknown,
                    };
                    *sum += (to - from).as_ns();
                }
                Change::LwpHidesCalls { .. } => self.hides += 1,
                _ => {}
            }
        }
    }
    let sums = |events: &[(i64, i32, Kind<'static>)]| {
        let mut sums = Sums::default();
        fold_into(SuperTrace::default(), events, &mut sums);
        let Sums { user, unknown, system, hides } = sums;
        (user, unknown, system, hides)
    };
    let fault = Kind::PageFault { user: true, high: true };
    let [call, end] = [Kind::SystemCall { call: READ }, Kind::SystemCallEnd { call: READ }];
    let woken = Kind::Waking { tid: Tid(10), name: b"woken" };
    let runs = Kind::Switch {
        prev: Tid(0),
        prev_name: b"",
        prev_state: TaskState::RUNNING,
        next: Tid(10),
        next_name: b"",
    };
    // A call, 10 ns of the program up to a sleep, 10 ns after that up to the next call, and 10 ns after it.
    let sleeps = |in_program: &[(i64, i32, Kind<'static>)], left_in| {
        let begin = [(0, 10, call), (10, 10, end)];
        let end = [
            (20, 10, leaves(left_in)),
            (30, 11, woken),
            (40, 0, runs),
            (50, 10, call),
            (60, 10, end),
            (70, 10, leaves(TaskState::RUNNING)),
        ];
        sums(&[&begin, in_program, &end].concat())
    };
    let uninterruptible = TaskState::UNINTERRUPTIBLE;
    assert_eq!(sleeps(&[], TaskState::SLEEPING), (0, 30, 20, 1), "nor is it known after the next call");
    assert_eq!(sleeps(&[], uninterruptible), (10, 20, 20, 0), "it may be returning from the call");
    assert_eq!(sleeps(&[(15, 10, fault)], uninterruptible), (30, 0, 20, 0), "it waits for its page");
    assert_eq!(
        sleeps(&[(15, 10, fault)], TaskState::SLEEPING),
        (15, 15, 20, 0),
        "a program provides the page"
    );
    let [interrupt, resumes] = [
        Kind::InterruptEntry { kind: Interrupt::Vector, name: Name(3) },
        Kind::InterruptExit(Interrupt::Vector),
    ];
    let computes = [(12, 10, fault), (14, 10, interrupt), (14, 10, resumes)];
    assert_eq!(sleeps(&computes, TaskState::SLEEPING).3, 1, "it has long got its page");
    assert_eq!(sleeps(&[], TaskState(4)), (30, 0, 20, 0), "it was stopped");
    assert_eq!(sleeps(&[], TaskState::RUNNING), (30, 0, 20, 0), "it was preempted");
    assert_eq!(
        sleeps(&[(15, 10, Kind::Exit { name: b"" })], TaskState::SLEEPING),
        (15, 15, 20, 0),
        "it was killed"
    );
    let executes =
        [(0, 10, end), (10, 10, Kind::Exec { file: b"program" }), (20, 10, leaves(TaskState::RUNNING))];
    assert_eq!(sums(&executes).3, 1, "it has executed a program by a call that is not recorded");
}

/// Without page faults of programs, only the end of the call that has executed its program shows where a
/// thread is.
#[test]
fn after_a_program_was_executed_the_end_of_the_call_shows_where_its_thread_was() {
    const EXECVE: Name = Name(2);
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let modes = |events: &[(i64, i32, Kind<'static>)]| -> Vec<_> {
        let state = SuperTrace::new(Coverage { page_faults: false, ..Coverage::default() });
        let did = fold_all(state, events).into_iter();
        did.filter(|(doing, ..)| matches!(doing, Doing::Running { .. })).collect()
    };
    let (call, end) = (Kind::SystemCall { call: EXECVE }, Kind::SystemCallEnd { call: EXECVE });
    let preempted = leaves(TaskState::PREEMPTED);
    let execute = [(0, 10, call), (10, 10, Kind::Exec { file: b"program" })];
    let known = (runs(Mode::SystemCall(EXECVE)), 0, 10);
    let of_32_bits = [&execute[..], &[(90, 10, preempted)]].concat();
    assert_eq!(modes(&of_32_bits), [known, (runs(Mode::Unknown), 10, 90)]);
    let of_64_bits = [&execute[..], &[(20, 10, end), (90, 10, preempted)]].concat();
    let rest = [(runs(Mode::SystemCall(EXECVE)), 10, 20), (runs(Mode::User), 20, 90)];
    assert_eq!(modes(&of_64_bits), [&[known][..], &rest].concat());
    let next_call = [&execute[..], &[(20, 10, call), (90, 10, preempted)]].concat();
    let missing = [(runs(Mode::Unknown), 10, 20), (runs(Mode::SystemCall(EXECVE)), 20, 90)];
    assert_eq!(modes(&next_call), [&[known][..], &missing].concat());
}
