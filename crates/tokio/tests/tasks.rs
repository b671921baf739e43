//! Tasks on one thread, where every transition is known: recordings compared with the script.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{Event, alone, lines_of, named, record};
use std::future::{Future, pending, poll_fn};
use std::os::unix::thread::JoinHandleExt;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;
use tokio::task::{JoinSet, LocalSet};
use tracewing::user_thread;
use tracewing_tokio as traced;

/// All events except those of workers.
const TASKS: [&str; 7] = ["create", "existed", "origin", "name", "switch", "wake", "exit"];

fn runtime() -> Runtime {
    traced::runtime(&mut Builder::new_current_thread(), "one").enable_all().build().unwrap()
}

/// Records the tasks of a future; a runtime of one thread runs it, and it is itself the user thread `main`.
fn script(main: impl Future<Output = ()>) -> Vec<Event> {
    record_tasks(|| {
        let runtime = runtime();
        let _within = runtime.enter();
        runtime.block_on(name("main").instrument(main));
    })
}

fn record_tasks(body: impl FnOnce()) -> Vec<Event> {
    record(&TASKS.map(|name| format!("user_thread:{name}")).each_ref().map(String::as_str), body)
}

fn name(name: &str) -> traced::Builder<'_> {
    traced::Builder::new().name(name)
}

#[test]
fn from_spawn_to_exit() {
    let _alone = alone();
    let mut line = 0;
    let events = script(async {
        let (sender, receiver) = oneshot::channel();
        line = line!() + 1;
        let child = name("child").spawn(async {
            receiver.await.unwrap();
            name("grandchild").spawn(async {}).await.unwrap();
        });
        traced::yield_now().await;
        sender.send(()).unwrap();
        child.await.unwrap();
    });
    assert_eq!(
        lines_of(&events),
        [
            "create main - main one",
            "switch - main none",
            "create child main child one",
            "switch main - yielded",
            "switch - child none",
            "switch child - blocked",
            "wake main",
            "switch - main none",
            "wake child",
            "switch main - blocked",
            "switch - child none",
            "create grandchild child grandchild one",
            "switch child - blocked",
            "switch - grandchild none",
            "switch grandchild - ended",
            "wake child",
            "switch - child none",
            "switch child - ended",
            "wake main",
            "switch - main none",
            "switch main - ended",
        ]
    );
    let child = named(&events, "user_thread:create")[1];
    assert_eq!((child.payload["file"].as_str(), child.number("line")), (Some(file!()), u64::from(line)));
}

/// Lines about one user thread.
fn about(name: &str, events: &[Event]) -> Vec<String> {
    lines_of(events).into_iter().filter(|line| line.split(' ').any(|word| word == name)).collect()
}

#[test]
fn why_a_poll_ended() {
    let _alone = alone();
    let events = script(async {
        let task = name("task").spawn(async {
            traced::yield_now().await;
            let mut woken = false;
            poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            // The budget is 128; that the task has also woken itself no longer matters.
            for _ in 0..128 {
                consume_budget().await;
            }
            consume_budget().await;
        });
        task.await.unwrap();
    });
    let switches: Vec<String> =
        about("task", &events).into_iter().filter(|line| line.starts_with("switch task")).collect();
    assert_eq!(
        switches,
        ["switch task - yielded", "switch task - yielded", "switch task - budget", "switch task - ended"]
    );
}

