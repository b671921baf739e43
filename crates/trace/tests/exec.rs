//! A thread that executes a program continues under its process's number, whichever thread it was before.

use tracewing_trace::super_trace::{
    Activity, Change, Context, Coverage, Doing, Fold, Kind, Name, SuperTrace, TaskState,
};
use tracewing_units::{Cpu, Pid, Tid, Timestamp};

const EXECVE: Name = Name(1);

/// What LWPs did, and under which number, by their serial numbers.
#[derive(Default)]
struct Notes(Vec<(usize, i32, bool, i64, i64)>);

impl Fold for Notes {
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpDid { lwp, doing, from, to } = change
            && from < to
        {
            self.0.push((lwp.serial.0, lwp.tid.0, doing == Doing::Unknown, from.as_ns(), to.as_ns()));
        }
    }
}

fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch {
        prev: Tid(prev),
        prev_name: b"prev",
        prev_state: TaskState(prev_state),
        next: Tid(next),
        next_name: b"next",
    }
}

/// The state after these events of CPU 0: their times, threads and kinds.
fn follow(events: impl IntoIterator<Item = (i64, i32, Kind<'static>)>, fold: &mut impl Fold) -> SuperTrace {
    let mut state = SuperTrace::new(Coverage::default());
    for (time, tid, kind) in events {
        let event = Activity {
            time: Timestamp::from_ns(time),
            cpu: Some(Cpu(0)),
            tid: Some(Tid(tid)),
            process: None,
            context: Context::Unknown,
            kind,
        };
        state.event(&event, fold);
    }
    state
}

#[test]
fn a_thread_that_replaces_the_first_one_by_exec_stays_the_same() {
    const ZOMBIE: i64 = 0x20;
    let events = [
        (0, 10, Kind::Introduction { process: Pid(10), name: b"program" }),
        (0, 10, Kind::NewTask { child: Tid(11), same_process: true }),
        (5, 10, Kind::Wakeup { tid: Tid(11), name: b"program" }),
        (10, 10, switch(10, 1, 11)),
        (20, 11, Kind::SystemCall { call: EXECVE }),
        (30, 11, Kind::Waking { tid: Tid(10), name: b"program" }),
        (40, 11, switch(11, 1, 10)),
        (50, 10, Kind::Exit { name: b"" }),
        (55, 10, Kind::Waking { tid: Tid(11), name: b"program" }),
        (60, 10, switch(10, ZOMBIE, 11)),
        (70, 10, Kind::PageFault { user: false, high: false }),
        (80, 10, Kind::Exec { file: b"/bin/true" }),
        (90, 10, Kind::SystemCallEnd { call: EXECVE }),
        (100, 10, switch(10, ZOMBIE, 0)),
    ];
    let mut notes = Notes::default();
    let state = follow(events, &mut notes);
    assert!(!state.is_partial(), "no switch is missing");
    state.finish(&mut notes);
    assert!(notes.0.iter().all(|(serial, ..)| *serial < 2), "{notes:?}", notes = notes.0);
    let second: Vec<_> = notes.0.iter().filter(|(serial, ..)| *serial == 1).collect();
    assert!(second.iter().all(|(_, _, is_unknown, ..)| !is_unknown), "{second:?}");
    assert!(second.iter().all(|(_, tid, _, _, to)| *tid == if *to <= 70 { 11 } else { 10 }), "{second:?}");
    assert_eq!(second.iter().map(|(.., from, to)| to - from).sum::<i64>(), 100, "{second:?}");
}

/// A thread may name itself after its last switch that the kernel recorded.
#[test]
fn a_thread_has_the_name_with_which_it_exits() {
    #[derive(Default)]
    struct Names(Vec<(i32, String)>);
    impl Fold for Names {
        fn change(&mut self, change: Change<'_>) {
            if let Change::LwpEnds { lwp } = change {
                self.0.push((lwp.tid.0, lwp.name.clone()));
            }
        }
    }
    let mut names = Names::default();
    let state = follow([(0, 9, switch(9, 1, 10)), (5, 10, Kind::Exit { name: b"late" })], &mut names);
    state.finish(&mut names);
    names.0.sort();
    assert_eq!(names.0, [(9, "prev".to_owned()), (10, "late".to_owned())]);
}
