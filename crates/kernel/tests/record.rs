//! Known workloads on the running kernel: every event is there, once, with the right fields, and babeltrace2
//! agrees.

mod common;

use common::{Actor, Line, babeltrace, babeltrace_loud, gate, options, role, say, traceable};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::getppid;
use rustix::thread::{CpuSet, gettid, nanosleep, sched_setaffinity};
use rustix::time::Timespec;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tracewing_kernel::{
    KernelClock, KernelRecorder, Options, POLL_INTERVAL, Scope, StreamSummary, Summary, Tracefs,
};
use tracewing_units::{Cycles, Pid};

/// Counts of what the actor `worker` does.
const PARENTS: usize = 5_000;
const SLEEPS: usize = 40;
const OPENS: usize = 300;
const ROUNDS: usize = 500;
/// Flags that no other process's `openat` has.
const FLAGS: OFlags = OFlags::from_bits_retain(0x0021_0000);

/// An actor: a known number of system calls, then two threads on two CPUs that pass a byte to and fro.
#[test]
fn worker() {
    if role("worker").is_none() {
        return;
    }
    say("tid", gettid());
    gate();
    for _ in 0..PARENTS {
        std::hint::black_box(getppid());
    }
    for _ in 0..SLEEPS {
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 50_000 });
    }
    for _ in 0..OPENS {
        drop(openat(CWD, "/proc", FLAGS | OFlags::CLOEXEC, Mode::empty()));
    }
    let (ping_out, ping_in) = rustix::pipe::pipe().unwrap();
    let (pong_out, pong_in) = rustix::pipe::pipe().unwrap();
    let other = std::thread::spawn(move || {
        pin(1);
        let tid = gettid();
        for _ in 0..ROUNDS {
            rustix::io::read(&ping_out, &mut [0]).unwrap();
            rustix::io::write(&pong_in, &[1]).unwrap();
        }
        tid
    });
    pin(0);
    for _ in 0..ROUNDS {
        rustix::io::write(&ping_in, &[1]).unwrap();
        rustix::io::read(&pong_out, &mut [0]).unwrap();
    }
    say("other", other.join().unwrap());
}

/// Machines with one CPU run both threads there.
fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

fn written(summary: &Summary) -> usize {
    summary.streams.iter().map(|stream| stream.events as usize).sum()
}

fn lost(summary: &Summary) -> u64 {
    summary.streams.iter().map(|stream| stream.losses.events).sum()
}

/// Records an actor and gives the recording's summary and the numbers of its two threads.
fn record(dir: &Path, scope: Scope, globs: &[&str]) -> (Summary, i32, i32) {
    let mut recorder = common::start_in(dir, &options(scope, globs)).unwrap();
    let mut actor = Actor::start("worker", Path::new(""));
    let tid = actor.expect("tid").parse().unwrap();
    if scope == Scope::Tree {
        recorder.set_root_pid(Pid(tid)).unwrap();
    }
    actor.go();
    while actor.child.try_wait().unwrap().is_none() {
        recorder.poll(true).unwrap();
        std::thread::sleep(POLL_INTERVAL);
    }
    let other = actor.expect("other").parse().unwrap();
    assert!(actor.wait().success());
    // A parent may know of a thread's end before the thread has switched away for the last time, for which it
    // may need its turn.
    std::thread::sleep(10 * POLL_INTERVAL);
    (recorder.finish().unwrap(), tid, other)
}

fn count(lines: &[Line], name: &str, tids: &[i32]) -> usize {
    lines.iter().filter(|line| line.name == name && tids.contains(&line.tid)).count()
}