#[test]
fn a_parent_could_continue_if_its_child_could() {
    let _alone = alone();
    let wakes_itself = |ready| {
        poll_fn(move |context| {
            context.waker().wake_by_ref();
            if ready { Poll::Ready(()) } else { Poll::Pending }
        })
    };
    let events = script(async {
        let (sender, receiver) = oneshot::channel::<()>();
        name("other").spawn(async { sender.send(()) });
        // This task no longer can.
        name("ended").instrument(wakes_itself(true)).await;
        receiver.await.unwrap();
        tokio::select! {
            biased;
            () = wakes_itself(false) => unreachable!(),
            () = name("waits").instrument(pending()) => unreachable!(),
            () = tokio::task::yield_now() => {}
        }
        name("yields").instrument(traced::yield_now()).await;
    });
    let switches: Vec<String> =
        about("main", &events).into_iter().filter(|line| line.starts_with("switch main -")).collect();
    assert_eq!(
        switches,
        ["blocked", "yielded", "yielded", "ended"].map(|cause| format!("switch main - {cause}"))
    );
}

#[test]
fn how_tasks_end() {
    let _alone = alone();
    let events = script(async {
        assert!(name("panics").spawn(async { panic!("as it should") }).await.unwrap_err().is_panic());
        let aborted = name("aborted").spawn(pending::<()>());
        traced::yield_now().await;
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        let unpolled = name("unpolled").spawn(pending::<()>());
        unpolled.abort();
        assert!(unpolled.await.unwrap_err().is_cancelled());
        drop(name("dropped").instrument(pending::<()>()));
        assert_eq!(name("blocking").spawn_blocking(|| 7).await.unwrap(), 7);
        assert!(name("blocking panics").spawn_blocking(|| panic!("too")).await.unwrap_err().is_panic());
        let mut set = JoinSet::new();
        name("in a set").spawn_in(async {}, &mut set);
        set.join_next().await.unwrap().unwrap();
        name("left over").spawn(pending::<()>());
    });
    let lines = lines_of(&events);
    let exits: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("exit ")).collect();
    assert_eq!(
        exits,
        [
            "panics panicked",
            "aborted cancelled",
            "unpolled cancelled",
            "dropped cancelled",
            "blocking panics panicked",
            "left over cancelled",
        ]
    );
    assert_eq!(
        about("panics", &events),
        [
            "create panics main panics one",
            "switch - panics none",
            "exit panics panicked",
            "switch panics - ended",
            "create blocking panics main blocking panics one",
            "switch - blocking panics none",
            "exit blocking panics panicked",
            "switch blocking panics - ended",
        ]
    );
    assert_eq!(about("unpolled", &events), ["create unpolled main unpolled one", "exit unpolled cancelled"]);
    assert_eq!(
        about("aborted", &events)[1..],
        ["switch - aborted none", "switch aborted - blocked", "exit aborted cancelled"]
    );
}

#[test]
fn children_of_select_and_join() {
    let _alone = alone();
    let events = script(async {
        tokio::select! {
            biased;
            () = name("never").instrument(pending()) => unreachable!(),
            () = name("at once").instrument(async {}) => {}
        }
        tokio::join!(name("left").instrument(traced::yield_now()), name("right").instrument(async {}));
    });
    assert_eq!(
        lines_of(&events),
        [
            "create main - main one",
            "switch - main none",
            "create never main never one",
            "create at once main at once one",
            "switch main never nested",
            "switch never main blocked",
            "switch main at once nested",
            "switch at once main ended",
            "exit never cancelled",
            "create left main left one",
            "create right main right one",
            "switch main left nested",
            "switch left main yielded",
            "switch main right nested",
            "switch right main ended",
            "switch main - yielded",
            "wake left",
            "wake main",
            "switch - main none",
            "switch main left nested",
            "switch left main ended",
            "switch main - ended",
        ]
    );
}

#[test]
fn a_waker_outlives_its_task() {
    let _alone = alone();
    let kept: Arc<Mutex<Option<Waker>>> = Arc::default();
    let events = script(async {
        let keeper = kept.clone();
        let task = name("short").spawn(poll_fn(move |context| {
            *keeper.lock().unwrap() = Some(context.waker().clone());
            Poll::Ready(())
        }));
        task.await.unwrap();
        let waker = kept.lock().unwrap().take().unwrap();
        waker.wake_by_ref();
        drop(waker.clone());
        waker.wake();
    });
    assert_eq!(
        about("short", &events),
        ["create short main short one", "switch - short none", "switch short - ended"]
    );
}

