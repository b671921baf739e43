//! What running threads are in, program or system call, is told only where every begin and end of a system call is.

use tracewing_trace::super_trace::{Activity, Context, Doing, Fold, Kind, Lwp, Mode, Name, SuperTrace};

const READ: Name = Name(1);

#[derive(Default)]
struct Notes(Vec<(Doing, i64, i64)>);

impl Fold for Notes {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        if lwp.tid == 10 && from < to {
            self.0.push((doing, from, to));
        }
    }
}

fn fold(state: SuperTrace) -> Vec<(Doing, i64, i64)> {
    fold_call(state, Kind::SystemCall { call: READ })
}

fn fold_call(mut state: SuperTrace, call: Kind<'static>) -> Vec<(Doing, i64, i64)> {
    let switch = Kind::Switch { prev: 10, prev_name: b"prev", prev_state: 1, next: 0, next_name: b"next" };
    let events = [
        (0, 10, Kind::PageFault { user: true }),
        (20, 10, call),
        (30, 10, switch),
        (50, 11, Kind::Waking { tid: 10, name: b"woken" }),
    ];
    let mut notes = Notes::default();
    for (time, tid, kind) in events {
        let event =
            Activity { time, cpu: Some(0), tid: Some(tid), process: None, context: Context::Unknown, kind };
        state.event(&event, &mut notes);
    }
    state.finish(&mut notes);
    notes.0
}

#[test]
fn without_all_system_calls_nobody_knows_which_time_is_the_programs() {
    let runs = |mode| Doing::Running { cpu: 0, mode };
    let blocked = (Doing::Blocked { on: Some(READ) }, 30, 50);
    let whole = fold(SuperTrace::new());
    assert_eq!(whole[..3], [(runs(Mode::User), 0, 20), (runs(Mode::SystemCall(READ)), 20, 30), blocked]);
    let mut state = SuperTrace::new();
    state.lacks_system_calls();
    let some = fold(state);
    assert!(some.contains(&blocked), "{some:?}");
    assert!(some.iter().all(|(doing, _, to)| *to > 30 || *doing == runs(Mode::Unknown)), "{some:?}");
}

#[test]
fn where_a_call_ends_is_known_only_where_events_tell() {
    let runs = |mode| Doing::Running { cpu: 0, mode };
    let unended = |returns| fold_call(SuperTrace::new(), Kind::UnendedCall { call: READ, returns });
    let blocked = (Doing::Blocked { on: None }, 30, 50);
    assert_eq!(unended(false)[..3], [(runs(Mode::User), 0, 20), (runs(Mode::Unknown), 20, 30), blocked]);
    let returned = unended(true);
    assert_eq!(returned[..3], [(runs(Mode::User), 0, 20), (runs(Mode::User), 20, 30), blocked]);
}
