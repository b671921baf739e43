//! The flight recorder on the running kernel: a snapshot holds the newest events of every CPU without a gap,
//! the next one overlaps it, what is not there any more is counted, and babeltrace2 has nothing to complain
//! about.

mod common;

use common::{Line, babeltrace, options, traceable};
use rustix::process::{Pid, getpriority_process};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity, set_name};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use tracewing_files::Dir;
use tracewing_kernel::{KernelClock, KernelFlightRecorder, Options, Scope, Summary};
use tracewing_units::Cycles;

/// The kernel's event whose one argument numbers the events of a test, and its name in the trace.
const NUMBERED: &str = "sys_enter_getpriority";
const TRACED: &str = "syscall_entry_getpriority";
const DUMP: &str = "lttng_statedump_process_state";

/// Emits the events `numbers`.
fn emit(numbers: std::ops::Range<i32>) {
    for number in numbers {
        let _ = std::hint::black_box(getpriority_process(Pid::from_raw(number)));
    }
}

/// The numbers of a thread's events, in the order of the trace.
fn numbers(lines: &[Line], tid: i32) -> Vec<i128> {
    lines
        .iter()
        .filter(|line| line.name == TRACED && line.tid == tid)
        .map(|line| line.number("who"))
        .collect()
}

fn pin_to_one_cpu() {
    let mut set = CpuSet::new();
    set.set(sched_getcpu());
    sched_setaffinity(None, &set).unwrap();
}

/// On each of the CPUs that this thread may use.
fn on_every_cpu(work: impl Fn()) {
    let allowed = sched_getaffinity(None).unwrap();
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).unwrap();
        work();
    }
}

fn own_tid() -> i32 {
    gettid().as_raw_nonzero().get()
}

/// Starts recording this thread.
fn start(globs: &[&str], buffer_kib: u32) -> KernelFlightRecorder {
    start_with(Options { buffer_kib, ..options(Scope::Tree, globs) })
}

fn start_with(options: Options) -> KernelFlightRecorder {
    let mut recorder = KernelFlightRecorder::start(&options).unwrap();
    recorder.set_root_pid(tracewing_units::Pid(own_tid())).unwrap();
    recorder
}

/// A snapshot into `dir/name`, which must be complete.
fn snapshot(recorder: &mut KernelFlightRecorder, dir: &Path, nth: u8) -> (Summary, Option<Vec<Line>>) {
    snapshot_of(recorder, dir, nth, KernelClock::Mono.now())
}

/// One of the moment `taken`.
fn snapshot_of(
    recorder: &mut KernelFlightRecorder,
    dir: &Path,
    nth: u8,
    taken: Cycles,
) -> (Summary, Option<Vec<Line>>) {
    let (parent, name) = (Dir::parent(dir).unwrap(), nth.to_string());
    let trace = dir.join(&name);
    let summary = recorder.snapshot(&parent, &name, [nth; 16], taken).unwrap();
    assert!(summary.unwritten.is_none(), "{summary:?}");
    assert!(summary.streams.iter().all(|stream| stream.losses.events == 0), "{summary:?}");
    let lines = babeltrace(&trace);
    if let Some(lines) = &lines {
        let events: u64 = summary.streams.iter().map(|stream| stream.events).sum();
        assert_eq!(lines.len() as u64, events);
        assert!(lines.windows(2).all(|pair| pair[0].stamp <= pair[1].stamp));
    }
    (summary, lines)
}

fn gone(summary: &Summary) -> u64 {
    summary.streams.iter().filter_map(|stream| stream.overwritten).map(|range| range.events).sum()
}