#[test]
fn wakers_stay_the_same_and_are_recorded_while_in_use() {
    let _alone = alone();
    let events = record(&["user_thread:*"], || {
        let mut wakers = Vec::new();
        let mut future = pin!(name("moved").instrument(poll_fn(|context| {
            wakers.push(context.waker().clone());
            Poll::<()>::Pending
        })));
        let (one, other) = (Arc::new(Count::default()), Arc::new(Count::default()));
        for inner in [&one, &one, &other] {
            let _ = future.as_mut().poll(&mut Context::from_waker(&inner.clone().into()));
        }
        assert!(wakers[0].will_wake(&wakers[1]) && wakers[0].will_wake(&wakers[0].clone()));
        assert!(!wakers[1].will_wake(&wakers[2]));
        for waker in &wakers {
            waker.wake_by_ref();
        }
        assert_eq!([&one, &other].map(|count| *count.0.lock().unwrap()), [2, 1]);
    });
    assert_eq!(named(&events, "user_thread:wake").len(), 1);
}

#[derive(Default)]
struct Count(Mutex<u32>);

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() += 1;
    }
}

#[test]
fn wake_ups_name_the_waking_thread() {
    let _alone = alone();
    let (mine, theirs) = mpsc::channel::<Waker>();
    // A dedicated thread waits for the signal, as handlers should do it. SAFETY: an empty set, filled before
    // it is read; the mask is inherited by the thread below.
    let signals = unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        signals
    };
    let (waking, woke) = mpsc::channel();
    let waker = thread::spawn(move || {
        // SAFETY: only queries the thread's own id.
        waking.send(unsafe { libc::gettid() }).unwrap();
        for waker in theirs {
            let mut signal = 0;
            // SAFETY: a set that was filled above, and room for the answer.
            assert_eq!(unsafe { libc::sigwait(&signals, &mut signal) }, 0);
            waker.wake();
        }
    });
    let other = i64::from(woke.recv().unwrap());
    let events = script(async {
        let mut asked = false;
        poll_fn(|context| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            mine.send(context.waker().clone()).unwrap();
            // SAFETY: a signal that the thread, which has not ended, has blocked.
            unsafe { libc::pthread_kill(waker.as_pthread_t(), libc::SIGUSR1) };
            Poll::Pending
        })
        .await;
    });
    drop(mine);
    waker.join().unwrap();
    let wakes = named(&events, "user_thread:wake");
    assert_eq!(wakes.iter().map(|event| event.tid).collect::<Vec<_>>(), [other]);
    let switches: Vec<String> =
        lines_of(&events).into_iter().filter(|line| line.starts_with("switch")).collect();
    assert_eq!(
        switches,
        ["switch - main none", "switch main - blocked", "switch - main none", "switch main - ended"]
    );
}

#[test]
fn local_sets_and_nested_runtimes() {
    let _alone = alone();
    let events = script(async {
        let set = LocalSet::new();
        name("on a set").spawn_local_on(async {}, &set);
        set.run_until(async {
            name("local").spawn_local(traced::yield_now()).await.unwrap();
            traced::spawn_local(async {}).await.unwrap();
        })
        .await;
        let nested = name("host").spawn_blocking(|| {
            let waker = traced::runtime(&mut Builder::new_current_thread(), "waker").build().unwrap();
            name("guest").spawn_on(async {}, waker.handle());
            waker.block_on(name("nested").instrument(traced::yield_now()));
            assert!(user_thread::current().is_some());
        });
        nested.await.unwrap();
        assert!(user_thread::current().is_some());
    });
    assert!(named(&events, "user_thread:create").iter().all(|event| event.payload["file"] == file!()));
    let lines = lines_of(&events);
    assert_eq!(
        about("local", &events),
        [
            "create local main local one",
            "switch main local nested",
            "switch local main yielded",
            "wake local",
            "switch main local nested",
            "switch local main ended",
        ]
    );
    assert_eq!(about("set", &events).last().map(String::as_str), Some("switch on a set main ended"));
    // The name of a future's type is the path of its definition.
    assert!(
        lines.iter().any(|line| line.contains("create tasks::local_sets_and_nested_runtimes")),
        "{lines:#?}"
    );
    assert_eq!(
        about("host", &events),
        [
            "create host main host one",
            "switch - host none",
            "create guest host guest waker",
            "create nested host nested one",
            "switch host nested nested",
            "switch nested host yielded",
            "switch host guest nested",
            "switch guest host ended",
            "switch host nested nested",
            "switch nested host ended",
            "switch host - ended",
        ]
    );
}

