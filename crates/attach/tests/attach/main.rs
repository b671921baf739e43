//! Attaching to real processes: what they were doing continues as if nothing had happened, and a process that
//! cannot be attached to gives the reason.

mod calls;
mod moments;
mod refused;
mod waiting;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tracewing_attach::{Place, Refusal, Target};
use tracewing_testing::{NOBODY, become_user, is_root};
use waiting::{PROGRAM, Waiting};

#[test]
fn calls_keep_their_time_outs_and_results() {
    for way in ["poll", "ppoll", "select", "nanosleep", "epoll_wait"] {
        let program = Waiting::new(way, 1000);
        // The program may have been built first.
        let waits = Instant::now();
        let mut last = Duration::ZERO;
        while waits.elapsed() < Duration::from_millis(600) {
            last = waits.elapsed();
            let called = program.attach().unwrap();
            assert_eq!((called.result, called.tid), (42, program.pid.first_thread()), "{way}");
            std::thread::sleep(Duration::from_millis(50));
        }
        // How late threads of this machine wake at present.
        let (sleeps, rest) = (Instant::now(), Duration::from_secs(1).saturating_sub(waits.elapsed()));
        std::thread::sleep(rest);
        let late = sleeps.elapsed().saturating_sub(rest);
        let waited = program.end();
        assert_eq!((waited.result, waited.error), (0, 0), "{way}: {waited:?}");
        // No sooner than it was asked for; if it had begun anew after the last call, a second after that.
        assert!(waited.calls > 1 && waited.milliseconds >= 999, "{way}: {waited:?}");
        let anew = 1000 + (last + late).as_millis() as u64;
        assert!(waited.milliseconds < anew, "{way}: {waited:?}, last call after {last:?}, {late:?} late");
    }
}

#[test]
fn a_read_continues() {
    let program = Waiting::new("read", 0);
    (0..20).for_each(|_| assert_eq!(program.attach().unwrap().result, 42));
    let waited = program.end();
    assert_eq!((waited.result, waited.error, waited.calls), (0, 0, 20), "{waited:?}");
}

/// Attaches for a second to a program that counts what is not as it would have been.
fn attach_to_counting(way: &str) {
    let program = Waiting::new(way, 2000);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        assert_eq!(program.attach().unwrap().result, 42);
    }
    let waited = program.end();
    assert!(waited.result == 0 && waited.calls > 20, "{way}: {waited:?}");
}

#[test]
fn registers_stay() {
    attach_to_counting("registers");
}

#[test]
fn signals_interrupt_what_they_would_have() {
    attach_to_counting("interrupted");
}

/// Those that come while a thread is stopped, or is about to be, have their effect.
#[test]
fn no_signal_is_lost() {
    for way in ["queued", "stopped"] {
        let mut program = Waiting::new(way, 4000);
        let mut called = 0;
        while program.is_waiting() {
            called += u64::from(program.attach_at_once().is_ok());
        }
        let waited = program.end();
        assert!(waited.result == 0 && waited.calls >= called && called > 0, "{way}: {waited:?}");
    }
}

/// Threads that change their process's user wait for a signal's effect on the others, with a lock that the
/// call needs.
#[test]
fn while_its_user_is_changed() {
    let mut program = Waiting::new("users", 3000);
    let begin = Instant::now();
    while program.is_waiting() {
        let _ = program.attach_at_once();
        assert!(begin.elapsed() < Duration::from_secs(60), "its threads wait for each other");
    }
    let waited = program.end();
    assert!(waited.result == 0 && waited.calls > 0, "{waited:?}");
}

#[test]
fn one_of_many_threads_is_borrowed() {
    for way in ["threads", "join"] {
        let program = Waiting::new(way, 3000);
        assert_eq!(program.attach().unwrap().result, 42);
        let waited = program.end();
        assert_eq!((waited.result, waited.error, waited.calls), (0, 0, 1), "{way}: {waited:?}");
    }
}

#[test]
fn threads_that_may_hold_locks_are_left_alone() {
    for way in ["busy", "lock", "handler", "handler_aside"] {
        let program = Waiting::new(way, 1500);
        let begin = Instant::now();
        let is_handler = way.starts_with("handler");
        while begin.elapsed() < Duration::from_millis(700) {
            let refusal = program.attach_at_once().unwrap_err();
            assert!(matches!(refusal, Refusal::Busy { threads, .. } if threads > 0), "{way}: {refusal}");
        }
        if is_handler {
            assert_eq!(program.end().calls, 0);
        }
    }
}