fn check_counts(lines: &[Line], tid: i32, other: i32) {
    for (call, tids, expected) in
        [("getppid", &[tid][..], PARENTS), ("nanosleep", &[tid], SLEEPS), ("clock_nanosleep", &[tid], 0)]
    {
        assert_eq!(count(lines, &format!("syscall_entry_{call}"), tids), expected, "entries of {call}");
        assert_eq!(count(lines, &format!("syscall_exit_{call}"), tids), expected, "exits of {call}");
    }
    let opens = |line: &&Line| line.name == "syscall_entry_openat" && line.tid == tid;
    let flags = i128::from(FLAGS.bits());
    let opens: Vec<&Line> =
        lines.iter().filter(opens).filter(|line| line.number("flags") & flags == flags).collect();
    assert_eq!(opens.len(), OPENS);
    for line in opens {
        assert_eq!(line.number("dfd"), -100, "AT_FDCWD is a negative int");
        assert!(line.field("filename").starts_with("0x"), "a pointer: {line:?}");
    }
    for line in lines.iter().filter(|line| line.name == "syscall_exit_getppid" && line.tid == tid) {
        assert_eq!(line.number("ret"), i128::from(std::process::id()));
    }
    // Each round: a byte written and read by either thread, each to or from the other.
    for tid in [tid, other] {
        let bytes = |name: &str| {
            let one = |line: &&Line| line.name == name && line.tid == tid && line.field("count") == "1";
            lines.iter().filter(one).count()
        };
        assert!(bytes("syscall_entry_write") >= ROUNDS, "{}", bytes("syscall_entry_write"));
        assert_eq!(bytes("syscall_entry_read"), ROUNDS);
    }
}

/// Events of one CPU are in order of time.
fn check_order(lines: &[Line]) {
    assert!(lines.windows(2).all(|pair| pair[0].stamp <= pair[1].stamp));
}

#[test]
fn a_process_tree_is_recorded_completely_and_no_other_process() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let (summary, tid, other) = record(&trace, Scope::Tree, &[]);
    assert_eq!(lost(&summary), 0);
    assert!(summary.streams.iter().all(|stream| (stream.foreign, stream.damaged) == (0, 0)), "{summary:?}");
    let Some(lines) = babeltrace(&trace) else { return };
    assert_eq!(lines.len(), written(&summary));
    check_order(&lines);
    check_counts(&lines, tid, other);

    // What `set_event_pid` lets through of others is what the documentation says: wake-ups of members, and
    // switches to them.
    let members: Vec<i128> = lines
        .iter()
        .filter(|line| line.name == "sched_process_fork")
        .map(|line| line.number("child_tid"))
        .chain([i128::from(tid)])
        .collect();
    assert!(members.contains(&i128::from(other)), "threads are members: {members:?}");
    for line in lines.iter().filter(|line| !members.contains(&i128::from(line.tid))) {
        let subject = match line.name.as_str() {
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => line.number("tid"),
            "sched_switch" => line.number("next_tid"),
            name => panic!("{name} of a stranger: {line:?}"),
        };
        assert!(members.contains(&subject), "{line:?}");
    }
    // Every member is seen to the end: its last switch is away from it, dead.
    for &member in &members {
        let switches = |line: &&Line| line.name == "sched_switch" && line.number("prev_tid") == member;
        let last = lines.iter().rev().find(switches).unwrap_or_else(|| panic!("no switch of {member}"));
        assert!([16, 32].contains(&last.number("prev_state")), "{last:?}");
        assert_eq!(count(&lines, "sched_process_exit", &[member as i32]), 1);
    }
    // The other thread sleeps in every round until it is woken by the first.
    let wakes = |line: &&Line| line.name == "sched_waking" && line.number("tid") == i128::from(other);
    assert!(lines.iter().filter(wakes).count() >= ROUNDS / 2);
}

#[test]
fn the_whole_system_is_recorded_and_a_worker_in_it_completely() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let (summary, tid, other) = record(&trace, Scope::System, &[]);
    assert_eq!(lost(&summary), 0);
    let Some(lines) = babeltrace(&trace) else { return };
    assert_eq!(lines.len(), written(&summary));
    check_order(&lines);
    check_counts(&lines, tid, other);
    // The recorder itself is part of the system.
    assert!(
        lines.iter().any(|line| line.name == "syscall_entry_read" && line.tid == gettid_of_this_thread())
    );
    // What was there before is named, before all else.
    let dump = lines.iter().take_while(|line| line.name == "lttng_statedump_process_state");
    let own = dump.clone().find(|line| line.number("tid") == i128::from(gettid_of_this_thread()));
    assert_eq!(own.unwrap().number("pid"), i128::from(std::process::id()));
    assert!(dump.clone().any(|line| line.number("pid") == 1), "all processes");
    // LTTng counts priorities from the first that is not realtime: 20 for a plain process, plus its nice
    // value.
    let nice = rustix::process::getpriority_process(None).unwrap();
    let switch =
        lines.iter().find(|line| line.name == "sched_switch" && line.number("prev_tid") == i128::from(tid));
    assert_eq!(switch.unwrap().number("prev_prio"), 20 + i128::from(nice));
}

