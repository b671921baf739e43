//! Tasks on several workers: the recorded threads compared with those that the tasks themselves observed.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{Event, alone, lines_of, named, record};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::task::Context;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tracewing::user_thread::{self, UserThread};
use tracewing_tokio as traced;

fn runtime(workers: usize) -> Runtime {
    traced::runtime(Builder::new_multi_thread().worker_threads(workers), "several").build().unwrap()
}

fn tid() -> i64 {
    // SAFETY: only queries the thread's own id.
    i64::from(unsafe { libc::gettid() })
}

/// The threads that each user thread ran on, one per poll. Also checks that every switch continues where the
/// previous one left its thread, and that each user thread that was switched to was switched away from.
/// (Stamps of different CPUs are not exact enough to check more.)
fn polls(events: &[Event]) -> BTreeMap<u64, Vec<i64>> {
    let (mut running, mut polls, mut stops) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for switch in named(events, "user_thread:switch") {
        let (prev, next) = (switch.number("prev"), switch.number("next"));
        assert_eq!(running.insert(switch.tid, next).unwrap_or(0), prev, "what ran on {}", switch.tid);
        for (of, thread) in [(&mut stops, prev), (&mut polls, next)] {
            if thread != 0 {
                of.entry(thread).or_insert_with(Vec::new).push(switch.tid);
            }
        }
    }
    let sorted = |of: &BTreeMap<u64, Vec<i64>>| {
        let mut of = of.clone();
        of.values_mut().for_each(|tids| tids.sort_unstable());
        of
    };
    assert_eq!(sorted(&polls), sorted(&stops));
    polls
}

