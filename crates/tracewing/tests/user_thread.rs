//! User threads of a toy scheduler, in recordings.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{alone, lines_of, named, read, record, with_origins};
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::thread;
use tracewing::Session;
use tracewing::user_thread::{self, Cause, Kind, Outcome, Request, UserThread};

/// What a fiber did when it was run.
enum Step {
    Yield,
    /// Until its successor wakes it.
    Block,
    End,
}

type Fiber = (UserThread, VecDeque<Step>);

/// Runs fibers on as many threads as call [`run`](Self::run). A fiber that ends wakes one that is blocked.
#[derive(Default)]
struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Fiber>,
    blocked: VecDeque<Fiber>,
    left: usize,
}

impl Scheduler {
    #[track_caller]
    fn spawn(&self, name: &str, steps: impl IntoIterator<Item = Step>) -> UserThread {
        let thread = user_thread::create(name, "toy", Location::caller());
        let mut state = self.state.lock().unwrap();
        state.ready.push_back((thread, steps.into_iter().collect()));
        state.left += 1;
        thread
    }

    fn run(&self, worker: u32) {
        user_thread::worker("toy", worker);
        loop {
            let mut state = self.state.lock().unwrap();
            while state.ready.is_empty() && state.left > 0 {
                user_thread::park(worker);
                state = self.changed.wait(state).unwrap();
                user_thread::unpark(worker);
            }
            let Some((thread, mut steps)) = state.ready.pop_front() else { return };
            drop(state);
            assert_eq!(user_thread::switch(Some(thread), Cause::None), None);
            assert_eq!(user_thread::current(), Some(thread));
            let step = steps.pop_front().unwrap_or(Step::End);
            if let Step::End = step {
                user_thread::exit(thread, Outcome::Completed);
            }
            let cause = match step {
                Step::Yield => Cause::Yielded,
                Step::Block => Cause::Blocked,
                Step::End => Cause::Ended,
            };
            assert_eq!(user_thread::switch(None, cause), Some(thread));
            let mut state = self.state.lock().unwrap();
            match step {
                Step::Yield => state.ready.push_back((thread, steps)),
                Step::Block => state.blocked.push_back((thread, steps)),
                Step::End => {
                    state.left -= 1;
                    if let Some(woken) = state.blocked.pop_front() {
                        user_thread::wake(woken.0);
                        state.ready.push_back(woken);
                    }
                }
            }
            self.changed.notify_all();
        }
    }
}

#[test]
fn every_transition_in_order() {
    let _alone = alone();
    let scheduler = Scheduler::default();
    let events = record(&["user_thread:*"], || {
        let parent = scheduler.spawn("A", [Step::Yield, Step::Block]);
        user_thread::switch(Some(parent), Cause::None);
        let child = scheduler.spawn("B", [Step::Yield]);
        user_thread::switch(None, Cause::Preempted);
        user_thread::name(child, "C");
        scheduler.run(0);
        for kind in [Kind::Mutex, Kind::Notified] {
            let mut request = Request::new(kind, 7);
            request.wait();
            request.acquired();
            request.released();
        }
    });
    assert_eq!(
        lines_of(&events),
        [
            "create A - A toy",
            "switch - A none",
            "create B A B toy",
            "switch A - preempted",
            "name B C",
            "worker toy 0",
            "switch - A none",
            "switch A - yielded",
            "switch - B none",
            "switch B - yielded",
            "switch - A none",
            "switch A - blocked",
            "switch - B none",
            "exit B completed",
            "switch B - ended",
            "wake A",
            "switch - A none",
            "exit A completed",
            "switch A - ended",
            "wait mutex 7",
            "acquired mutex 7",
            "released mutex 7",
            "wait notified 7",
            "acquired notified 7",
            "released notified 7",
        ]
    );
    let [a, _] = named(&events, "user_thread:create")[..] else { unreachable!() };
    assert!(a.payload["file"] == file!() && a.number("line") > 0, "{a:?}");
}