fn gettid_of_this_thread() -> i32 {
    gettid().as_raw_nonzero().get()
}

#[test]
fn events_are_chosen_by_any_of_their_names() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let globs = ["syscalls:sys_enter_getppid", "syscall_exit_getpp*", "no_such_event"];
    let mut recorder = common::start_in(&trace, &options(Scope::Tree, &globs)).unwrap();
    assert_eq!(recorder.notices(), ["not in this kernel, left out: no_such_event"]);
    let mut actor = Actor::start("worker", Path::new(""));
    let tid = actor.expect("tid").parse().unwrap();
    recorder.set_root_pid(tid).unwrap();
    actor.go();
    actor.expect("other");
    actor.wait();
    let summary = recorder.finish().unwrap();
    assert_eq!(written(&summary), 2 * PARENTS);
}

#[test]
fn what_does_not_fit_the_buffer_is_counted_with_its_time() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let mut small = options(Scope::Tree, &["sys_enter_getppid", "sys_exit_getppid"]);
    small.buffer_kib = 32;
    let mut recorder = common::start_in(&trace, &small).unwrap();
    let mut total = 0;
    // Twice a full buffer: one gap in the middle, one at the end.
    for _ in 0..2 {
        let mut actor = Actor::start("worker", Path::new(""));
        let tid = actor.expect("tid").parse().unwrap();
        recorder.set_root_pid(tid).unwrap();
        actor.go();
        actor.expect("other");
        actor.wait();
        total += 2 * PARENTS as u64;
        if total == 2 * PARENTS as u64 {
            recorder.poll(true).unwrap();
        }
    }
    let summary = recorder.finish().unwrap();
    let streams: Vec<&StreamSummary> = summary.streams.iter().filter(|s| s.losses.events > 0).collect();
    assert!(!streams.is_empty());
    assert_eq!(written(&summary) as u64 + lost(&summary), total, "written and lost is what happened");
    for stream in &streams {
        assert_eq!(stream.losses.ranges.iter().map(|range| range.events).sum::<u64>(), stream.losses.events);
        assert!(stream.losses.ranges.iter().all(|range| range.begin < range.end), "{stream:?}");
    }
    let Some((lines, complaints)) = babeltrace_loud(&trace) else { return };
    assert_eq!(lines.len(), written(&summary));
    // babeltrace2 warns once per gap: that is its way to report losses.
    let reported: u64 = complaints
        .lines()
        .filter_map(|line| line.split("Tracer discarded ").nth(1)?.split(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(reported, lost(&summary), "{complaints}");
    // Nothing of a stream lies inside one of its gaps.
    for stream in streams {
        for range in &stream.losses.ranges {
            let inside = |line: &&Line| {
                line.cpu == stream.cpu.0 && range.begin.0 < line.stamp && line.stamp < range.end.0
            };
            assert_eq!(lines.iter().find(inside), None, "{range:?}");
        }
    }
}

/// The contents of a file of the instance that has a buffer of about so many KiB.
fn setting(buffer_kib: u32, file: &str) -> String {
    let instances = common::instances_with(buffer_kib);
    assert_eq!(instances.len(), 1, "{instances:?}");
    fs::read_to_string(instances[0].join(file)).unwrap().trim().to_owned()
}

/// Records 2 * PARENTS events, which are read afterwards.
fn record_calls(options: &Options, check: impl FnOnce(&KernelRecorder)) -> (usize, u64) {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let mut recorder = common::start_in(&trace, options).unwrap();
    check(&recorder);
    let mut actor = Actor::start("worker", Path::new(""));
    recorder.set_root_pid(actor.expect("tid").parse().unwrap()).unwrap();
    actor.go();
    actor.expect("other");
    actor.wait();
    let summary = recorder.finish().unwrap();
    if let Some((lines, _)) = babeltrace_loud(&trace) {
        assert_eq!(lines.len(), written(&summary));
        check_order(&lines);
    }
    (written(&summary), lost(&summary))
}

#[test]
fn buffers_have_the_size_and_the_mode_that_are_requested() {
    if !traceable() {
        return;
    }
    let has_sizes = Tracefs::open().unwrap().root().join("buffer_subbuf_size_kb").exists();
    let calls = options(Scope::Tree, &["sys_enter_getppid", "sys_exit_getppid"]);
    let mut lost_with = Vec::new();
    // Sizes that no other test of this process has.
    for (buffer_kib, sub_buffer_kib, overwrites) in
        [(16, 4, false), (64, 16, true), (2048, 64, false), (8192, 512, true)]
    {
        let options =
            Options { buffer_kib, sub_buffer_kib: Some(sub_buffer_kib), overwrites, ..calls.clone() };
        let (events, lost) = record_calls(&options, |recorder| {
            let made = recorder.buffers();
            assert_eq!(made.overwrites, overwrites);
            assert_eq!(made.sub_buffers * made.sub_buffer_bytes / 1024, buffer_kib, "{made:?}");
            if has_sizes {
                assert_eq!(made.sub_buffer_bytes, sub_buffer_kib * 1024, "{made:?}");
                assert_eq!(setting(buffer_kib, "buffer_subbuf_size_kb"), sub_buffer_kib.to_string());
                assert!(recorder.notices().is_empty(), "{:?}", recorder.notices());
            }
            assert_eq!(setting(buffer_kib, "options/overwrite"), if overwrites { "1" } else { "0" });
        });
        assert_eq!(
            events as u64 + lost,
            2 * PARENTS as u64,
            "{buffer_kib}: written and lost is what happened"
        );
        lost_with.push(lost);
    }
    assert!(lost_with[0] > lost_with[1] && lost_with[1] > 0, "{lost_with:?}");
    assert_eq!(lost_with[2..], [0, 0], "all of them fit");
}

#[test]
fn sizes_that_the_kernel_does_not_have_are_rounded_and_noted() {
    if !traceable() {
        return;
    }
    let small =
        Options { buffer_kib: 3, sub_buffer_kib: Some(1), ..options(Scope::Tree, &["sys_enter_getppid"]) };
    let dir = tempfile::tempdir().unwrap();
    let recorder = common::start_in(&dir.path().join("kernel"), &small).unwrap();
    let made = recorder.buffers();
    assert_eq!(made.sub_buffers, 2);
    let said = recorder.notices().concat();
    assert!(said.contains(&made.to_string()) && said.contains("3 KiB in such of 1 KiB"), "{said}");
}

#[test]
fn what_an_instance_in_overwrite_mode_overwrites_is_counted_with_its_time() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let mut small = options(Scope::Tree, &["sys_enter_getppid", "sys_exit_getppid"]);
    small.buffer_kib = 48;
    let mut recorder = common::start_in(&trace, &small).unwrap();
    // Another program changes the recorder's instance.
    for path in common::instances_with(small.buffer_kib) {
        fs::write(path.join("options/overwrite"), "1").unwrap();
    }
    let mut actor = Actor::start("worker", Path::new(""));
    recorder.set_root_pid(actor.expect("tid").parse().unwrap()).unwrap();
    actor.go();
    actor.expect("other");
    actor.wait();
    recorder.poll(true).unwrap();
    let summary = recorder.finish().unwrap();
    assert!(lost(&summary) > 0);
    assert_eq!(written(&summary) + lost(&summary) as usize, 2 * PARENTS);
    let Some((lines, _)) = babeltrace_loud(&trace) else { return };
    assert_eq!(lines.len(), written(&summary));
    check_order(&lines);
}

