//! What running threads are in, program or system call, is told only where every begin and end of a system
//! call is.

use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Activity, Change, Context, Coverage, Doing, Fold, Kind, Lwp, Mode, Name, SuperTrace,
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
    let switch = Kind::Switch {
        prev: Tid(10),
        prev_name: b"prev",
        prev_state: TaskState::SLEEPING,
        next: Tid(0),
        next_name: b"next",
    };
    let events = [
        (0, 10, Kind::PageFault { user: true, high: true }),
        (20, 10, call),
        (30, 10, switch),
        (50, 11, Kind::Waking { tid: Tid(10), name: b"woken" }),
    ];
    fold_all(state, &events)
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
fn without_all_system_calls_nobody_knows_which_time_is_the_programs() {
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let blocked = (Doing::Blocked { on: Some(READ) }, 30, 50);
    let whole = fold(SuperTrace::default());
    assert_eq!(whole[..3], [(runs(Mode::User), 0, 20), (runs(Mode::SystemCall(READ)), 20, 30), blocked]);
    let some = fold(SuperTrace::new(Coverage { system_calls: false, ..Coverage::default() }));
    assert!(some.contains(&blocked), "{some:?}");
    assert!(some.iter().all(|(doing, _, to)| *to > 30 || *doing == runs(Mode::Unknown)), "{some:?}");
}

#[test]
fn where_a_call_ends_is_known_only_where_events_tell() {
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let unended = |returns| fold_call(SuperTrace::default(), Kind::UnendedCall { call: READ, returns });
    let blocked = (Doing::Blocked { on: None }, 30, 50);
    assert_eq!(unended(false)[..3], [(runs(Mode::User), 0, 20), (runs(Mode::Unknown), 20, 30), blocked]);
    let returned = unended(true);
    assert_eq!(returned[..3], [(runs(Mode::User), 0, 20), (runs(Mode::User), 20, 30), blocked]);
}

/// The kernel records no system call of a 32-bit program, not even the end of the one that executed it.
#[test]
fn where_no_event_shows_that_calls_are_recorded_running_code_is_no_sign_of_none() {
    const EXECVE: Name = Name(2);
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    let fault = |high| Kind::PageFault { user: true, high };
    let execute = Kind::Exec { file: b"program" };
    let exit = Kind::Switch {
        prev: Tid(10),
        prev_name: b"prev",
        prev_state: TaskState::SLEEPING,
        next: Tid(0),
        next_name: b"next",
    };
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
