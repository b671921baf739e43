//! Callbacks are called while they are attached, and never afterwards, whichever threads are inside
//! meanwhile.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use tracewing_trigger::{AttachError, Attached, CALLBACKS, Trigger, fire};

#[test]
fn callbacks_are_called_while_attached() {
    static TRIGGER: Trigger<(u32, &'static str)> = Trigger::new();
    static SUM: AtomicU32 = AtomicU32::new(0);
    let evaluated = Cell::new(0);
    let fire = |number| {
        fire!(TRIGGER, {
            evaluated.set(evaluated.get() + 1);
            &(number, "x")
        });
    };
    fire(1);
    assert_eq!((evaluated.get(), SUM.load(SeqCst)), (0, 0), "nothing is attached, nothing is evaluated");

    let first = TRIGGER.attach(|(number, _)| _ = SUM.fetch_add(*number, SeqCst)).unwrap();
    assert_eq!((first.switched().changed, first.switched().obstructed), (1, 0));
    fire(2);
    assert_eq!(SUM.load(SeqCst), 2);
    let second = TRIGGER.attach(|(number, _)| _ = SUM.fetch_add(number * 100, SeqCst)).unwrap();
    fire(3);
    assert_eq!(SUM.load(SeqCst), 305);
    first.detach();
    fire(4);
    assert_eq!(SUM.load(SeqCst), 705);
    second.detach();
    fire(5);
    assert_eq!((evaluated.get(), SUM.load(SeqCst)), (3, 705));
}

#[test]
fn as_many_as_there_is_room_for() {
    static TRIGGER: Trigger<()> = Trigger::new();
    let mut all: Vec<Attached<()>> = (0..CALLBACKS).map(|_| TRIGGER.attach(|()| {}).unwrap()).collect();
    assert_eq!(TRIGGER.attach(|()| {}).err(), Some(AttachError::Full));
    all.pop();
    TRIGGER.attach(|()| {}).unwrap().detach();
    fire!(TRIGGER, &());
}

#[test]
fn detaching_waits_for_those_inside() {
    static TRIGGER: Trigger<()> = Trigger::new();
    static DETACHED: AtomicBool = AtomicBool::new(false);
    let inside = Arc::new(Barrier::new(2));
    let (proceed, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let attached = TRIGGER
        .attach({
            let inside = Arc::clone(&inside);
            move |()| {
                inside.wait();
                wait.lock().unwrap().recv().unwrap();
                assert!(!DETACHED.load(SeqCst), "a thread is still inside");
            }
        })
        .unwrap();
    let visitor = thread::spawn(|| fire!(TRIGGER, &()));
    inside.wait();
    let closer = thread::spawn(move || {
        attached.detach();
        DETACHED.store(true, SeqCst);
    });
    // Gives the closer a chance to fail.
    thread::sleep(std::time::Duration::from_millis(50));
    proceed.send(()).unwrap();
    visitor.join().unwrap();
    closer.join().unwrap();
    assert!(DETACHED.load(SeqCst));
}

#[test]
fn a_callback_that_detaches_itself() {
    struct Owned(Arc<AtomicUsize>);
    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    static TRIGGER: Trigger<u32> = Trigger::new();
    let own: Arc<Mutex<Option<Attached<u32>>>> = Arc::default();
    let (calls, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let attached = TRIGGER
        .attach({
            let (own, calls, owned) = (Arc::clone(&own), Arc::clone(&calls), Owned(Arc::clone(&drops)));
            move |&depth| {
                calls.fetch_add(1, SeqCst);
                if depth > 0 {
                    fire!(TRIGGER, &(depth - 1));
                } else {
                    let attached = own.lock().unwrap().take();
                    attached.unwrap().detach();
                }
                assert_eq!(owned.0.load(SeqCst), 0, "what a callback owns lives while it runs");
            }
        })
        .unwrap();
    *own.lock().unwrap() = Some(attached);
    fire!(TRIGGER, &2);
    assert_eq!((calls.load(SeqCst), drops.load(SeqCst)), (3, 1));
    fire!(TRIGGER, &0);
    assert_eq!(calls.load(SeqCst), 3);
    TRIGGER.attach(|_| {}).unwrap().detach();
}

/// Threads that fire all the time never call a callback whose owner is gone.
#[test]
fn attaching_and_detaching_while_threads_fire() {
    static TRIGGER: Trigger<u64> = Trigger::new();
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    struct Canary(AtomicBool);
    impl Drop for Canary {
        fn drop(&mut self) {
            self.0.store(false, SeqCst);
        }
    }

    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    fire!(TRIGGER, &number);
                }
            })
        })
        .collect();
    for round in 0..300 {
        let canary = Canary(AtomicBool::new(true));
        let attached = TRIGGER
            .attach(move |_| {
                assert!(canary.0.load(SeqCst), "called after its end");
                CALLS.fetch_add(1, SeqCst);
            })
            .unwrap();
        let before = CALLS.load(SeqCst);
        while round % 100 == 0 && CALLS.load(SeqCst) == before {
            thread::yield_now();
        }
        attached.detach();
        let after = CALLS.load(SeqCst);
        thread::yield_now();
        assert_eq!(CALLS.load(SeqCst), after, "called after it was detached");
    }
    stop.store(true, SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// A thread that was inside at a fork does not exist in the child, which must not wait for it.
#[test]
fn a_child_does_not_wait_for_threads_of_its_parent() {
    static TRIGGER: Trigger<()> = Trigger::new();
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let inside = Arc::new(Barrier::new(2));
    let (proceed, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let attached = TRIGGER
        .attach({
            let inside = Arc::clone(&inside);
            move |()| {
                inside.wait();
                let _ = wait.lock().unwrap().recv();
            }
        })
        .unwrap();
    let visitor = thread::spawn(|| fire!(TRIGGER, &()));
    inside.wait();
    // SAFETY: the child allocates, which the C library allows after `fork`, and ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: kills a child that waits.
        unsafe { libc::alarm(20) };
        attached.detach();
        fire!(TRIGGER, &());
        let own = TRIGGER.attach(|()| _ = CALLS.fetch_add(1, SeqCst)).unwrap();
        fire!(TRIGGER, &());
        own.detach();
        fire!(TRIGGER, &());
        // SAFETY: has no obligations.
        unsafe { libc::_exit(if CALLS.load(SeqCst) == 1 { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: room for a status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's");
    proceed.send(()).unwrap();
    visitor.join().unwrap();
    attached.detach();
}