#[test]
fn events_are_stamped_by_the_clock_that_was_asked_for() {
    if !traceable() {
        return;
    }
    let offered = fs::read_to_string(Tracefs::open().unwrap().root().join("trace_clock")).unwrap();
    for (clock, name) in [(KernelClock::X86Tsc, "x86-tsc"), (KernelClock::Mono, "mono")] {
        if !offered.contains(name) {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("event class"),
                format_args!("this kernel has no clock {name}"),
            );
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("kernel");
        let options = Options { clock, ..options(Scope::Tree, &["sys_enter_getppid"]) };
        let mut recorder = common::start_in(&trace, &options).unwrap();
        recorder.set_root_pid(Pid(gettid_of_this_thread())).unwrap();
        let mut bounds = Vec::new();
        for _ in 0..100 {
            let begin = clock.now();
            std::hint::black_box(getppid());
            bounds.push(begin..=clock.now());
        }
        recorder.finish().unwrap();
        let Some(lines) = babeltrace(&trace) else { return };
        assert_eq!(lines.len(), bounds.len());
        for (line, bounds) in lines.iter().zip(bounds) {
            assert!(bounds.contains(&Cycles(line.stamp)), "{name}: {} is not in {bounds:?}", line.stamp);
        }
    }
}

#[test]
fn an_event_is_in_the_folder_after_the_next_flush() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let mut recorder = common::start_in(&trace, &options(Scope::Tree, &["sys_enter_getppid"])).unwrap();
    recorder.set_root_pid(Pid(gettid_of_this_thread())).unwrap();
    for round in 1..=5 {
        std::hint::black_box(getppid());
        let progress = recorder.poll(false).unwrap();
        assert_eq!(progress.events, round - 1, "packets that are not full wait for a flush");
        let progress = recorder.poll(true).unwrap();
        assert_eq!((progress.events, progress.lost), (round, 0));
        let Some(lines) = babeltrace(&trace) else { return };
        assert_eq!(lines.len() as u64, round);
    }
    drop(recorder);
    assert_eq!(
        babeltrace(&trace).map(|lines| lines.len()),
        Some(5),
        "a dropped recorder leaves a good trace"
    );
}