/// Waits for so many messages.
async fn listen(mut messages: tokio::sync::mpsc::UnboundedReceiver<()>, count: u32) {
    for _ in 0..count {
        messages.recv().await.unwrap();
    }
}

#[test]
fn tasks_that_existed_before_the_recording() {
    let _alone = alone();
    let runtime = runtime();
    let _within = runtime.enter();
    let channel = tokio::sync::mpsc::unbounded_channel::<()>;
    let ((to_named, of_named), (to_typed, of_typed), (to_later, of_later)) =
        (channel(), channel(), channel());
    let a_name = String::from("named");
    let named_task = name(&a_name).spawn(listen(of_named, 3));
    drop(a_name);
    let line = line!() + 1;
    let typed_task = traced::spawn(listen(of_typed, 1));
    let cancelled = name("cancelled").spawn(pending::<()>());
    let idle = name("idle").spawn(pending::<()>());
    runtime.block_on(tokio::task::yield_now());

    let mut later = None;
    let first = record_tasks(|| {
        for to in [&to_named, &to_named, &to_typed] {
            to.send(()).unwrap();
        }
        later = Some(name("later").spawn(listen(of_later, 1)));
        runtime.block_on(typed_task).unwrap();
        cancelled.abort();
        runtime.block_on(cancelled).unwrap_err();
    });
    assert_eq!(
        lines_of(&first),
        [
            "create later - later one",
            "existed named named one",
            "switch - named none",
            "switch named - blocked",
            "existed tasks::listen tasks::listen one",
            "switch - tasks::listen none",
            "switch tasks::listen - ended",
            "switch - later none",
            "switch later - blocked",
            "existed cancelled cancelled one",
            "exit cancelled cancelled",
        ]
    );
    let typed = named(&first, "user_thread:existed")[1];
    assert_eq!((typed.payload["file"].as_str(), typed.number("line")), (Some(file!()), u64::from(line)));
    // What one recording knows, the next one does not.
    let second = record_tasks(|| {
        to_named.send(()).unwrap();
        runtime.block_on(named_task).unwrap();
        to_later.send(()).unwrap();
        runtime.block_on(later.unwrap()).unwrap();
    });
    assert_eq!(
        lines_of(&second),
        [
            "wake ?",
            "existed named named one",
            "switch - named none",
            "switch named - ended",
            "wake ?",
            "existed later later one",
            "switch - later none",
            "switch later - ended",
        ]
    );
    drop(idle);
}

/// The function runs while the recording begins.
#[test]
fn a_run_that_began_before_the_recording() {
    let _alone = alone();
    let runtime = runtime();
    let _within = runtime.enter();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    let task = name("blocking").spawn_blocking(move || {
        begun.send(()).unwrap();
        may_end.recv().unwrap();
    });
    has_begun.recv().unwrap();
    let events = record_tasks(|| {
        end.send(()).unwrap();
        runtime.block_on(task).unwrap();
    });
    assert_eq!(lines_of(&events), ["existed blocking blocking one", "switch blocking - ended"]);
}