#[test]
fn every_poll_is_recorded_where_it_ran() {
    const TASKS: usize = 20;
    const MOVES: usize = 20;
    let _alone = alone();
    let truth: Arc<Mutex<BTreeMap<UserThread, Vec<i64>>>> = Arc::default();
    let moves = Arc::new(AtomicUsize::new(0));
    let events = record(&["user_thread:*"], || {
        let runtime = runtime(3);
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let (truth, moves) = (truth.clone(), moves.clone());
                let future = async move {
                    let mut tids = vec![tid()];
                    let thread = user_thread::current().unwrap();
                    let begin = Instant::now();
                    while tids.len() < 100 || moves.load(Relaxed) < MOVES {
                        assert!(begin.elapsed() < Duration::from_secs(60), "tasks do not move");
                        if number % 2 == 0 {
                            thread::sleep(Duration::from_micros(100));
                        }
                        traced::yield_now().await;
                        assert_eq!(user_thread::current(), Some(thread));
                        let here = tid();
                        moves.fetch_add(usize::from(tids.last() != Some(&here)), Relaxed);
                        tids.push(here);
                    }
                    truth.lock().unwrap().insert(thread, tids);
                };
                let name = number.to_string();
                traced::Builder::new().name(&name).spawn_on(future, runtime.handle())
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    let truth = truth.lock().unwrap();
    let truth = truth.iter().map(|(thread, tids)| (thread.get().get(), tids.clone()));
    assert!(polls(&events).into_iter().eq(truth), "a poll somewhere else");
    let lines = lines_of(&events);
    let count = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    let all = polls(&events).values().map(Vec::len).sum::<usize>();
    assert_eq!(count("switch -"), all);
    assert_eq!(count("wake"), all - TASKS, "each but the first poll has a wake");
    let ended = lines.iter().filter(|line| line.starts_with("switch") && line.ends_with(" ended"));
    assert_eq!((count("create"), ended.count(), count("exit")), (TASKS, TASKS, 0));
    let yielded = lines.iter().filter(|line| line.starts_with("switch") && line.ends_with(" yielded"));
    assert_eq!(yielded.count(), all - TASKS);
}

#[test]
fn messages_in_a_ring() {
    const TASKS: usize = 8;
    const ROUNDS: usize = 2000;
    let _alone = alone();
    let events = record(&["user_thread:switch", "user_thread:wake"], || {
        let runtime = runtime(2);
        let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..TASKS).map(|_| mpsc::channel(2)).unzip();
        for sender in &senders[..3] {
            sender.try_send(()).unwrap();
        }
        senders.rotate_left(1);
        let tasks: Vec<_> = senders
            .into_iter()
            .zip(receivers)
            .map(|(next, mut mine)| {
                let passes_on = async move {
                    for _ in 0..ROUNDS {
                        mine.recv().await.unwrap();
                        // An ended task needs no turn.
                        let _ = next.send(()).await;
                    }
                };
                traced::Builder::new().spawn_on(passes_on, runtime.handle())
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    let all = polls(&events).values().map(Vec::len).sum::<usize>();
    assert!(named(&events, "user_thread:wake").len() >= all - TASKS, "a poll without a wake-up");
    let ended = named(&events, "user_thread:switch")
        .into_iter()
        .filter(|switch| switch.payload["cause"]["labels"][0] == "ended");
    assert_eq!(ended.count(), TASKS);
}

#[test]
fn workers_park() {
    let _alone = alone();
    let events = record(&["user_thread:*"], || {
        let runtime = runtime(2);
        runtime.block_on(traced::Builder::new().spawn_on(async {}, runtime.handle())).unwrap();
    });
    let workers: BTreeSet<(i64, u64)> = named(&events, "user_thread:worker")
        .iter()
        .map(|event| (event.tid, event.number("worker")))
        .collect();
    assert_eq!(workers.iter().map(|(_, worker)| *worker).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
    assert!(lines_of(&events).contains(&"worker several 0".to_owned()));
    let mut parked = BTreeMap::new();
    for event in &events {
        let parks = event.name == "user_thread:park";
        if parks || event.name == "user_thread:unpark" {
            assert!(workers.contains(&(event.tid, event.number("worker"))));
            assert_ne!(parked.insert(event.tid, parks).unwrap_or(false), parks);
        }
    }
    assert!(!parked.is_empty());
}

#[test]
fn block_in_place_keeps_its_thread() {
    let _alone = alone();
    let events = record(&["user_thread:*"], || {
        let runtime = runtime(1);
        let both = Arc::new(Barrier::new(2));
        let other = both.clone();
        let blocking = traced::Builder::new().name("blocking").spawn_on(
            async move {
                // It occupies the only worker: another thread has to take its place.
                traced::Builder::new().name("other").spawn(async move {
                    other.wait();
                });
                block_in_place(|| both.wait());
            },
            runtime.handle(),
        );
        runtime.block_on(blocking).unwrap();
    });
    let switches = named(&events, "user_thread:switch");
    let [blocking, other] = [0, 1].map(|at| named(&events, "user_thread:create")[at].number("thread"));
    let places = polls(&events);
    assert_eq!(places.len(), 2);
    assert_ne!(places[&blocking], places[&other]);
    assert_eq!(switches.len(), 4);
}

#[test]
fn a_wake_from_outside() {
    let _alone = alone();
    let mut waking = 0;
    let events = record(&["user_thread:*"], || {
        let runtime = runtime(1);
        let (sender, receiver) = traced::sync::oneshot::channel();
        let (say, said) = channel();
        let future = async move {
            let mut receiver = pin!(receiver);
            let poll = |context: &mut Context<'_>| {
                let _ = say.send(tid());
                receiver.as_mut().poll(context)
            };
            poll_fn(poll).await
        };
        let waits = traced::Builder::new().name("waits").spawn_on(future, runtime.handle());
        let sends = thread::spawn(move || {
            // Until the worker sleeps.
            let stat = format!("/proc/self/task/{}/stat", said.recv().unwrap());
            while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
                thread::yield_now();
            }
            sender.send(7).unwrap();
            tid()
        });
        assert_eq!(runtime.block_on(waits).unwrap(), Ok(7));
        waking = sends.join().unwrap();
    });
    let wakes = named(&events, "user_thread:wake");
    assert_eq!(wakes.iter().map(|event| event.tid).collect::<Vec<_>>(), [waking]);
    let lines: Vec<String> = lines_of(&events)
        .into_iter()
        .filter(|line| !line.contains("park") && !line.contains("worker"))
        .collect();
    let object = named(&events, "user_thread:wait")[0].number("object");
    assert_eq!(
        lines,
        [
            "create waits - waits several".to_owned(),
            "switch - waits none".to_owned(),
            format!("wait receive {object}"),
            "switch waits - blocked".to_owned(),
            "wake waits".to_owned(),
            "switch - waits none".to_owned(),
            format!("acquired receive {object}"),
            "switch waits - ended".to_owned(),
        ]
    );
}