#[test]
fn every_transition_is_counted_on_several_workers() {
    const FIBERS: u64 = 200;
    const YIELDS: u64 = 20;
    let _alone = alone();
    let scheduler = Scheduler::default();
    let events = record(&["user_thread:*"], || {
        for _ in 0..FIBERS {
            scheduler.spawn("fiber", (0..YIELDS).map(|_| Step::Yield));
        }
        thread::scope(|scope| {
            for worker in 0..3 {
                let scheduler = &scheduler;
                scope.spawn(move || scheduler.run(worker));
            }
        });
    });
    let switches = named(&events, "user_thread:switch");
    assert_eq!(switches.len() as u64, 2 * FIBERS * (YIELDS + 1));
    let (mut running, mut runs) = (BTreeMap::new(), BTreeMap::<_, (u64, u64)>::new());
    for switch in switches {
        let (prev, next) = (switch.number("prev"), switch.number("next"));
        assert_eq!(running.insert(switch.tid, next).unwrap_or(0), prev, "what the thread ran before");
        runs.entry(prev).or_default().1 += 1;
        runs.entry(next).or_default().0 += 1;
    }
    runs.remove(&0);
    assert!(runs.len() as u64 == FIBERS && runs.values().all(|runs| *runs == (YIELDS + 1, YIELDS + 1)));
    assert_eq!(named(&events, "user_thread:exit").len() as u64, FIBERS);
    assert_eq!(named(&events, "user_thread:park").len(), named(&events, "user_thread:unpark").len());
}

#[test]
fn numbers_differ_and_are_counted_without_a_recording() {
    let _alone = alone();
    let create = || (0..1000).map(|_| user_thread::create("", "", Location::caller())).collect::<Vec<_>>();
    let other = thread::spawn(create);
    let mut all = [create(), other.join().unwrap()].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2000);
    assert!(!user_thread::wants_create() && !user_thread::wants_wake());
    let events = record(&["user_thread:*"], || {
        assert!(user_thread::wants_create() && user_thread::wants_wake());
        // What ran already when the recording began is known.
        user_thread::wake(all[0]);
    });
    assert_eq!(events.len(), 1);
    user_thread::switch(Some(all[3]), Cause::None);
    let events = record(&["user_thread:*"], || {
        user_thread::switch(None, Cause::Blocked);
    });
    assert_eq!(lines_of(&events), ["switch ? - blocked"]);
    assert_eq!(events[0].number("prev"), all[3].get().get());
}

#[test]
fn a_flight_recorder_has_the_origin_of_all_that_it_has() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let session = Session::builder().event("user_thread:*").sub_buffer_size(4096).sub_buffers(4);
    let session = session.output(folder.path().join("t")).flight_recorder().start().unwrap();
    let often = user_thread::Origin::new("often", "toy", Location::caller());
    let mut names = BTreeMap::new();
    // The oldest event of a snapshot may be any: also a creation whose origin was lines_of just before the
    // sub-buffer began.
    for snapshot in 0..40 {
        for round in 0..500 {
            let once = format!("{snapshot}/{round:width$}", width = (snapshot * 7 + round) % 31);
            let thread = user_thread::create_from(&often);
            names.insert(thread.get().get(), "often".to_owned());
            names.insert(user_thread::create(&once, "toy", Location::caller()).get().get(), once);
        }
        let folder = folder.path().join(snapshot.to_string());
        session.snapshot(&folder).unwrap();
        let events = with_origins(read(&folder));
        let created = named(&events, "user_thread:create");
        assert!((50..1000).contains(&created.len()), "{} of all are left", created.len());
        for event in created {
            assert_eq!(event.payload["name"], names[&event.number("thread")]);
        }
    }
    session.stop().unwrap();
}

static WOKEN: AtomicU64 = AtomicU64::new(0);
static TO_WAKE: Mutex<Option<UserThread>> = Mutex::new(None);

extern "C" fn on_signal(_signal: libc::c_int) {
    // The main thread holds no lock while it raises the signal.
    if let Some(thread) = *TO_WAKE.try_lock().unwrap() {
        let handler = user_thread::create("handler", "", Location::caller());
        let interrupted = user_thread::switch(Some(handler), Cause::Preempted);
        user_thread::wake(thread);
        user_thread::switch(interrupted, Cause::Ended);
        WOKEN.fetch_add(1, Relaxed);
    }
}

#[test]
fn in_a_signal_handler() {
    let _alone = alone();
    // SAFETY: the handler is a function of that type that only emits events.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t) };
    let events = record(&["user_thread:*"], || {
        let [interrupted, woken] =
            ["interrupted", "woken"].map(|name| user_thread::create(name, "", Location::caller()));
        *TO_WAKE.lock().unwrap() = Some(woken);
        user_thread::switch(Some(interrupted), Cause::None);
        // SAFETY: a signal that has a handler, to this thread.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert_eq!(user_thread::current(), Some(interrupted));
        user_thread::switch(None, Cause::Blocked);
    });
    assert_eq!(WOKEN.load(Relaxed), 1);
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let expected = ["create", "create", "switch", "create", "switch", "wake", "switch", "switch"];
    assert_eq!(names, expected.map(|name| format!("user_thread:{name}")));
}
