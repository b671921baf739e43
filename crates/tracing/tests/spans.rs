//! Spans of `tracing`, nested with `span!`.

mod recorded;

use recorded::{alone, named, only, outline, record};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, Once};
use std::thread;
use tracewing::SpanId;
use tracing::{Instrument, event, field, info, info_span};
use tracing_subscriber::prelude::*;

fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::registry().with(tracewing_tracing::layer()).init());
}

#[test]
fn from_begin_to_end() {
    let _alone = alone();
    init();
    let events = record(&["life:*"], || {
        let order = info_span!(target: "life", "order", id = 7, customer = field::Empty);
        let cause = info_span!(target: "life", "cause");
        order.in_scope(|| event!(name: "packed", target: "life", tracing::Level::INFO, items = 3));
        order.record("customer", "Ada");
        order.follows_from(&cause);
        event!(name: "late", target: "life", parent: &order, tracing::Level::INFO, {});
        event!(name: "outside", target: "life", tracing::Level::INFO, {});
        drop(order);
    });
    assert_eq!(
        outline(&events),
        [
            "life:order_new span=1 parent=0",
            "life:cause_new span=2 parent=0",
            "life:order_enter span=1",
            "life:packed span=1",
            "life:order_exit span=1",
            "life:order_record span=1",
            "life:order_follows span=1 follows=2",
            "life:late span=1",
            "life:outside span=0",
            "life:order_close span=1",
            "life:cause_close span=2",
        ]
    );
    let span = only(&events, "life:order_new").number("span");
    assert_eq!(only(&events, "life:order_new").payload, json!({"span": span, "parent": 0, "id": 7}));
    assert_eq!(only(&events, "life:order_record").payload, json!({"span": span, "customer": "Ada"}));
}

#[test]
fn parents() {
    let _alone = alone();
    init();
    let events = record(&["family:*"], || {
        let outer = info_span!(target: "family", "outer");
        let _outer = outer.enter();
        let _own = tracewing::span!("family:own", depth = 1_u8);
        {
            let _inner = info_span!(target: "family", "inner").entered();
            let _own = tracewing::span!("family:innermost");
            drop(tracewing::span!(level: Debug, parent: None, "family:root"));
        }
        info_span!(target: "family", parent: None, "other_root");
        info_span!(target: "family", parent: &outer, "explicit");
        drop(tracewing::span!(parent: SpanId::innermost(), "family:child", depth = 2_u8));
    });
    assert_eq!(
        outline(&events),
        [
            "family:outer_new span=1 parent=0",
            "family:outer_enter span=1",
            "family:own_begin span=2 parent=1",
            "family:inner_new span=3 parent=2",
            "family:inner_enter span=3",
            "family:innermost_begin span=4 parent=3",
            "family:root_begin span=5 parent=0",
            "family:root_end span=5",
            "family:innermost_end span=4",
            "family:inner_exit span=3",
            "family:inner_close span=3",
            "family:other_root_new span=6 parent=0",
            "family:other_root_close span=6",
            "family:explicit_new span=7 parent=1",
            "family:explicit_close span=7",
            "family:child_begin span=8 parent=2",
            "family:child_end span=8",
            "family:own_end span=2",
            "family:outer_exit span=1",
            "family:outer_close span=1",
        ]
    );
    assert!(SpanId::innermost().is_none());
}

#[test]
fn spans_that_are_not_recorded_are_no_parents() {
    let _alone = alone();
    init();
    let hidden = || info_span!(target: "hidden", "between");
    let events = record(&["seen:*"], || {
        // A call site's first spans exist until the session has decided.
        let begin = std::time::Instant::now();
        while !hidden().is_disabled() {
            assert!(begin.elapsed().as_secs() < 60);
        }
        let outer = info_span!(target: "seen", "outer").entered();
        let hidden = hidden().entered();
        let inner = info_span!(target: "seen", "inner").entered();
        drop((inner, hidden));
        drop(outer);
        let _own = tracewing::span!("hidden:own");
        assert!(_own.id().is_none() && SpanId::innermost().is_none());
    });
    assert_eq!(
        outline(&events),
        [
            "seen:outer_new span=1 parent=0",
            "seen:outer_enter span=1",
            "seen:inner_new span=2 parent=1",
            "seen:inner_enter span=2",
            "seen:inner_exit span=2",
            "seen:inner_close span=2",
            "seen:outer_exit span=1",
            "seen:outer_close span=1",
        ]
    );
}

