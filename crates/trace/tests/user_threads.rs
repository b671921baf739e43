//! User threads of which events are missing.

use tracewing_trace::super_trace::{
    Activity, Doing, Fold, Kind, Scope, SuperTrace, SwitchCause, UserThread, UserThreadKind as User,
};

/// What each did, and how long.
#[derive(Default)]
struct Times(Vec<(u64, Doing, i64)>);

impl Fold for Times {
    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        if to > from {
            self.0.push((thread.id, doing, to - from));
        }
    }
}

/// Two are created by an LWP; the first runs at once to its end, of the second nothing more is told.
const EVENTS: [(i64, User<'static>); 4] = [
    (10, User::Create { thread: 1, origin: 1 }),
    (20, User::Switch { prev: 0, next: 1, cause: SwitchCause::Unknown }),
    (30, User::Switch { prev: 1, next: 0, cause: SwitchCause::Ended }),
    (40, User::Create { thread: 2, origin: 1 }),
];

fn follow(mut state: SuperTrace, loss: Option<(i64, i64)>) -> Vec<(u64, Doing, i64)> {
    let mut times = Times::default();
    let event = |time, kind| Activity { time, cpu: Some(0), tid: Some(7), process: Some(7), kind };
    state.event(&event(0, Kind::Introduction { process: 7, name: b"program" }), &mut times);
    if let Some((from, to)) = loss {
        state.lost(Scope::User, from, to, &mut times);
    }
    for (time, kind) in EVENTS {
        state.event(&event(time, Kind::UserThread(kind)), &mut times);
    }
    state.event(&event(100, Kind::User), &mut times);
    assert!(state.user_thread(Some(7), 7, 1).is_none(), "it has ended");
    state.finish(&mut times);
    times.0
}

const READY: Doing = Doing::Runnable { preempted: false };

#[test]
fn who_is_created_is_ready() {
    assert_eq!(follow(SuperTrace::new(), None), [(1, READY, 10), (2, READY, 60)]);
}

#[test]
fn who_is_created_while_events_are_missing_may_have_run() {
    assert_eq!(follow(SuperTrace::new(), Some((1, 50))), [(1, Doing::Unknown, 20), (2, Doing::Unknown, 60)]);
}

#[test]
fn without_switches_nobody_is_told_to_be_ready() {
    let mut state = SuperTrace::new();
    state.lacks_user_switches();
    let times = follow(state, None);
    assert!(
        times.contains(&(2, Doing::Unknown, 60)) && times.iter().all(|(_, doing, _)| *doing != READY),
        "{times:?}"
    );
}
