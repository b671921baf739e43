//! CPUs whose idle thread is never seen to leave them.

use tracewing_trace::super_trace::{Activity, Context, Kind, Scope, SuperTrace};

type Event = (i64, u32, i32, Kind<'static>);

fn switch(prev: i32, next: i32) -> Kind<'static> {
    Kind::Switch { prev, prev_name: b"", prev_state: 1, next, next_name: b"" }
}

#[test]
fn a_cpu_that_is_never_seen_to_leave_its_idle_thread_is_told() {
    let untold = |events: &[Event], loss: Option<i64>| {
        let mut state = SuperTrace::new();
        for (time, cpu, tid, kind) in events {
            let event = Activity {
                time: *time,
                cpu: Some(*cpu),
                tid: Some(*tid),
                process: None,
                context: Context::Unknown,
                kind: *kind,
            };
            state.event(&event, &mut ());
            if let Some(at) = loss.filter(|at| at == time) {
                state.lost(Scope::Kernel(Some(*cpu)), at, at, &mut ());
            }
        }
        state.idle_untold()
    };
    let to_idle = |time, cpu| (time, cpu, 7, switch(7, 0));
    let from_idle = |time, cpu| (time, cpu, 0, switch(0, 7));
    assert_eq!(untold(&[to_idle(1, 0), to_idle(2, 1), to_idle(3, 1)], None), [1]);
    assert!(untold(&[to_idle(1, 1), from_idle(2, 1), to_idle(3, 1)], None).is_empty());
    assert!(untold(&[from_idle(1, 1), to_idle(2, 1), to_idle(3, 1)], None).is_empty(), "one is missing");
    assert!(untold(&[to_idle(1, 1), to_idle(3, 1)], Some(1)).is_empty(), "it was lost");
}