#[test]
fn spans_are_left_in_any_order() {
    let _alone = alone();
    init();
    let events = record(&["order:*"], || {
        let [a, b] = ["a", "b"].map(|name| info_span!(target: "order", "s", name));
        let (in_a, in_b) = (a.enter(), b.enter());
        drop(in_a);
        info_span!(target: "order", "within_b");
        drop(in_b);
        info_span!(target: "order", "outside");
        let own = tracewing::span!("order:own");
        let in_a = a.enter();
        drop(own);
        info_span!(target: "order", "within_a");
        drop(in_a);
        assert!(SpanId::innermost().is_none());
    });
    let parents = ["within_b", "outside", "within_a"];
    let parents = parents.map(|name| only(&events, &format!("order:{name}_new")).number("parent"));
    let spans: Vec<u64> = named(&events, "order:s_new").iter().map(|event| event.number("span")).collect();
    assert_eq!(parents, [spans[1], 0, spans[0]]);
}

#[test]
fn panics_end_spans() {
    let _alone = alone();
    init();
    let events = record(&["panic:*"], || {
        let panicking = || {
            let _outer = info_span!(target: "panic", "outer").entered();
            let _own = tracewing::span!("panic:own");
            panic!("on purpose");
        };
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert!(SpanId::innermost().is_none());
    });
    assert_eq!(
        outline(&events)[2..],
        [
            "panic:own_begin span=2 parent=1",
            "panic:own_end span=2",
            "panic:outer_exit span=1",
            "panic:outer_close span=1"
        ]
    );
}

#[test]
fn many_threads() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 500;
    let _alone = alone();
    init();
    let events = record(&["threads:*"], || {
        let all = info_span!(target: "threads", "all");
        let barrier = Arc::new(Barrier::new(THREADS as usize));
        let run = |thread: u64, all: tracing::Span, barrier: Arc<Barrier>| {
            barrier.wait();
            let _all = all.enter();
            for round in 0..ROUNDS {
                let _span = info_span!(target: "threads", "round", thread, round).entered();
                event!(name: "step", target: "threads", tracing::Level::INFO, thread, round);
            }
        };
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (all, barrier) = (all.clone(), barrier.clone());
                thread::spawn(move || run(thread, all, barrier))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let all = only(&events, "threads:all_new").number("span");
    let rounds = named(&events, "threads:round_new");
    let of: BTreeSet<_> = rounds
        .iter()
        .map(|event| {
            assert_eq!(event.number("parent"), all);
            (event.number("span"), event.number("thread"), event.number("round"))
        })
        .collect();
    assert_eq!(of.iter().map(|(span, ..)| span).collect::<BTreeSet<_>>().len(), (THREADS * ROUNDS) as usize);
    for step in named(&events, "threads:step") {
        assert!(of.contains(&(step.number("span"), step.number("thread"), step.number("round"))), "{step:?}");
    }
    for name in ["round_enter", "round_exit", "round_close", "step"] {
        assert_eq!(named(&events, &format!("threads:{name}")).len(), (THREADS * ROUNDS) as usize, "{name}");
    }
    assert_eq!(named(&events, "threads:all_enter").len(), THREADS as usize);
    let threads: BTreeSet<_> = named(&events, "threads:all_enter").iter().map(|event| event.tid).collect();
    assert_eq!(threads.len(), THREADS as usize);
}

macro_rules! four {
    ($($what:tt)*) => { $($what)* $($what)* $($what)* $($what)* };
}

/// Whichever thread makes a call site known, the others' events are recorded, too.
#[test]
fn first_events_of_several_threads() {
    const THREADS: usize = 4;
    let _alone = alone();
    init();
    let events = record(&["first:*"], || {
        let barrier = Barrier::new(THREADS);
        let run = |thread: usize| {
            // 256 call sites.
            four! { four! { four! { four! {
                barrier.wait();
                info!(target: "first", thread);
            } } } }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || run(thread));
            }
        });
    });
    assert_eq!(events.iter().filter(|event| event.name.starts_with("first:")).count(), 256 * THREADS);
}

