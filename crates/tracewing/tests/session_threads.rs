//! Sessions that begin and end while threads emit, and while children that were forked meanwhile do: each
//! trace is complete, and the program's memory does not grow.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracewing::{Event, Session, SessionError, SessionSummary, emit};

#[derive(Event)]
#[event(provider = "busy")]
struct Step {
    thread: u64,
    number: u64,
}

#[derive(Event)]
#[event(provider = "busy")]
struct Word<'a> {
    thread: u64,
    number: u64,
    text: &'a str,
}

/// One test at a time: a process has one recording.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn step(thread: u64, number: u64) {
    if number % 4 == 3 {
        emit!(Word { thread, number, text: "gathered" });
    } else {
        emit!(Step { thread, number });
    }
}

/// Numbers in a trace by thread, in order, as babeltrace2 reads it; `None` where it is not installed.
fn numbers(trace: &Path, lost: u64) -> Option<BTreeMap<u64, Vec<u64>>> {
    let Ok(output) = Command::new("babeltrace2").arg(trace).output() else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return None;
    };
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.lines().all(|line| line.contains("Tracer discarded")), "{warnings}");
    assert_eq!(warnings.is_empty(), lost == 0, "{warnings}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("busy:")) {
        let field = |name: &str| -> u64 {
            let rest = line.split_once(&format!("{name} = ")).unwrap().1;
            rest.split([' ', ',']).next().unwrap().parse().unwrap()
        };
        numbers.entry(field("thread")).or_default().push(field("number"));
    }
    Some(numbers)
}

/// Numbers of one thread between which none is missing, as far as none was lost.
fn check_numbers(numbers: &[u64], lost: u64) {
    assert!(numbers.is_sorted_by(|a, b| a < b), "an order in which they were never emitted: {numbers:?}");
    let span = numbers.last().unwrap() - numbers[0] + 1;
    assert!(span - numbers.len() as u64 <= lost, "{span} emitted, {} listed, {lost} lost", numbers.len());
}

fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// A session among threads that emit all the time.
fn cycle(trace: &Path, monotonic: bool, during: impl FnOnce()) -> SessionSummary {
    let builder = Session::builder().output(trace).sub_buffer_size(16 << 10).sub_buffers(4);
    let builder = if monotonic { builder.monotonic_clock() } else { builder };
    let session = builder.start().unwrap();
    during();
    session.stop().unwrap()
}

/// Runs `body` while threads emit, in bursts, so that there is not too much to check.
fn among_threads(body: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..8 {
            let done = &done;
            scope.spawn(move || {
                let mut numbers = 0..;
                while !done.load(Relaxed) {
                    numbers.by_ref().take(200).for_each(|number| step(worker, number));
                    thread::sleep(Duration::from_micros(500));
                }
            });
        }
        // The threads end even where a check fails.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        done.store(true, Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn two_hundred_sessions_among_eight_threads() {
    let _alone = alone();
    for monotonic in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut before = 0;
        among_threads(|| {
            for round in 0..100 {
                let trace = folder.path().join(round.to_string());
                let summary = cycle(&trace, monotonic, thread::yield_now);
                // Events that were lost are not in order with those that were not, so that gaps are theirs.
                if round % 25 == 0
                    && let Some(found) = numbers(&trace, summary.lost)
                {
                    found.values().for_each(|numbers| check_numbers(numbers, summary.lost));
                }
                if round == 10 {
                    before = mappings();
                }
                fs::remove_dir_all(trace).unwrap();
            }
            // The allocator's own mappings come and go; a region or a page per session would be 90.
            let grown = mappings().saturating_sub(before);
            assert!(grown < 20, "{grown} mappings more after 90 sessions");
        });
    }
}

#[test]
fn emitted_between_start_and_stop_is_listed_or_lost() {
    let _alone = alone();
    for monotonic in [false, true] {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let trace = folder.path().join("t");
            let emitted = AtomicU64::new(0);
            let summary = cycle(&trace, monotonic, || {
                thread::scope(|scope| {
                    for worker in 0..8 {
                        let emitted = &emitted;
                        scope.spawn(move || {
                            (0..500).for_each(|number| step(worker, number));
                            emitted.fetch_add(500, Relaxed);
                        });
                    }
                });
            });
            // And the announcement of each thread.
            assert_eq!(summary.events + summary.lost, emitted.into_inner() + 8);
        }
    }
}

#[test]
fn sessions_started_at_once_see_the_same() {
    let _alone = alone();
    for round in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let start = |name: String| Session::builder().output(folder.path().join(name)).start();
        let barrier = std::sync::Barrier::new(3);
        let sessions: Vec<Result<Session, SessionError>> = thread::scope(|scope| {
            let starting: Vec<_> = (0..3)
                .map(|name| {
                    let (barrier, start) = (&barrier, &start);
                    scope.spawn(move || {
                        barrier.wait();
                        start(format!("{round}-{name}"))
                    })
                })
                .collect();
            starting.into_iter().map(|starting| starting.join().unwrap()).collect()
        });
        step(0, round);
        for session in sessions {
            let summary = session.unwrap().stop().unwrap();
            assert_eq!((summary.events, summary.lost), (2, 0));
        }
    }
}

/// A child continues in shared buffers; with protocol `Smp` it does not take part in its parent's session.
#[test]
fn forked_children_share_a_session_or_are_left_out() {
    let _alone = alone();
    for monotonic in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        let summary = cycle(&trace, monotonic, || {
            step(0, 0);
            for child in 1..=5 {
                // SAFETY: the child emits and ends.
                let pid = unsafe { libc::fork() };
                if pid == 0 {
                    (0..10).for_each(|number| step(child, number));
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(0) };
                }
                let mut status = 0;
                // SAFETY: the child just made.
                assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
                assert_eq!(status, 0);
            }
            step(0, 1);
        });
        assert_eq!(summary.lost, 0);
        if let Some(found) = numbers(&trace, 0) {
            assert_eq!(found[&0], [0, 1]);
            let shares = found.len() == 6 && found.iter().skip(1).all(|(_, numbers)| numbers.len() == 10);
            assert!(shares || found.len() == 1, "{found:?}");
            assert!(!(monotonic && shares));
        }
    }
}

/// A site has looked whether its class is on, and then, before it emits, the class is switched off.
#[test]
fn an_event_whose_class_was_switched_off_meanwhile_is_not_recorded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let session = Session::builder().output(folder.path().join("t")).event("other:*").start().unwrap();
    tracewing::__private::EventSite::<(), _>::new().record(&Step { thread: 0, number: 0 });
    tracewing::__private::EventSite::<(), _>::new().record(&Word { thread: 0, number: 1, text: "gathered" });
    let summary = session.stop().unwrap();
    assert_eq!((summary.events, summary.lost), (0, 0));
}
