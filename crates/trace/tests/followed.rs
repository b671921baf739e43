//! Which threads a recording of some threads follows, as its events show.

mod hand_made;

use hand_made::*;
use tracewing_trace::super_trace::{Change, Coverage, Fold, Kind, SuperTrace};
use tracewing_units::{Pid, Tid};

/// Whether each thread that has ended is followed, in order of their numbers.
#[derive(Default)]
struct Ended(Vec<(i32, bool)>);

impl Fold for Ended {
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpEnds { lwp } = change {
            self.0.push((lwp.tid.0, lwp.followed));
        }
    }
}

fn followed(coverage: Coverage, events: &[Event]) -> Vec<(i32, bool)> {
    let (mut state, mut ended) = (SuperTrace::new(coverage), Ended::default());
    events.iter().for_each(|event| state.event(&activity(event), &mut ended));
    state.finish(&mut ended);
    ended.0.sort_unstable();
    ended.0
}

#[test]
fn creations_and_idle_threads_show_the_followed_threads() {
    let events = [
        (0, 0, 10, switch(10, RUNNABLE, 20)),
        (10, 0, 20, switch(20, RUNNABLE, 0)),
        (20, 0, 0, switch(0, 0, 10)),
        (30, 0, 10, Kind::NewTask { child: Tid(11), same_process: true }),
        (40, 0, 10, switch(10, RUNNABLE, 30)),
        (50, 0, 30, switch(30, SLEEPS, 12)),
    ];
    // 20 leaves for an idle thread, 10 comes from one.
    let listed = Coverage { of_some: true, of_listed: true, ..Coverage::default() };
    assert_eq!(
        followed(listed.clone(), &events),
        [(10, true), (11, false), (12, false), (20, true), (30, false)]
    );
    let tree = Coverage { root: Some(Pid(10)), ..listed };
    assert_eq!(followed(tree, &events), [(10, true), (11, true), (12, false), (20, true), (30, false)]);
    let system = followed(Coverage::default(), &events[..3]);
    assert_eq!(system, [(10, false), (20, false)], "where all are recorded, no switch shows it");
}

/// Linux, kernel/trace/trace_events.c: a switch is left out if both threads are in `set_event_notrace_pid`.
#[test]
fn a_reused_number_is_not_the_thread_that_an_idle_thread_showed() {
    let events = [
        (0, 0, 10, switch(10, SLEEPS, 20)),
        (10, 0, 20, switch(20, DEAD, 0)),
        (20, 0, 0, switch(0, 0, 20)),
        (30, 0, 20, switch(20, SLEEPS, 0)),
        (40, 0, 0, switch(0, 0, 10)),
    ];
    let listed = Coverage { of_some: true, of_listed: true, ..Coverage::default() };
    assert_eq!(followed(listed, &events), [(10, true), (20, false), (20, true)]);
}

#[test]
fn a_thread_that_is_created_where_events_are_missing_is_one() {
    let coverage = Coverage { of_cpus: true, root: Some(Pid(10)), ..Coverage::default() };
    let events = [
        (0, 0, 10, Kind::Introduction { process: Pid(10), name: b"a" }),
        (20, 0, 10, Kind::NewTask { child: Tid(11), same_process: true }),
        (21, 0, 10, Kind::Fork { child: Tid(11), name: b"worker" }),
    ];
    assert_eq!(followed(coverage, &events), [(10, true), (11, true)]);
}

/// Linux, kernel/trace/trace_events.c: `event_filter_pid_sched_wakeup_probe_pre` allows all events of a CPU
/// until the wake of a followed thread is recorded, such as `contention_begin` of a lock that this takes.
#[test]
fn what_happens_in_the_wake_of_a_followed_thread_does_not_show_that_the_waker_is_followed() {
    let events = [
        (0, 0, 10, Kind::SystemCall { call: READ }),
        (10, 0, 10, switch(10, SLEEPS, 20)),
        (20, 0, 20, Kind::Waking { tid: Tid(10), name: b"a" }),
        (21, 0, 20, Kind::Kernel),
        (22, 0, 20, Kind::Wakeup { tid: Tid(10), name: b"a" }),
        (30, 0, 20, switch(20, RUNNABLE, 10)),
    ];
    let listed = Coverage { of_some: true, of_listed: true, ..Coverage::default() };
    assert_eq!(followed(listed.clone(), &events), [(10, true), (20, false)]);
    let without_calls = Coverage { system_calls: false, ..listed };
    assert_eq!(followed(without_calls, &events), [(10, true), (20, true)], "nothing else may show it");
}
