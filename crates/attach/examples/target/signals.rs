//! Signals from a child while a recorder attaches: each is to have its effect once.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How many signals have been handled.
static HANDLED: AtomicI64 = AtomicI64::new(0);

extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

/// Handles signals that are queued for so long, and gives how many more were sent.
pub fn queued(milliseconds: i64) -> i64 {
    let until = Instant::now() + Duration::from_millis(milliseconds as u64);
    // SAFETY: a handler of the right type; the child makes system calls only.
    unsafe {
        let signal = libc::SIGRTMIN();
        libc::signal(signal, handle as *const () as libc::sighandler_t);
        let mut ends = [-1; 2];
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let parent = libc::getpid();
        if libc::fork() == 0 {
            let mut sent = 0_i64;
            while Instant::now() < until {
                let value = libc::sigval { sival_ptr: null_mut() };
                sent += i64::from(libc::sigqueue(parent, signal, value) == 0);
                libc::usleep(30);
            }
            libc::write(ends[1], (&raw const sent).cast(), size_of::<i64>());
            libc::_exit(0);
        }
        while Instant::now() < until {
            libc::usleep(1000);
        }
        let mut sent = 0_i64;
        while libc::read(ends[0], (&raw mut sent).cast(), size_of::<i64>()) < 0 {}
        std::thread::sleep(Duration::from_millis(100));
        sent - HANDLED.load(Relaxed)
    }
}

/// Is stopped by a child again and again for so long, and gives how often that had no effect.
pub fn stopped(milliseconds: i64) -> i64 {
    let until = Instant::now() + Duration::from_millis(milliseconds as u64);
    // SAFETY: the child makes system calls, and reads files.
    unsafe {
        let mut ends = [-1; 2];
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let parent = libc::getpid();
        if libc::fork() == 0 {
            let mut wrong = 0_i64;
            while Instant::now() < until {
                libc::kill(parent, libc::SIGSTOP);
                let begin = Instant::now();
                while !is_stopped(parent) {
                    if begin.elapsed() > Duration::from_secs(1) {
                        wrong += 1;
                        break;
                    }
                    libc::usleep(100);
                }
                libc::kill(parent, libc::SIGCONT);
                libc::usleep(1500);
            }
            libc::write(ends[1], (&raw const wrong).cast(), size_of::<i64>());
            libc::_exit(0);
        }
        while Instant::now() < until {
            libc::usleep(300);
        }
        let mut wrong = -1_i64;
        while libc::read(ends[0], (&raw mut wrong).cast(), size_of::<i64>()) < 0 {}
        wrong
    }
}

fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// A thread changes the process's user for so long, to the same one, for which the C library asks all others
/// by a signal, and waits for them.
pub fn users(milliseconds: i64) -> i64 {
    let until = Instant::now() + Duration::from_millis(milliseconds as u64);
    // SAFETY: calls with numbers.
    let change = move || unsafe {
        let mut failed = 0;
        while Instant::now() < until {
            failed += i64::from(libc::setuid(libc::getuid()) != 0);
        }
        failed
    };
    let other = std::thread::spawn(change);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_micros(200));
    }
    other.join().unwrap_or(-1)
}
