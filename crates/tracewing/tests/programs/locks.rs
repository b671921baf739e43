//! Takes the locks of `tracewing::sync`, with and without waiting, and prints for each place that does how
//! often it had one and how often it waited: `LINE ACQUIRED WAITED`. With the argument `plain`, a thread
//! waits for a lock of the standard library's, and `ADDRESS NS` says where that is and for how long it waited
//! at least.

use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tracewing::sync::{self, parking_lot};

const MANY: u32 = 1000;

/// Runs `waits` in a thread of its own, until that sleeps, then `lets_go`.
fn while_it_sleeps(waits: impl FnOnce() + Send, lets_go: impl FnOnce()) {
    static TID: AtomicI32 = AtomicI32::new(0);
    TID.store(0, SeqCst);
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: it only returns a number.
            TID.store(unsafe { libc::gettid() }, SeqCst);
            waits();
        });
        let sleeps = || {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", TID.load(SeqCst)));
            stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")))
        };
        while TID.load(SeqCst) == 0 || !sleeps() {
            thread::sleep(Duration::from_millis(1));
        }
        lets_go();
    });
}

/// Says how often the line above has had a lock, and waited for it.
macro_rules! check {
    ($acquired:expr, $waited:expr) => {
        println!("{} {} {}", line!() - 1, $acquired, $waited)
    };
}

fn standard() {
    let mutex = sync::Mutex::new(0);
    for _ in 0..MANY {
        *mutex.lock().unwrap() += 1;
        check_once(line!() - 1, MANY);
    }
    let held = mutex.lock().unwrap();
    check!(1, 0);
    assert!(mutex.try_lock().is_err());
    check!(0, 0);
    let wait = || {
        drop(mutex.lock().unwrap());
        check!(1, 1);
    };
    while_it_sleeps(wait, || drop(held));
    let lock = sync::RwLock::new(0);
    let reader = lock.read().unwrap();
    check!(1, 0);
    let other = lock.read().unwrap();
    check!(1, 0);
    let wait = || {
        *lock.write().unwrap() += 1;
        check!(1, 1);
    };
    while_it_sleeps(wait, || drop((reader, other)));
    let writer = lock.write().unwrap();
    check!(1, 0);
    let wait = || {
        assert_eq!(*lock.read().unwrap(), 1);
        check!(1, 1);
    };
    while_it_sleeps(wait, || drop(writer));
    let condition = sync::Condvar::new();
    let wait = || {
        let mut value = mutex.lock().unwrap();
        check!(1, 0);
        value = condition.wait_while(value, |value| *value > 0).unwrap();
        check!(1, 1);
        drop(value);
    };
    while_it_sleeps(wait, || {
        *mutex.lock().unwrap() = 0;
        check!(1, 0);
        condition.notify_one();
    });
}

fn others() {
    let mutex = parking_lot::Mutex::new(0);
    let held = mutex.lock();
    check!(1, 0);
    let wait = || {
        *mutex.lock() += 1;
        check!(1, 1);
    };
    while_it_sleeps(wait, || drop(held));
    let lock = parking_lot::RwLock::new(0);
    let reader = lock.read();
    check!(1, 0);
    let wait = || {
        *lock.write() += 1;
        check!(1, 1);
    };
    while_it_sleeps(wait, || drop(reader));
    let condition = parking_lot::Condvar::new();
    let wait = || {
        let mut value = mutex.lock();
        check!(1, 0);
        condition.wait_while(&mut value, |value| *value > 0);
        check!(1, 1);
    };
    while_it_sleeps(wait, || {
        *mutex.lock() = 0;
        check!(1, 0);
        assert!(condition.notify_one());
    });
    let held = mutex.lock();
    check!(1, 0);
    assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
    check!(0, 1);
    drop(held);
}

fn check_once(line: u32, acquired: u32) {
    static LAST: AtomicI32 = AtomicI32::new(0);
    if LAST.swap(line as i32, SeqCst) != line as i32 {
        println!("{line} {acquired} 0");
    }
}

fn plain() {
    let mutex = std::sync::Mutex::new(());
    let held = mutex.lock().unwrap();
    let (send, received) = mpsc::channel();
    while_it_sleeps(
        || drop(mutex.lock().unwrap()),
        || {
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(20));
            let _ = send.send(begin.elapsed());
            drop(held);
        },
    );
    println!("{} {}", (&raw const mutex).addr(), received.recv().unwrap().as_nanos());
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("plain") {
        return plain();
    }
    standard();
    others();
}
