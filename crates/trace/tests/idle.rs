//! CPUs whose idle thread is never seen to leave them.

mod hand_made;

use hand_made::{Actor, Event, MUTEX, SLEEPS, activity, fold, switch};
use tracewing_trace::super_trace::{Doing, Kind, Mode, Scope, SuperTrace};
use tracewing_units::{Cpu, Tid, Timestamp};

#[test]
fn a_cpu_that_never_leaves_its_idle_thread_is_reported() {
    let untold = |events: &[Event], loss: Option<i64>| {
        let mut state = SuperTrace::default();
        for event in events {
            state.event(&activity(event), &mut ());
            if let Some(at) = loss.filter(|at| *at == event.0) {
                state.lost(
                    Scope::Kernel(Some(Cpu(event.1))),
                    Timestamp::from_ns(at),
                    Timestamp::from_ns(at),
                    &mut (),
                );
            }
        }
        state.idle_unreported()
    };
    let to_idle = |time, cpu| (time, cpu, 7, switch(7, SLEEPS, 0));
    let from_idle = |time, cpu| (time, cpu, 0, switch(0, 0, 7));
    assert_eq!(untold(&[to_idle(1, 0), to_idle(2, 1), to_idle(3, 1)], None), [Cpu(1)]);
    assert!(untold(&[to_idle(1, 1), from_idle(2, 1), to_idle(3, 1)], None).is_empty());
    assert!(untold(&[from_idle(1, 1), to_idle(2, 1), to_idle(3, 1)], None).is_empty(), "one is missing");
    assert!(untold(&[to_idle(1, 1), to_idle(3, 1)], Some(1)).is_empty(), "it was lost");
}

#[test]
fn a_thread_whose_program_records_something_did_not_wait_until_then() {
    let waits = Kind::Waits { on: Some(MUTEX) };
    let runs = |mode| Doing::Running { cpu: Cpu(0), mode };
    for wait in [Kind::Waking { tid: Tid(7), name: b"woken" }, Kind::User] {
        let events = [
            (0, 0, 7, Kind::PageFault { user: true, high: true }),
            (10, 0, 7, switch(7, SLEEPS, 0)),
            (20, 1, 8, wait),
            (50, 0, 7, waits),
            (60, 0, 7, Kind::PageFault { user: true, high: true }),
            (70, 0, 7, switch(7, 0, 0)),
        ];
        let notes = fold(&events);
        let spans = notes.of(Actor::Lwp(7));
        let reported = spans.iter().filter(|(from, ..)| (20..60).contains(from));
        assert!(reported.clone().all(|(.., doing)| *doing == Doing::Unknown), "{spans:?}");
        assert_eq!(notes.at(Actor::Lwp(7), 40), Some(Doing::Unknown), "{spans:?}");
        assert_eq!(spans.last(), Some(&(60, 70, runs(Mode::User))), "{spans:?}");
    }
}