#[test]
fn each_snapshot_has_the_newest_events_and_overlaps_the_one_before() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = start(&[NUMBERED], 1024);
    let mut emitted = 0;
    for nth in 1..=4 {
        emit(emitted + 1..emitted + 501);
        emitted += 500;
        let (summary, lines) = snapshot(&mut recorder, dir.path(), nth);
        assert_eq!(gone(&summary), 0);
        let Some(lines) = lines else { continue };
        assert_eq!(numbers(&lines, own_tid()), (1..=i128::from(emitted)).collect::<Vec<_>>());
    }
    let progress = recorder.progress().unwrap();
    assert_eq!((progress.events, progress.lost, progress.bytes), (emitted as u64, 0, 0));
    emit(emitted + 1..emitted + 2);
    recorder.stop().unwrap();
    emit(emitted + 2..emitted + 3);
    let (_, lines) = snapshot(&mut recorder, dir.path(), 5);
    if let Some(lines) = lines {
        assert_eq!(numbers(&lines, own_tid()).last(), Some(&i128::from(emitted + 1)));
    }
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn a_snapshot_ends_on_every_cpu_at_its_moment() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = start(&[NUMBERED], 1024);
    let last = std::cell::Cell::new(0);
    let emit_everywhere = || {
        on_every_cpu(|| {
            emit(last.get() + 1..last.get() + 101);
            last.set(last.get() + 100);
        });
    };
    emit_everywhere();
    let (before, taken) = (last.get(), KernelClock::Mono.now());
    emit_everywhere();
    for (nth, taken, end) in [(1, taken, before), (2, KernelClock::Mono.now(), last.get())] {
        let (_, Some(lines)) = snapshot_of(&mut recorder, dir.path(), nth, taken) else { return };
        assert_eq!(numbers(&lines, own_tid()), (1..=i128::from(end)).collect::<Vec<_>>());
        assert!(lines.iter().all(|line| line.stamp <= taken.0), "{:?} after {taken:?}", lines.last());
    }
    // All that was there is overwritten since: what is there instead is kept, and its moment is later.
    pin_to_one_cpu();
    let taken = KernelClock::Mono.now();
    emit(1..100_000);
    let (summary, lines) = snapshot_of(&mut recorder, dir.path(), 3, taken);
    assert!(gone(&summary) > 0);
    assert_eq!(numbers(&lines.unwrap(), own_tid()).last(), Some(&99_999));
}

#[test]
fn the_oldest_events_are_dropped_without_a_later_gap_and_counted() {
    if !traceable() {
        return;
    }
    for sub_buffer_kib in [None, Some(16)] {
        check_oldest(sub_buffer_kib);
    }
}

fn check_oldest(sub_buffer_kib: Option<u32>) {
    pin_to_one_cpu();
    let dir = tempfile::tempdir().unwrap();
    let mut recorder =
        start_with(Options { buffer_kib: 64, sub_buffer_kib, ..options(Scope::Tree, &[NUMBERED]) });
    let mut emitted = 0;
    // A buffer that has wrapped many times; then two rounds of which the second's snapshot needs pages of the
    // first's; then one that has wrapped again.
    for (nth, count) in [(1, 50_000), (2, 500), (3, 500), (4, 20_000)] {
        emit(emitted + 1..emitted + count + 1);
        emitted += count;
        let (summary, lines) = snapshot(&mut recorder, dir.path(), nth);
        let Some(lines) = lines else { continue };
        let found = numbers(&lines, own_tid());
        assert_eq!(found.len() as u64 + gone(&summary), emitted as u64, "each is there, or counted");
        assert!(found.len() > 700, "64 KiB hold more than {} events", found.len());
        let newest: Vec<_> = (i128::from(emitted) - found.len() as i128 + 1..=i128::from(emitted)).collect();
        assert_eq!(found, newest, "the newest ones, without a gap");
        let range = summary.streams.iter().find_map(|stream| stream.overwritten).unwrap();
        let first = lines.iter().find(|line| line.name == TRACED).unwrap();
        assert!(range.begin < range.end && range.end.0 <= first.stamp, "{range:?} {first:?}");
    }
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn snapshots_while_every_cpu_records_are_gap_free() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = start(&[NUMBERED], 256);
    let stop = Arc::new(AtomicBool::new(false));
    let (say, tids) = mpsc::channel();
    let threads: Vec<_> = (0..2)
        .map(|cpu| {
            let (say, stop) = (say.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut set = CpuSet::new();
                set.set(cpu);
                let _ = sched_setaffinity(None, &set);
                emit(1..1001);
                say.send(own_tid()).unwrap();
                let mut next = 1001;
                while !stop.load(Relaxed) {
                    emit(next..next + 100);
                    next += 100;
                }
            })
        })
        .collect();
    let tids = [tids.recv().unwrap(), tids.recv().unwrap()];
    for nth in 1..=10 {
        std::thread::sleep(std::time::Duration::from_millis(30));
        let (_, lines) = snapshot(&mut recorder, dir.path(), nth);
        let Some(lines) = lines else { continue };
        let found = tids.map(|tid| numbers(&lines, tid));
        for (found, tid) in found.iter().zip(tids) {
            assert!(found.windows(2).all(|pair| pair[0] + 1 == pair[1]), "snapshot {nth}, thread {tid}");
        }
        // With one CPU, one thread's may have taken the place of all of the other's.
        assert!(found.iter().map(Vec::len).sum::<usize>() > 100);
    }
    stop.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(recorder.finish(), [""; 0]);
}

