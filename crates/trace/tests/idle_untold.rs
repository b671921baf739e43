//! CPUs whose switches away from their idle threads the kernel does not tell.

use tracewing_trace::super_trace::{Activity, Kind, Scope, SuperTrace};

const SLEEPS: i64 = 1;

type Event = (i64, u32, i32, Kind<'static>);

fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch { prev, prev_name: b"lwp", prev_state, next, next_name: b"lwp" }
}

#[test]
fn a_cpu_that_is_never_seen_to_leave_its_idle_thread_is_told() {
    let untold = |events: &[Event], loss: Option<i64>| {
        let mut state = SuperTrace::new();
        for (time, cpu, tid, kind) in events {
            let event =
                Activity { time: *time, cpu: Some(*cpu), tid: Some(*tid), process: None, kind: *kind };
            state.event(&event, &mut ());
            if let Some(at) = loss.filter(|at| at == time) {
                state.lost(Scope::Kernel(Some(*cpu)), at, at, &mut ());
            }
        }
        state.idle_untold()
    };
    let to_idle = |time, cpu| (time, cpu, 7, switch(7, SLEEPS, 0));
    let from_idle = |time, cpu| (time, cpu, 0, switch(0, 0, 7));
    assert_eq!(untold(&[to_idle(1, 0), to_idle(2, 1), to_idle(3, 1)], None), [1]);
    assert!(untold(&[to_idle(1, 1), from_idle(2, 1), to_idle(3, 1)], None).is_empty());
    assert!(untold(&[from_idle(1, 1), to_idle(2, 1), to_idle(3, 1)], None).is_empty(), "one is missing");
    assert!(untold(&[to_idle(1, 1), to_idle(3, 1)], Some(1)).is_empty(), "it was lost");
}
