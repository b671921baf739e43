//! Wake-ups, polls and time slices of the super-trace, on hand-made events.

mod hand_made;

use hand_made::*;
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Change, Fold, Interrupt, Kind, Lwp, SuperTrace, SwitchCause, UserThread, UserThreadKind as User, Waker,
};
use tracewing_units::{Origin, Pid, Task, Tid};

/// Notes wakers and woken threads, polls and time slices.
#[derive(Default)]
struct Moves(Vec<String>);

fn by(waker: &Waker) -> String {
    let Waker { cpu, interrupt, process, tid, name, user_thread, .. } = waker;
    let name = name.as_str();
    let (cpu, process, tid) = (cpu.map(|cpu| cpu.0), process.map(|pid| pid.0), tid.map(|tid| tid.0));
    let user_thread = user_thread.map(|task| task.0);
    format!(
        "cpu {cpu:?} interrupt {interrupt:?} process {process:?} tid {tid:?}{name} thread {user_thread:?}"
    )
    .replace("None", "-")
    .replace("Some", "")
}

impl Fold for Moves {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at.as_ns()),
            Change::LwpRuns { lwp, cpu, at } => self.lwp_runs(lwp, cpu.0, at.as_ns()),
            Change::LwpStops { lwp, cpu, prev_state, at } => {
                self.lwp_stops(lwp, cpu.0, prev_state, at.as_ns())
            }
            Change::UserThreadCreated { thread, by, at } => self.user_thread_created(thread, by, at.as_ns()),
            Change::UserThreadWoken { thread, by, at } => self.user_thread_woken(thread, by, at.as_ns()),
            Change::UserThreadRuns { thread, lwp, at, .. } => self.user_thread_runs(thread, lwp, at.as_ns()),
            Change::UserThreadStops { thread, lwp, cause, at, .. } => {
                self.user_thread_stops(thread, lwp, cause, at.as_ns())
            }
            _ => {}
        }
    }
}

impl Moves {
    fn lwp_woken(&mut self, lwp: &Lwp, waker: &Waker, at: i64) {
        self.0.push(format!("{at} {} woken by {}", lwp.tid, by(waker)));
    }

    fn lwp_runs(&mut self, lwp: &Lwp, cpu: u32, at: i64) {
        self.0.push(format!("{at} {} runs on {cpu}", lwp.tid));
    }

    fn lwp_stops(&mut self, lwp: &Lwp, cpu: u32, prev_state: TaskState, at: i64) {
        self.0.push(format!("{at} {} stops on {cpu}: {}", lwp.tid, prev_state.0));
    }

    fn user_thread_created(&mut self, thread: &UserThread, waker: &Waker, at: i64) {
        self.0.push(format!("{at} thread {} created by {}", thread.id, by(waker)));
    }

    fn user_thread_woken(&mut self, thread: &UserThread, waker: &Waker, at: i64) {
        self.0.push(format!("{at} thread {} woken by {}", thread.id, by(waker)));
    }

    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {
        self.0.push(format!("{at} thread {} runs on {}", thread.id, lwp.tid));
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, cause: SwitchCause, at: i64) {
        self.0.push(format!("{at} thread {} stops on {}: {cause:?}", thread.id, lwp.tid));
    }
}

fn moves(events: &[Event]) -> Vec<String> {
    let mut moves = Moves::default();
    let mut state = SuperTrace::default();
    events.iter().for_each(|event| state.event(&activity(event), &mut moves));
    state.finish(&mut moves);
    moves.0
}

#[test]
fn wakers_and_woken_threads() {
    let create = Kind::UserThread(User::Create { thread: Task(2), origin: Origin(0xb) });
    let events = [
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)),
        (20, 0, 10, create),
        (30, 0, 10, Kind::Waking { tid: Tid(20), name: b"other" }),
        (31, 1, 0, Kind::Wakeup { tid: Tid(20), name: b"other" }),
        (40, 0, 10, takes(Interrupt::Vector)),
        (42, 0, 10, Kind::Waking { tid: Tid(21), name: b"by an interrupt" }),
        (44, 0, 10, Kind::InterruptExit(Interrupt::Vector)),
        (50, 0, 10, user_switch(1, 0, SwitchCause::Budget)),
        (60, 0, 10, Kind::UserThread(User::Wake { thread: Task(2) })),
        (70, 0, 10, switch(10, SLEEPS, 0)),
        (80, 0, 0, Kind::Wakeup { tid: Tid(10), name: b"program" }),
        (90, 0, 0, switch(0, 0, 10)),
    ];
    let expected = [
        "10 thread 1 runs on 10",
        "20 thread 2 created by cpu (0) interrupt - process (10) tid (10)program thread (1)",
        "30 20 woken by cpu (0) interrupt - process (10) tid (10)program thread (1)",
        "42 21 woken by cpu (0) interrupt (Name(9)) process - tid - thread -",
        "50 thread 1 stops on 10: Budget",
        "60 thread 2 woken by cpu (0) interrupt - process (10) tid (10)program thread -",
        "70 10 stops on 0: 1",
        "80 10 woken by cpu - interrupt - process - tid - thread -",
        "90 10 runs on 0",
    ];
    assert_eq!(moves(&events), expected);
}

#[test]
fn a_poll_is_reported_only_with_both_its_ends() {
    let events = [
        (0, 0, 10, user_switch(1, 0, SwitchCause::Blocked)), // began before the recording
        (10, 0, 10, user_switch(0, 1, SwitchCause::Unknown)), // its end is missing
        (30, 0, 10, user_switch(0, 2, SwitchCause::Unknown)),
        (35, 0, 10, user_switch(2, 3, SwitchCause::Nested)),
        (40, 0, 10, user_switch(3, 2, SwitchCause::Ended)),
        (50, 0, 10, user_switch(2, 0, SwitchCause::Yielded)),
    ];
    let expected = [
        "10 thread 1 runs on 10",
        "30 thread 2 runs on 10",
        "35 thread 2 stops on 10: Nested",
        "35 thread 3 runs on 10",
        "40 thread 3 stops on 10: Ended",
        "40 thread 2 runs on 10",
        "50 thread 2 stops on 10: Yielded",
    ];
    assert_eq!(moves(&events), expected);
}
