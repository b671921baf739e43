//! Locks, channels and notifications: which task waits, and which one holds.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{Event, alone, record};
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Builder;
use traced::sync::{Mutex, Notify, RwLock, Semaphore, mpsc, oneshot, watch};
use tracewing_tokio as traced;

/// Records two tasks on one thread. The first one is `A`; `B` runs while `A` waits or yields.
fn script(
    a: impl Future<Output = ()> + Send + 'static,
    b: impl Future<Output = ()> + Send + 'static,
) -> Vec<String> {
    let names = ["create", "origin", "switch", "wait", "acquired", "given_up", "released"]
        .map(|name| format!("user_thread:{name}"));
    let events = record(&names.each_ref().map(String::as_str), || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let [a, b] =
                [traced::Builder::new().name("A").spawn(a), traced::Builder::new().name("B").spawn(b)];
            a.await.unwrap();
            b.await.unwrap();
        });
    });
    waits_of(&events)
}

/// The recorded waits with their tasks: `A waits mutex`. All of them must concern the same object.
fn waits_of(events: &[Event]) -> Vec<String> {
    let (mut running, mut objects, mut lines) = (0, Vec::new(), Vec::new());
    let first = events[0].number("thread");
    for event in events {
        let moment = event.name.strip_prefix("user_thread:").unwrap();
        if moment == "switch" {
            running = event.number("next");
        } else if moment != "create" {
            objects.push(event.number("object"));
            let kind = event.payload["kind"]["labels"][0].as_str().unwrap();
            lines.push(format!("{} {moment} {kind}", if running == first { "A" } else { "B" }));
        }
    }
    objects.dedup();
    assert!(objects.len() <= 1, "{objects:?}");
    lines
}

const CONTENDED: [&str; 5] = ["A acquired", "B wait", "A released", "B acquired", "B released"];

fn contended(kinds: [&str; 2]) -> Vec<String> {
    CONTENDED.iter().map(|line| format!("{line} {}", kinds[usize::from(line.starts_with('B'))])).collect()
}

#[test]
fn locks() {
    let _alone = alone();
    let mutex = Arc::new(Mutex::new(7));
    let (a, b) = (mutex.clone(), mutex.clone());
    let lines = script(
        async move {
            let mut guard = a.lock().await;
            traced::yield_now().await;
            assert!(a.try_lock().is_err());
            *guard += 1;
        },
        async move { assert_eq!(*b.lock_owned().await, 8) },
    );
    let mut expected = contended(["mutex"; 2]);
    expected.insert(2, "A given_up mutex".into());
    assert_eq!(lines, expected);

    let lock: Arc<RwLock<[u8]>> = Arc::new(RwLock::new([1, 2, 3]));
    let (a, b) = (lock.clone(), lock.clone());
    let lines = script(
        async move {
            let guard = a.read().await;
            traced::yield_now().await;
            assert_eq!(guard.len(), 3);
        },
        async move { b.write_owned().await[0] = 2 },
    );
    assert_eq!(lines, contended(["read", "write"]));
    assert_eq!(lock.try_read().unwrap()[0], 2);

    let semaphore = Arc::new(Semaphore::new(2));
    let (a, b) = (semaphore.clone(), semaphore.clone());
    let lines = script(
        async move {
            let _permit = a.acquire_many(2).await.unwrap();
            traced::yield_now().await;
        },
        async move { drop(b.acquire_owned().await.unwrap()) },
    );
    assert_eq!(lines, contended(["semaphore"; 2]));
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn what_is_available_at_once_is_not_waited_for() {
    let _alone = alone();
    let mutex = Mutex::new(());
    let lines = script(
        async move {
            drop(mutex.lock().await);
            let (sender, mut receiver) = mpsc::channel(1);
            sender.send(7).await.unwrap();
            assert_eq!(receiver.recv().await, Some(7));
        },
        async {},
    );
    assert_eq!(lines, ["A acquired mutex", "A released mutex"]);
}

#[test]
fn tries_that_fail() {
    let _alone = alone();
    let lock = RwLock::new(());
    let lines = script(
        async move {
            let _guard = lock.read().await;
            assert!(lock.try_write().is_err());
        },
        async {},
    );
    assert_eq!(lines, ["A acquired read", "A given_up write", "A released read"]);

    let semaphore = Semaphore::new(0);
    let lines = script(
        async move {
            assert!(semaphore.try_acquire().is_err());
            semaphore.close();
            assert!(semaphore.acquire().await.is_err());
        },
        async {},
    );
    assert_eq!(lines, ["A given_up semaphore"; 2]);
}

#[test]
fn a_forgotten_permit_is_kept() {
    let _alone = alone();
    let lines = script(async { Semaphore::new(1).try_acquire().unwrap().forget() }, async {});
    assert_eq!(lines, ["A acquired semaphore"]);
}

#[test]
fn channels() {
    let _alone = alone();
    let (sender, mut receiver) = mpsc::channel(1);
    let lines = script(
        async move {
            sender.send(1).await.unwrap();
            sender.clone().send(2).await.unwrap();
        },
        async move {
            assert_eq!(receiver.recv().await, Some(1));
            assert_eq!(receiver.recv().await, Some(2));
            assert_eq!(receiver.recv().await, None);
        },
    );
    assert_eq!(lines, ["A wait send", "B wait receive", "A acquired send", "B acquired receive"]);

    let (sender, receiver) = oneshot::channel();
    let lines = script(async { receiver.await.unwrap() }, async { sender.send(()).unwrap() });
    assert_eq!(lines, ["A wait receive", "A acquired receive"]);

    let (sender, _) = watch::channel(1);
    let mut receiver = sender.subscribe();
    let lines = script(
        async move {
            receiver.changed().await.unwrap();
            assert_eq!(*receiver.borrow(), 2);
        },
        async move { sender.send(2).unwrap() },
    );
    assert_eq!(lines, ["A wait receive", "A acquired receive"]);

    let notify = Arc::new(Notify::new());
    let also = notify.clone();
    let lines = script(async move { notify.notified().await }, async move { also.notify_one() });
    assert_eq!(lines, ["A wait notified", "A acquired notified"]);
}

#[test]
fn a_wait_that_is_given_up() {
    let _alone = alone();
    let notify = Notify::new();
    let lines = script(
        async move {
            let mut notified = pin!(notify.notified());
            assert!(!notified.as_mut().enable());
            tokio::select! {
                biased;
                () = notified => unreachable!(),
                () = async {} => {}
            }
        },
        async {},
    );
    assert_eq!(lines, ["A wait notified", "A given_up notified"]);
}