#[test]
fn filters_for_system_calls_are_heeded() {
    if !is_root() {
        return;
    }
    let program = Waiting::new("allow", 1000);
    assert_eq!(program.attach().unwrap().result, 42);
    assert_eq!(program.end().calls, 1);
    let program = Waiting::new("no_clone", 1000);
    let refusal = program.attach().unwrap_err();
    assert!(matches!(refusal, Refusal::Filtered { call: "clone3", .. }), "{refusal}");
    assert_eq!(program.end().calls, 0);
}

/// Also of a thread that is found to be unfit once it has stopped.
#[test]
fn the_longest_stop_is_measured() {
    for (way, is_stopped) in [("poll", true), ("handler", true), ("busy", false)] {
        let program = Waiting::new(way, 60_000);
        let target = Target::open(program.pid).unwrap();
        assert_eq!(target.longest_stop(), None, "{way}");
        let begin = Instant::now();
        let result = loop {
            match target.call(Place { entry: program.entry, word: None }, &waiting::CLONE3, Duration::ZERO) {
                Err(Refusal::Busy { .. }) if is_stopped && target.longest_stop().is_none() => {}
                result => break result,
            }
        };
        let all = begin.elapsed();
        match target.longest_stop() {
            Some(stop) => assert!(is_stopped && !stop.is_zero() && stop < all, "{way}: {stop:?} of {all:?}"),
            None => assert!(!is_stopped, "{way}: {result:?}"),
        }
        if let Ok(called) = result {
            assert!(Some(called.stopped) <= target.longest_stop(), "{called:?}");
        }
    }
}

/// One that attaches again and again, at a random moment within its attempts.
struct Attaching {
    child: Child,
    seed: u64,
}

impl Attaching {
    fn new(program: &Waiting, seed: u64) -> Self {
        let (pid, entry) = (program.pid.to_string(), program.entry.to_string());
        let arguments = ["attach", &pid, &entry, "100000"];
        let mut child = Command::new(&*PROGRAM).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        // It has begun.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self { child, seed }
    }

    /// Waits until another moment, which gives another seed.
    fn wait(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let until = Instant::now() + Duration::from_nanos((self.seed >> 33) % 2_000_000);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.seed
    }
}

impl Drop for Attaching {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A recorder is killed at any moment, and the process continues, with its registers and its call. Only
/// `epoll_wait` may return early, with `EINTR`, as after every stop.
#[test]
fn a_killed_recorder_leaves_a_process_that_continues() {
    for way in ["registers", "poll", "epoll_wait", "interrupted"] {
        let mut program = Waiting::new(way, 4000);
        let begin = Instant::now();
        let mut seed = 1_u64;
        while begin.elapsed() < Duration::from_millis(2500) && program.is_waiting() {
            seed = Attaching::new(&program, seed).wait();
        }
        let waited = program.end();
        // A recorder killed before it repeats the interrupted `epoll_wait` leaves the kernel's EINTR.
        let is_interrupted = way == "epoll_wait" && waited.error == libc::EINTR;
        assert!(waited.result == 0 || is_interrupted, "{way}: {waited:?}");
        assert!(is_interrupted || waited.calls > 20, "{way}: {waited:?}");
    }
}

/// A recorder is stopped at any moment, for longer than the borrowed thread waits for it: the thread
/// restores itself, and the recorder, which continues, leaves it as it finds it.
#[test]
fn a_late_recorder_leaves_a_process_that_continues() {
    for way in ["registers", "turns", "interrupted", "awaited"] {
        let mut program = Waiting::new(way, 10_000);
        let begin = Instant::now();
        let mut attaching = Attaching::new(&program, 2);
        while begin.elapsed() < Duration::from_millis(8000) && program.is_waiting() {
            attaching.wait();
            tracewing_testing::signal(attaching.child.id(), libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(100));
            tracewing_testing::signal(attaching.child.id(), libc::SIGCONT);
        }
        drop(attaching);
        let waited = program.end();
        // Before a call in which it waits for a signal, a program may get no turn until that has come.
        let most = if way == "awaited" { 1 } else { 0 };
        // On a busy machine, few recorders get so far.
        assert!(waited.result <= most && waited.calls > 2, "{way}: {waited:?}");
    }
}
