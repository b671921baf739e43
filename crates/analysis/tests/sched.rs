//! Time slices on hand-made events whose answer is known.

mod activity;

use activity::activity;
use tracewing_analysis::{Analysis, Input, Ran, SchedLatencies, SchedLatency, Slice, SliceSink, Slices};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{Change, Doing, Fold, Kind, Scope, SuperTrace};
use tracewing_units::{Cpu, Duration, Tid, Timestamp};

const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;

type Event = (i64, u32, i32, Kind<'static>);

fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch {
        prev: Tid(prev),
        prev_name: b"out",
        prev_state: TaskState(prev_state),
        next: Tid(next),
        next_name: b"in",
    }
}

fn waking(tid: i32) -> Kind<'static> {
    Kind::Waking { tid: Tid(tid), name: b"woken" }
}

fn wakeup(tid: i32) -> Kind<'static> {
    Kind::Wakeup { tid: Tid(tid), name: b"woken" }
}

fn fold<S: SliceSink>(events: &[Event], lost: Option<(i64, i64)>, sink: S) -> S {
    follow(events, lost, Slices::new(sink))
}

fn follow<S: SliceSink>(events: &[Event], mut lost: Option<(i64, i64)>, mut slices: Slices<S>) -> S {
    let mut state = SuperTrace::default();
    for (time, cpu, tid, kind) in events {
        if let Some((from, to)) = lost.take_if(|(_, to)| *to < *time) {
            state.lost(
                Scope::Kernel(Some(Cpu(*cpu))),
                Timestamp::from_ns(from),
                Timestamp::from_ns(to),
                &mut slices,
            );
        }
        let event = activity(*time, *cpu, *tid, None, *kind);
        state.event(&event, &mut slices);
    }
    state.finish(&mut slices);
    slices.sink
}

/// Whose, from when to when, wait, delay, run, state, waker.
type Noted = (i32, Option<i64>, Option<i64>, [Option<u64>; 2], u64, Option<i64>, Option<i32>);

#[derive(Default)]
struct Notes(Vec<Noted>);

impl SliceSink for Notes {
    fn slice(&mut self, slice: &Slice<'_>) {
        let Slice { lwp, begin, end, wait_ns, delay_ns, run_ns, state, waker, .. } = *slice;
        let waker = waker.and_then(|waker| waker.tid);
        let [begin, end] = [begin, end].map(|at| at.map(Timestamp::as_ns));
        let waits = [wait_ns, delay_ns].map(|wait| wait.map(Duration::as_ns));
        self.0.push((
            lwp.tid.0,
            begin,
            end,
            waits,
            run_ns.as_ns(),
            state.map(|state| state.0),
            waker.map(|tid| tid.0),
        ));
    }
}

fn story() -> Vec<Event> {
    vec![
        (0, 0, 0, switch(0, 0, 7)),
        (10, 0, 7, switch(7, RUNNABLE, 8)),
        (30, 0, 8, switch(8, SLEEPS, 7)),
        (40, 0, 7, waking(8)),
        (45, 0, 7, wakeup(8)),
        (60, 0, 7, switch(7, SLEEPS, 8)),
        (65, 0, 8, waking(7)), // while 7 is about to sleep elsewhere, as the missing wait shows
        (70, 0, 8, switch(8, RUNNABLE, 7)),
        (90, 0, 7, Kind::Kernel),
    ]
}

#[test]
fn each_slice_has_its_wait() {
    let slices = fold(&story(), None, Notes::default()).0;
    let expected = [
        (7, Some(0), Some(10), [None, None], 10, Some(RUNNABLE), None),
        (8, Some(10), Some(30), [None, None], 20, Some(SLEEPS), None),
        (7, Some(30), Some(60), [Some(20), Some(20)], 30, Some(SLEEPS), None),
        (8, Some(60), Some(70), [Some(30), Some(20)], 10, Some(RUNNABLE), Some(7)),
        (8, None, None, [Some(20), Some(20)], 0, None, None),
        (7, Some(70), None, [Some(10), Some(5)], 20, None, Some(8)),
    ];
    // The last two are reported in no order: the recording ends.
    let last: Vec<_> = slices.iter().filter(|slice| slice.4 > 0).copied().collect();
    let expected: Vec<_> = expected.into_iter().filter(|slice| slice.4 > 0).collect();
    assert_eq!(last, expected);
}

#[test]
fn a_wake_just_before_it_sleeps_is_its_waker() {
    let events = [
        (0, 0, 0, switch(0, 0, 7)),
        (5, 1, 9, waking(7)), // it runs still
        (10, 0, 7, switch(7, SLEEPS, 0)),
        (12, 1, 9, wakeup(7)), // and never blocked
        (15, 0, 0, switch(0, 0, 7)),
        (20, 0, 7, switch(7, SLEEPS, 0)),
    ];
    let slices = fold(&events, None, Notes::default()).0;
    let reported = slices.iter().find(|slice| slice.1 == Some(15)).expect("a slice");
    assert_eq!(*reported, (7, Some(15), Some(20), [Some(5), Some(5)], 5, Some(SLEEPS), Some(9)));
}

#[test]
fn a_loss_makes_waits_unknown_and_no_more() {
    // Lost just after 8 has left the CPU: until 60 it may have run again.
    let slices = fold(&story(), Some((31, 32)), Notes::default()).0;
    let last: Vec<_> = slices.iter().map(|slice| (slice.0, slice.2, slice.3)).collect();
    assert!(last.contains(&(8, Some(70), [None, Some(20)])), "{last:?}");
    assert!(last.contains(&(7, Some(10), [None, None])), "{last:?}");
    let ran: u64 = slices.iter().map(|slice| slice.4).sum();
    assert!(ran >= 60, "{slices:?}");
}