#[test]
fn a_full_disk_ends_the_recording_with_one_line_and_a_readable_trace() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(dir.path()) else { return };
    let trace = dir.path().join("kernel");
    let globs = ["sys_enter_getppid", "sys_exit_getppid"];
    let mut recorder = common::start_in(&trace, &options(Scope::Tree, &globs)).unwrap();
    recorder.set_root_pid(Pid(gettid_of_this_thread())).unwrap();
    let begin = Instant::now();
    let mut calls = 0;
    let error = loop {
        assert!(begin.elapsed() < Duration::from_secs(60), "a disk of 256 KiB is never full");
        for _ in 0..500 {
            std::hint::black_box(getppid());
        }
        calls += 500;
        if let Err(error) = recorder.poll(true) {
            break error.to_string();
        }
    };
    assert!(error.contains("No space left on device") && error.contains("stays readable"), "{error}");
    // What comes after the error is not written, and counted all the same.
    for _ in 0..500 {
        std::hint::black_box(getppid());
    }
    calls += 500;
    let summary = recorder.finish().unwrap();
    assert!(lost(&summary) > 0);
    assert_eq!(written(&summary) + lost(&summary) as usize, 2 * calls);
    assert_eq!(summary.notices, [""; 0], "it has been said");
    if let Some((lines, _)) = babeltrace_loud(&trace) {
        assert_eq!(lines.len(), written(&summary));
        assert!(lines.iter().all(|line| line.name.ends_with("getppid")));
    }
    drop(disk);
}

/// A file system of 256 KiB, unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(dir: &'a Path) -> Option<Self> {
        let options = c"size=256k";
        match rustix::mount::mount("none", dir, "tmpfs", rustix::mount::MountFlags::empty(), Some(options)) {
            Ok(()) => Some(Self(dir)),
            Err(errno) => {
                tracewing_testing::skip(
                    tracewing_testing::Cause::Root,
                    format_args!("cannot mount a small disk: {errno}"),
                );
                None
            }
        }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn the_index_has_an_entry_per_packet() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("kernel");
    let (summary, ..) = record(&trace, Scope::Tree, &[]);
    for stream in summary.streams.iter().filter(|stream| stream.packets > 0) {
        let index = fs::read(trace.join(format!("index/channel_{}.idx", stream.cpu))).unwrap();
        let entries: Vec<_> = tracewing_ctf::index::decode(&index).unwrap().collect();
        assert_eq!(entries.len() as u64, stream.packets);
        let bytes: u64 = entries.iter().map(|entry| entry.packet_bits / 8).sum();
        assert_eq!(bytes, stream.bytes);
        assert_eq!(bytes, fs::metadata(trace.join(format!("channel_{}", stream.cpu))).unwrap().len());
        for (nth, pair) in entries.windows(2).enumerate() {
            assert_eq!(pair[0].offset + pair[0].packet_bits / 8, pair[1].offset);
            assert!(pair[0].begin <= pair[0].end && pair[0].end <= pair[1].begin, "packet {nth}");
            assert_eq!(pair[1].seq, Some(nth as u64 + 1));
        }
    }
}