#[test]
fn a_snapshot_names_the_threads_whose_creation_was_overwritten() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = start(&["task_newtask", NUMBERED], 64);
    let (go, wait) = mpsc::channel::<()>();
    let (say, tid) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        set_name(c"old (thread)").unwrap();
        say.send(own_tid()).unwrap();
        // Fills the buffers of whatever CPU it is on, and of all others.
        on_every_cpu(|| emit(1..20_000));
        say.send(0).unwrap();
        let _ = wait.recv();
    });
    let tid_of_thread = tid.recv().unwrap();
    tid.recv().unwrap();
    let (summary, lines) = snapshot(&mut recorder, dir.path(), 1);
    go.send(()).unwrap();
    thread.join().unwrap();
    assert!(gone(&summary) > 0);
    let Some(lines) = lines else { return };
    let dumps: Vec<&Line> = lines.iter().filter(|line| line.name == DUMP).collect();
    let dump = dumps.iter().find(|line| line.number("tid") == i128::from(tid_of_thread)).unwrap();
    assert_eq!(dump.number("pid"), i128::from(std::process::id()));
    assert_eq!(dump.field("name"), "\"old (thread)\"");
    assert!(dump.field("type").contains("user_thread"), "{dump:?}");
    assert_eq!(dump.tid, own_tid(), "the recorder writes it");
    assert_eq!(dumps.len(), 2, "of a tree, its members only");
    assert!(!lines.iter().any(|line| line.name == "task_newtask"), "its creation was overwritten");

    // The thread has ended; its events are still there, and so is its process.
    let (_, lines) = snapshot(&mut recorder, dir.path(), 2);
    let lines = lines.unwrap();
    let dumped = |line: &&Line| line.name == DUMP && line.number("tid") == i128::from(tid_of_thread);
    let dump = lines.iter().find(dumped).unwrap();
    assert_eq!(dump.number("pid"), i128::from(std::process::id()));
    assert!(dump.field("status").contains("dead"), "{dump:?}");
    // When these are overwritten too, nothing is said of it.
    on_every_cpu(|| emit(1..20_000));
    let (_, lines) = snapshot(&mut recorder, dir.path(), 3);
    assert_eq!(lines.unwrap().iter().find(dumped), None);
}

#[test]
fn the_state_dump_of_a_system_has_all_its_threads() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recorder = KernelFlightRecorder::start(&options(Scope::System, &[])).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let (_, lines) = snapshot(&mut recorder, dir.path(), 1);
    let Some(lines) = lines else { return };
    let of = |tid: i32| lines.iter().find(|line| line.name == DUMP && line.number("tid") == i128::from(tid));
    assert!(of(2).is_none_or(|kthreadd| kthreadd.field("type").contains("kernel_thread")));
    assert_eq!(of(own_tid()).unwrap().number("pid"), i128::from(std::process::id()));
    assert!(lines.iter().any(|line| line.name == "sched_switch"));
}

#[test]
fn a_dropped_recorder_leaves_no_instance_and_its_snapshots() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    const KIB: u32 = 112;
    let mut recorder = start(&[NUMBERED], KIB);
    emit(1..11);
    snapshot(&mut recorder, dir.path(), 1);
    let (parent, taken) = (Dir::parent(dir.path()).unwrap(), KernelClock::Mono.now());
    let error = recorder.snapshot(&parent, "1", [2; 16], taken).unwrap_err().to_string();
    assert!(error.contains("/1: File exists"), "a folder that is there is refused: {error}");
    emit(11..21);
    let (_, lines) = snapshot(&mut recorder, dir.path(), 2);
    if let Some(lines) = lines {
        assert_eq!(numbers(&lines, own_tid()).len(), 20, "a failed snapshot loses nothing");
    }
    assert_eq!(common::instances_with(KIB).len(), 1);
    drop(recorder);
    assert_eq!(common::instances_with(KIB).len(), 0);
    assert!(dir.path().join("2/metadata").exists());
}