#[test]
fn latencies_are_sums_of_slices() {
    let (rows, strangers) = fold(&story(), None, SchedLatencies::default()).finish(&Ran::default());
    assert_eq!(strangers, 0);
    let ns = |duration: Option<Duration>| duration.map(Duration::as_ns);
    let reported: Vec<_> = rows
        .iter()
        .map(|row| (row.tid.0, row.run_ns.as_ns(), row.slices, ns(row.mean_ns()), ns(row.longest_ns())))
        .collect();
    assert_eq!(reported, [(7, 60, 2, Some(12), Some(20)), (8, 30, 1, Some(20), Some(20))]);
    assert_eq!(
        (rows[0].max_begin(), rows[0].max_end),
        (Some(Timestamp::from_ns(10)), Some(Timestamp::from_ns(30)))
    );
    assert_eq!(rows[1].max_waker.and_then(|waker| waker.tid), Some(Tid(7)));
    // Its first event does not say since when it waited.
    let begins = [(0, 0, 0, switch(0, RUNNABLE, 7)), (10, 0, 7, switch(7, SLEEPS, 0))];
    let (rows, _) = fold(&begins, None, SchedLatencies::default()).finish(&Ran::default());
    assert_eq!((rows[0].slices, rows[0].mean_ns(), rows[0].longest_ns()), (0, None, None));
}

/// The recording follows 7, which has to do with 9 now and then.
fn of_some() -> Vec<Event> {
    vec![
        (0, 0, 7, Kind::Kernel),
        (10, 0, 7, waking(9)),
        (20, 0, 7, waking(9)), // it has run and slept in between, elsewhere
        (30, 0, 7, switch(7, RUNNABLE, 9)),
        (40, 0, 9, switch(9, SLEEPS, 7)),
        (50, 0, 7, waking(9)),
        (60, 0, 7, switch(7, RUNNABLE, 9)), // another thread may have run there and woken it
        (70, 0, 9, switch(9, SLEEPS, 7)),
        (80, 0, 7, Kind::Kernel),
    ]
}

#[test]
fn a_thread_woken_twice_has_run_in_between() {
    let slices = fold(&of_some(), None, Notes::default()).0;
    let first = slices.iter().find(|slice| slice.2 == Some(40)).expect("a slice");
    assert_eq!(first.3, [None, Some(10)], "since the second waking");
}

#[test]
fn how_long_strangers_wait_is_not_known() {
    let of_some_reported = |sink| {
        let mut slices = Slices::new(sink);
        slices.input(Input::FollowsSome);
        slices
    };
    let slices = follow(&of_some(), None, of_some_reported(Notes::default())).0;
    let of = |tid| slices.iter().filter(move |slice| slice.0 == tid && slice.2.is_some());
    assert!(of(9).all(|slice| slice.3 == [None, None] && slice.6.is_none()) && of(9).count() == 2);
    assert!(of(9).all(|slice| slice.1.is_none()), "nor since when they had the CPU");
    assert!(of(7).any(|slice| slice.3[1] == Some(10)));
    let mut slices = Slices::new(SchedLatencies::default());
    slices.input(Input::FollowsSome);
    let rows = follow(&of_some(), None, slices).finish(&Ran { partial: true, ..Ran::default() });
    assert_eq!((rows.0.iter().map(|row| row.tid).collect::<Vec<_>>(), rows.1), (vec![Tid(7)], 1));
}

/// As `threads` counts them: all that appear, whether or not they had a CPU.
#[test]
fn strangers_without_a_slice_are_counted() {
    let mut events = of_some();
    events.insert(2, (15, 0, 7, waking(20)));
    let mut slices = Slices::new(SchedLatencies::default());
    slices.input(Input::FollowsSome);
    let (rows, strangers) = follow(&events, None, slices).finish(&Ran { partial: true, ..Ran::default() });
    assert_eq!((rows.len(), strangers), (1, 2));
}

/// Leaves out all waits, as a filter of CPUs does.
struct OnCpus<S>(Slices<S>);

impl<S: SliceSink> Fold for OnCpus<S> {
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { doing: Doing::Runnable { .. } | Doing::Blocked { .. }, .. } => {
                self.0.input(Input::LeftOut(change));
            }
            _ => self.0.change(change),
        }
    }
}

#[test]
fn a_wait_that_is_left_out_is_unknown() {
    let events = story();
    let mut state = SuperTrace::default();
    let mut on_cpus = OnCpus(Slices::new(SchedLatencies::default()));
    for (time, cpu, tid, kind) in &events {
        state.event(&activity(*time, *cpu, *tid, None, *kind), &mut on_cpus);
    }
    state.finish(&mut on_cpus);
    let (rows, _) = on_cpus.0.sink.finish(&Ran::default());
    let (whole, _) = fold(&events, None, SchedLatencies::default()).finish(&Ran::default());
    assert!(whole.iter().any(|row| row.mean_ns().is_some()));
    assert_eq!(rows.len(), whole.len());
    assert!(rows.iter().all(|row| row.mean_ns().is_none() && row.longest_ns().is_none()), "{rows:?}");
    let running = |rows: &[SchedLatency]| rows.iter().map(|row| row.run_ns).sum::<Duration>();
    assert_eq!(running(&rows), running(&whole));
}