/// Two tasks on a runtime with two threads, each in a span, waiting for each other.
async fn hand_over(number: u64, from: tokio::sync::mpsc::Receiver<u64>, to: tokio::sync::mpsc::Sender<u64>) {
    let (mut from, mut left) = (from, 50);
    while let Some(count) = from.recv().await {
        info!(target: "tasks", number, count);
        if to.send(count + 1).await.is_err() {
            return;
        }
        left -= 1;
        if left == 0 {
            return;
        }
    }
}

#[test]
fn tasks_of_a_runtime() {
    let _alone = alone();
    init();
    let events = record(&["tasks:*"], || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let (to_first, from_second) = tokio::sync::mpsc::channel(1);
        let (to_second, from_first) = tokio::sync::mpsc::channel(1);
        to_first.blocking_send(0).unwrap();
        let first = hand_over(1, from_second, to_second).instrument(info_span!(target: "tasks", "theirs"));
        let second =
            tracewing::span!("tasks:ours", task = 2_u8).instrument(hand_over(2, from_first, to_first));
        let tasks = [runtime.spawn(first), runtime.spawn(second)];
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
    });
    let theirs = only(&events, "tasks:theirs_new").number("span");
    let ours = only(&events, "tasks:ours_begin").number("span");
    let steps: Vec<_> = events.iter().filter(|event| event.name.starts_with("tasks:spans.rs")).collect();
    assert_eq!(steps.len(), 100);
    for step in steps {
        assert_eq!(step.number("span"), if step.number("number") == 1 { theirs } else { ours }, "{step:?}");
    }
    // On each thread, everything between a span's enter and exit belongs to that span.
    let mut entered = std::collections::BTreeMap::new();
    for event in &events {
        let kind = event.name.rsplit('_').next().unwrap();
        match kind {
            "enter" | "begin" => {
                assert_eq!(entered.insert(event.tid, event.number("span")), None, "{event:?}")
            }
            "exit" => assert_eq!(entered.remove(&event.tid), Some(event.number("span")), "{event:?}"),
            "new" | "close" => {}
            _ => assert_eq!(entered.get(&event.tid), Some(&event.number("span")), "{event:?}"),
        }
    }
    assert_eq!(entered.len(), 0);
    assert_eq!(only(&events, "tasks:ours_close").number("span"), ours);
    assert_eq!(only(&events, "tasks:theirs_close").number("span"), theirs);
    assert!(named(&events, "tasks:ours_end").is_empty());
}

#[test]
fn fields_of_spans_of_our_own() {
    let _alone = alone();
    init();
    let (id, customer) = (17_u64, String::from("Ada"));
    let events = record(&["own:*"], || {
        let order = tracewing::span!(level: Warn, "own:order", id, customer, depth = 3_u8,);
        let parent = order.id();
        assert_eq!(parent, SpanId::innermost());
        thread::spawn(move || drop(tracewing::span!(parent: parent, "own:elsewhere"))).join().unwrap();
    });
    let begin = only(&events, "own:order_begin");
    let span = begin.number("span");
    assert_eq!(begin.payload, json!({"span": span, "parent": 0, "id": 17, "customer": "Ada", "depth": 3}));
    assert_eq!(only(&events, "own:order_end").payload, json!({"span": span}));
    assert_eq!(only(&events, "own:elsewhere_begin").number("parent"), span);
}

#[test]
fn span_ids_do_not_come_again() {
    let _alone = alone();
    init();
    let spans = || {
        let events = record(&["again:*"], || {
            (0..9000_u64).for_each(|_| drop(info_span!(target: "again", "s")));
        });
        named(&events, "again:s_new").iter().map(|event| event.number("span")).collect::<Vec<_>>()
    };
    let all = [spans(), spans()].concat();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 18_000);
}
