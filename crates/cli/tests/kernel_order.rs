//! User events and kernel events have one true order: every event of a thread lies on the CPU and within the
//! times at which the scheduler's own events say that it ran, to within the clock error of
//! `docs/explanation/clock.md`.
//!
//! Some virtual machines record no switch away from certain threads (idle ones that were restored from a
//! snapshot): where only a stretch's end is recorded, the switch before it on that CPU bounds its beginning.

mod harness;
mod kernel_common;

use harness::traceable;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel_common::{Event, end, events, listing, play, player, record, role_is, summary};
use tracewing::emit;

const THREADS: u32 = 6;
const ROUNDS: u32 = 4_000;
/// Documented clock error, ns.
const CLOCK_ERROR: i128 = 1_000;

#[derive(tracewing::Event)]
#[event(provider = "order")]
struct Step {
    thread: u32,
    round: u32,
}

/// The program: threads that wake each other in a ring, move between CPUs, yield, sleep and compute.
#[test]
fn program() {
    if !role_is("program") {
        return;
    }
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    for _ in 0..THREADS {
        let (sender, receiver) = std::sync::mpsc::sync_channel::<()>(64);
        sending.push(sender);
        receiving.push(receiver);
    }
    sending.rotate_left(1);
    let cpus = allowed_cpus();
    std::thread::scope(|scope| {
        for (thread, (sender, receiver)) in (0..).zip(sending.into_iter().zip(receiving)) {
            let cpus = &cpus;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    emit!(Step { thread, round });
                    match (round + thread) % 8 {
                        0 => run_on(cpus[((round / 8 + thread) as usize) % cpus.len()]),
                        2 => std::thread::yield_now(),
                        4 => {
                            let _ = sender.try_send(());
                        }
                        5 => {
                            let _ = receiver.recv_timeout(Duration::from_micros(100));
                        }
                        6 => {
                            std::hint::black_box(
                                (0..2_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)),
                            );
                        }
                        _ => {}
                    }
                    emit!(Step { thread, round });
                }
            });
        }
    });
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: an all-zero set is a valid one, and the call writes no more than its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        set
    };
    // SAFETY: the index is within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

fn run_on(cpu: usize) {
    // SAFETY: an all-zero set is a valid one, the CPU is one of an equally large set, and the calling thread
    // is meant.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
    }
}

/// A time during which a thread ran on a CPU.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    tid: i64,
    begin: u64,
    end: u64,
    /// No switch to the thread was recorded.
    begin_unseen: bool,
}

/// Which thread ran when on each CPU, by the scheduler's events.
fn stretches(events: &[Event<'_>]) -> BTreeMap<u32, Vec<Stretch>> {
    let mut all: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "sched_switch") {
        let cpu = all.entry(event.cpu).or_default();
        let (prev, next, now) = (event.number("prev_tid"), event.number("next_tid"), event.stamp);
        let seen = cpu.last().is_some_and(|stretch| stretch.tid == prev);
        if !seen {
            let begin = cpu.last().map_or(0, |stretch| stretch.begin);
            cpu.push(Stretch { tid: prev, begin, end: now, begin_unseen: true });
        }
        cpu.last_mut().unwrap().end = now;
        cpu.push(Stretch { tid: next, begin: now, end: u64::MAX, begin_unseen: false });
    }
    all
}

/// How far a stamp lies outside of the nearest of the thread's stretches, cycles; negative is inside.
fn deviation(stretches: &[Stretch], tid: i64, stamp: u64) -> Option<i64> {
    let near = stretches.partition_point(|stretch| stretch.begin <= stamp);
    let near = near.saturating_sub(4)..(near + 4).min(stretches.len());
    stretches[near]
        .iter()
        .filter(|stretch| stretch.tid == tid)
        .map(|stretch| {
            let before = (stretch.begin as i64).wrapping_sub(stamp as i64);
            let after = (stamp as i64).saturating_sub(i64::try_from(stretch.end).unwrap_or(i64::MAX));
            before.max(after)
        })
        .min()
}

#[test]
fn user_events_lie_within_the_times_at_which_their_thread_ran() {
    if !traceable() {
        return;
    }
    for options in [&[][..], &["--clock", "mono"], &["--system-wide"]] {
        let folder = tempfile::tempdir().unwrap();
        let command = player("program");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let options = [options, &["-k", "sched_*", "--sub-buffers", "32"]].concat();
        let output = end(play(&mut record(folder.path(), &options, &command), "program").spawn().unwrap());
        assert!(output.status.success());
        let summary = summary(&output);
        assert_eq!(summary["lost_events"], 0, "{summary}");
        let frequency = summary["frequency_hz"].as_u64().unwrap();
        let (text, warnings) = listing(&folder.path().join("t"));
        assert_eq!(warnings, "");
        let events = events(&text);

        let stretches = stretches(&events);
        let mine: Vec<&Event<'_>> = events.iter().filter(|event| event.name == "order:step").collect();
        assert_eq!(mine.len() as u32, 2 * THREADS * ROUNDS);
        let tids: BTreeSet<i32> = mine.iter().map(|event| event.tid).collect();
        assert_eq!(tids.len() as u32, THREADS);
        let mut worst = i128::MIN;
        let (mut last_cpu, mut migrations) = (BTreeMap::new(), 0);
        for event in mine {
            let ran = stretches.get(&event.cpu).map_or(&[][..], Vec::as_slice);
            let cycles = deviation(ran, event.tid.into(), event.stamp).unwrap_or_else(|| {
                panic!("the kernel says nothing of this thread there and then: {event:?}")
            });
            let ns = i128::from(cycles) * 1_000_000_000 / i128::from(frequency);
            assert!(ns <= CLOCK_ERROR, "{ns} ns outside of the thread's time: {event:?}");
            worst = worst.max(ns);
            migrations +=
                u64::from(last_cpu.insert(event.tid, event.cpu).is_some_and(|cpu| cpu != event.cpu));
        }
        let of_mine = |stretch: &&Stretch| tids.iter().any(|tid| i64::from(*tid) == stretch.tid);
        let runs: Vec<&Stretch> = stretches.values().flatten().filter(of_mine).collect();
        let unseen = runs.iter().filter(|run| run.begin_unseen).count();
        println!(
            "{options:?}: {} user events in {} stretches ({unseen} without a switch at their begin), {migrations} \
             migrations between events; worst deviation {worst} ns (negative: inside)",
            2 * THREADS * ROUNDS,
            runs.len()
        );
        assert!(runs.len() > 1_000, "too few switches to report anything: {}", runs.len());
        assert!(unseen < runs.len() / 2, "{unseen} of {}", runs.len());
        assert!(migrations > 100 || allowed_cpus().len() == 1, "{migrations} migrations");
    }
}
