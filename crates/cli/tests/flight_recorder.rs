//! Flight recorders: snapshots by signal, by command, by the program, on panic and at exit; what they hold,
//! event by event; and that `tracewing list` and babeltrace2 agree about each.

mod recorded;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Event, list, program, recorder, traceable};
use serde_json::Value;

/// Bytes of an event of the pilot: header, thread id, two u64.
const EVENT: u64 = 12 + 16;
/// The same with an extended header: 2^32 cycles after its sub-buffer was opened, as happens on a busy
/// machine.
const LARGEST_EVENT: u64 = EVENT + 10;
/// Of its thread's announcement: pid, "pilot" and its end.
const ANNOUNCEMENT: u64 = 12 + 4 + 6;
const SUB_BUFFERS: u64 = 4;
const SUB_BUFFER: u64 = 16 << 10;
const SMALL: [&str; 4] = ["--sub-buffers", "4", "--sub-buffer-size", "16K"];

/// A flight recorder of the program `pilot`.
struct Flight {
    folder: tempfile::TempDir,
    recorder: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Flight {
    fn start(options: &[&str]) -> Self {
        Self::start_in(&["--flight-recorder"], options, &[])
    }

    fn start_in(kind: &[&str], options: &[&str], env: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = recorder(folder.path(), &[kind, options].concat());
        let program = program("pilot");
        let mut recorder = command.arg("env").args(env).arg(program).stdin(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (recorder.stdin.take(), recorder.stdout.take().unwrap());
        Self { folder, recorder, orders, answers: BufReader::new(answers) }
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    /// The numbers that every thread has emitted.
    fn numbers(&mut self, order: &str) -> Vec<u64> {
        self.order(order).split(' ').map(|number| number.parse().unwrap()).collect()
    }

    fn path(&self, snapshot: u64) -> PathBuf {
        self.folder.path().join(format!("t/snapshot-{snapshot}"))
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a process that this test has started and not waited for.
        assert_eq!(unsafe { libc::kill(self.recorder.id() as i32, signal) }, 0);
    }

    /// `tracewing snapshot` of this recorder.
    fn command(&self) -> PathBuf {
        let output = snapshot(&[&self.recorder.id().to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().into()
    }

    /// Lets the program end, by its own will.
    fn end(mut self) -> Ended {
        self.orders = None;
        self.ended()
    }

    fn ended(self) -> Ended {
        let Output { status, stderr, .. } = self.recorder.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        let summary = stderr.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
        Ended {
            folder: self.folder,
            exit_status: status.code().unwrap(),
            summary: summary.unwrap_or_else(|| panic!("no summary: {stderr}")),
        }
    }
}

struct Ended {
    folder: tempfile::TempDir,
    exit_status: i32,
    summary: Value,
}

impl Ended {
    fn reasons(&self) -> Vec<&str> {
        let snapshots = self.summary["snapshots"].as_array().unwrap();
        snapshots.iter().map(|snapshot| snapshot["reason"].as_str().unwrap()).collect()
    }

    fn path(&self, snapshot: u64) -> PathBuf {
        self.folder.path().join(format!("t/snapshot-{snapshot}"))
    }
}

fn snapshot(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracewing")).arg("snapshot").args(arguments).output().unwrap()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn description(trace: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(trace.join("tracewing.json")).unwrap()).unwrap()
}

/// Numbers by CPU, as far as they follow each other without a gap up to the last; others are an error.
fn suffixes(events: &[Event]) -> BTreeMap<u64, (u64, u64)> {
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "pilot:count") {
        let (cpu, number) = (event.number("cpu"), event.number("number"));
        assert_eq!(cpu, event.cpu, "was a CPU taken offline while the test ran?");
        let (_, last) = found.entry(cpu).or_insert((number, number - 1));
        assert_eq!(number, *last + 1, "a gap on CPU {cpu}");
        *last = number;
    }
    found
}

/// Bytes that a number of events can have, with `more` beside them.
fn bytes_of(events: u64, more: u64) -> RangeInclusive<u64> {
    events * EVENT + more..=events * LARGEST_EVENT + more
}

/// Checks a snapshot: gap-free on each CPU, the same to babeltrace2, and its description true. Gives first
/// and last number by CPU.
fn check(trace: &Path) -> BTreeMap<u64, (u64, u64)> {
    let events = list(trace);
    let found = suffixes(&events);
    let description = description(trace);
    assert_eq!(description["state"], "complete");
    for (cpu, (first, last)) in &found {
        let of = |what: &'static str| {
            let mut all = description[what].as_array().unwrap().iter();
            let name = |one: &&Value| {
                let name = one["name"].as_str().or(one["stream"].as_str()).unwrap();
                name.ends_with(&format!("_{cpu}")) && !name.starts_with("channel")
            };
            all.find(name)
        };
        assert_eq!(of("user_streams").unwrap()["cpu"], *cpu);
        let here = events.iter().filter(|event| event.cpu == *cpu && event.name != "tracewing:known_thread");
        let announced = here.clone().any(|event| event.name == "tracewing:thread");
        let held = here.filter(|event| event.name.contains(':')).count() as u64;
        assert_eq!(held, last - first + 1 + u64::from(announced));
        match of("overwritten") {
            None => assert_eq!(*first, 1, "where is the rest?"),
            Some(range) => {
                let announcement = if announced { 0 } else { ANNOUNCEMENT };
                let before = bytes_of(first - 1, announcement);
                assert!(before.contains(&range["bytes"].as_u64().unwrap()), "{range}, not {before:?}");
                assert!(range["sub_buffers"].as_u64().unwrap() >= before.start() / SUB_BUFFER);
                assert!(range["begin"].as_u64() < range["end"].as_u64());
            }
        }
    }
    compare_with_babeltrace2(trace);
    found
}

fn compare_with_babeltrace2(trace: &Path) {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let ours = Command::new(env!("CARGO_BIN_EXE_tracewing")).arg("list").arg(trace).output().unwrap();
    assert!(peer.status.success() && ours.status.success());
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let [ours, peer] = [&ours.stdout, &peer.stdout].map(|listing| without_names_of_the_dead(listing));
    assert!(ours == peer, "tracewing list and babeltrace2 differ");
}

/// A listing without the names in a dump of threads that have ended: they are empty, for which babeltrace2
/// prints the text of the event before. Such threads are there when one of anybody's ended between an event
/// of it and the snapshot.
fn without_names_of_the_dead(listing: &[u8]) -> String {
    let without = |line: &str| match (line.split_once(", name = \""), line.split_once("\", type = ")) {
        (Some((before, _)), Some((_, behind))) if line.contains("status = ( \"dead\"") => {
            format!("{before}, type = {behind}\n")
        }
        _ => format!("{line}\n"),
    };
    String::from_utf8_lossy(listing).lines().map(without).collect()
}

/// Checks that the last numbers of all CPUs are these.
fn assert_ends(found: &BTreeMap<u64, (u64, u64)>, numbers: &[u64]) {
    assert_eq!(found.values().map(|(_, last)| *last).collect::<Vec<_>>(), numbers);
}

/// Checks that a snapshot holds as much as small buffers can.
fn assert_full(found: &BTreeMap<u64, (u64, u64)>) {
    for (from, to) in found.values() {
        let kept = bytes_of(to - from + 1, 0);
        assert!(*kept.end() >= (SUB_BUFFERS - 1) * (SUB_BUFFER - 100), "only {kept:?} bytes were kept");
        assert!(*kept.start() <= SUB_BUFFERS * SUB_BUFFER, "{kept:?} bytes were kept");
    }
}

#[test]
fn snapshots_by_command_signal_program_and_exit_overlap() {
    let mut flight = Flight::start(&SMALL);
    let emitted = flight.numbers("emit 10000");
    assert_eq!(flight.command(), flight.path(1));
    let first = check(&flight.path(1));
    assert_ends(&first, &emitted);
    assert_full(&first);

    let emitted = flight.numbers("emit 500");
    flight.signal(libc::SIGUSR2);
    wait_for("no snapshot by signal", || flight.path(2).exists());
    let second = check(&flight.path(2));
    assert_ends(&second, &emitted);
    assert_full(&second);
    for (cpu, (from, _)) in second {
        assert!(from <= first[&cpu].1, "the snapshots do not overlap");
    }

    let emitted = flight.numbers("emit 1");
    assert_eq!(Path::new(&flight.order("snapshot")), flight.path(3));
    assert_ends(&check(&flight.path(3)), &emitted);

    let emitted = flight.numbers("emit 30000");
    let ended = flight.end();
    assert_eq!(ended.exit_status, 0);
    let reasons = ended.reasons();
    assert_eq!([reasons[0], reasons[1], reasons[3]], ["tracewing snapshot", "SIGUSR2", "exit"]);
    assert!(reasons[2].starts_with("asked for by process "), "{}", reasons[2]);
    assert_ends(&check(&ended.path(4)), &emitted);
    let told: u64 = ended.summary["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["events"].as_u64().unwrap())
        .sum();
    let listed: usize = (1..=4).map(|number| list(&ended.path(number)).len()).sum();
    assert_eq!(told, listed as u64);
    assert_eq!(ended.summary["events"], told);
    // All in one view: traces of their own, which repeat each other.
    assert_eq!(list(&ended.folder.path().join("t")).len(), listed);
    let entries = std::fs::read_dir(ended.folder.path().join("t")).unwrap().count();
    assert_eq!(entries, 4, "something else was left in the folder");
}

#[test]
fn what_the_buffers_never_had_to_give_up_is_in_every_snapshot() {
    let mut flight = Flight::start(&[]);
    for round in 1..=3 {
        let emitted = flight.numbers("emit 1000");
        flight.command();
        let found = check(&flight.path(round));
        assert_ends(&found, &emitted);
        assert!(found.values().all(|(first, _)| *first == 1));
    }
    flight.end();
}

#[test]
fn snapshots_of_writers_at_full_speed_have_no_gap() {
    for options in [&[][..], &["--clock", "mono"], &["--buffers", "process"]] {
        // With protocol `Smp` a thread that loses its CPU in the middle of an event keeps the rest of its
        // sub-buffer from a snapshot, which does not wait for it for long.
        let unfinished = if options.contains(&"mono") { SUB_BUFFER / EVENT } else { 0 };
        let mut flight = Flight::start(&[&SMALL[..], options].concat());
        flight.order("fly");
        for _ in 0..8 {
            let emitted = flight.numbers("count");
            let trace = flight.command();
            let found = suffixes(&list(&trace));
            compare_with_babeltrace2(&trace);
            if emitted.iter().all(|number| *number > 0) {
                assert_eq!(found.len(), emitted.len(), "{options:?}: a CPU is missing");
                let mut lasts = found.values().map(|(_, last)| *last).zip(&emitted);
                let told = || format!("{options:?}: {found:?} after {emitted:?}: {}", description(&trace));
                assert!(lasts.all(|(last, before)| last + unfinished >= *before), "{}", told());
            }
        }
        let emitted = flight.numbers("land");
        assert_ends(&suffixes(&list(&flight.command())), &emitted);
        flight.end();
    }
}

#[test]
fn a_panic_leaves_a_snapshot_with_the_panic_as_its_end() {
    let mut flight = Flight::start(&SMALL);
    let emitted = flight.numbers("emit 5000");
    assert_eq!(flight.order("panic"), "panicked");
    let events = list(&flight.path(1));
    let last = events.last().unwrap();
    assert_eq!(last.name, "tracewing:panic");
    assert_eq!(last.payload["message"], "mayday");
    assert!(last.payload["file"].as_str().unwrap().ends_with("pilot.rs"), "{}", last.payload);
    assert_ends(&suffixes(&events), &emitted);
    assert_eq!(flight.order("panic"), "panicked");
    let ended = flight.end();
    let reasons = ended.reasons();
    assert!(reasons[0].starts_with("panic in process "), "{reasons:?}");
    assert_eq!(reasons[1..], ["exit"], "one snapshot for the first panic");
}

#[test]
fn only_what_was_chosen_leads_to_a_snapshot() {
    let mut flight = Flight::start(&["--snapshot-on", "exit"]);
    flight.numbers("emit 10");
    assert_eq!(flight.order("panic"), "panicked");
    let ended = flight.end();
    assert_eq!(ended.reasons(), ["exit"]);

    let mut flight = Flight::start(&["--snapshot-on", "sigusr2", "--snapshot-on", "panic"]);
    flight.numbers("emit 10");
    flight.signal(libc::SIGUSR2);
    wait_for("no snapshot by signal", || flight.path(1).exists());
    flight.order("panic");
    let ended = flight.end();
    assert_eq!(ended.reasons().len(), 2, "{:?}", ended.reasons());

    let mut flight = Flight::start(&["--snapshot-on", "panic"]);
    flight.numbers("emit 10");
    let ended = flight.end();
    assert!(ended.reasons().is_empty());
    assert!(!ended.folder.path().join("t").exists(), "a recording without a snapshot leaves nothing");
}

#[test]
fn a_killed_program_leaves_all_that_it_emitted() {
    for env in [&[][..], &["GLIBC_TUNABLES=glibc.pthread.rseq=0"]] {
        let mut flight = Flight::start_in(&["--flight-recorder"], &SMALL, env);
        let emitted = flight.numbers("emit 3000");
        flight.order("abort");
        let ended = flight.ended();
        assert_eq!((ended.exit_status, ended.reasons()), (128 + libc::SIGKILL, vec!["exit"]));
        assert_ends(&check(&ended.path(1)), &emitted);
    }
}

#[test]
fn buffers_of_processes_that_have_ended_are_still_in_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("for i in 1 2 3; do echo 'emit 7' | {}; done", program("pilot").display());
    let options = ["--flight-recorder", "--buffers", "process"];
    let output = recorder(folder.path(), &options).args(["sh", "-c", &script]).output().unwrap();
    assert!(output.status.success());
    let trace = folder.path().join("t/snapshot-1");
    let mut by_thread = BTreeMap::<i64, u64>::new();
    list(&trace).iter().filter(|event| event.name == "pilot:count").for_each(|event| {
        *by_thread.entry(event.tid).or_default() += 1;
    });
    // Each thread's last number, of three processes.
    let told = String::from_utf8(output.stdout).unwrap();
    let told: Vec<u64> = told.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(told.len() >= 3);
    assert_eq!(by_thread.into_values().collect::<Vec<_>>(), told);
    compare_with_babeltrace2(&trace);
}

#[test]
fn kernel_and_user_events_are_in_one_snapshot() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut record = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    record.current_dir(folder.path()).args(["record", "--flight-recorder", "--format", "json", "-o", "t"]);
    record.args(SMALL).arg("--").arg(program("pilot"));
    record.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = record.spawn().unwrap();
    let (orders, answers) = (recorder.stdin.take(), recorder.stdout.take().unwrap());
    let mut flight = Flight { folder, recorder, orders, answers: BufReader::new(answers) };
    let mut last = None;
    for round in 1..=2 {
        let emitted = flight.numbers("emit 4000");
        let trace = flight.command();
        assert_eq!(trace, flight.path(round));
        assert_ends(&check(&trace), &emitted);
        last = Some(trace);
    }
    let names: Vec<String> = list(&last.unwrap()).into_iter().map(|event| event.name).collect();
    for name in ["sched_switch", "syscall_entry_write", "pilot:count"] {
        assert!(names.iter().any(|other| other == name), "no {name}");
    }
    let ended = flight.end();
    let kernel = ended.summary["snapshots"][2]["kernel_streams"].as_array().unwrap();
    assert!(kernel.iter().any(|stream| stream["events"].as_u64().unwrap() > 0));
    let instances = Path::new("/sys/kernel/tracing/instances");
    assert!(std::fs::read_dir(instances).is_ok());
}

#[test]
fn a_recorder_that_is_none_says_so() {
    let mut flight = Flight::start_in(&[], &[], &[]);
    flight.numbers("emit 1");
    let pid = flight.recorder.id().to_string();
    let output = snapshot(&[&pid]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("process {pid} is no flight recorder")), "{error}");
    assert!(flight.order("snapshot").contains("no flight recorder"));
    let output = snapshot(&["nobody-is-called-so"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    // One that another test has stopped may be meant.
    let is_told = error.contains("nobody-is-called-so") || error.contains("recorders that do not answer");
    assert!(is_told && error.contains(&pid), "{error}");
    flight.end();
}

#[test]
fn the_command_answers_in_json_and_by_name_of_the_command() {
    let mut flight = Flight::start(&[]);
    flight.numbers("emit 1");
    let output = snapshot(&[&flight.recorder.id().to_string(), "--format", "json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["folder"], flight.path(1).to_str().unwrap());
    assert_eq!(answer["recorder"], flight.recorder.id());
    flight.end();
}

/// Plain overwrite mode: the recorder sleeps while the program goes round its buffers.
#[test]
fn what_is_overwritten_unread_is_told_with_its_range_of_time() {
    let mut flight = Flight::start_in(&["--on-full", "overwrite"], &SMALL, &[]);
    let cpus = flight.numbers("emit 100").len();
    let trace = flight.folder.path().join("t");
    let streams = || {
        let names = std::fs::read_dir(trace.join("user")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("uid")).count()
    };
    wait_for("nothing is written", || streams() == cpus);
    flight.signal(libc::SIGSTOP);
    let emitted = flight.numbers("emit 20000");
    flight.signal(libc::SIGCONT);
    let ended = flight.end();
    let (mut last, mut missing) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for event in list(&trace).iter().filter(|event| event.name == "pilot:count") {
        let (cpu, number) = (event.number("cpu"), event.number("number"));
        let before = last.insert(cpu, number).unwrap_or(0);
        assert!(before < number);
        *missing.entry(cpu).or_default() += number - before - 1;
    }
    assert_eq!(last.into_values().collect::<Vec<_>>(), emitted);
    let ranges = ended.summary["overwritten"].as_array().unwrap();
    for (cpu, events) in missing {
        let name = format!("_{cpu}");
        let mut of = ranges.iter().filter(|range| range["stream"].as_str().unwrap().ends_with(&name));
        let bytes: u64 = of.clone().map(|range| range["bytes"].as_u64().unwrap()).sum();
        assert!(bytes_of(events, 0).contains(&bytes), "{events} are not {ranges:?}");
        assert!(events > 0 && of.all(|range| range["begin"].as_u64() < range["end"].as_u64()));
    }
    let Ok(peer) = Command::new("babeltrace2").arg(&trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let ours = Command::new(env!("CARGO_BIN_EXE_tracewing")).arg("list").arg(&trace).output().unwrap();
    assert!(ours.stdout == peer.stdout, "tracewing list and babeltrace2 differ");
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let mut lines: Vec<_> =
            text.lines().filter_map(|line| line.find("Tracer").map(|at| line[at..].to_owned())).collect();
        lines.sort();
        lines
    };
    let warnings = lines(&peer.stderr);
    assert!(!warnings.is_empty() && warnings.iter().all(|line| line.contains("packet")), "{warnings:?}");
    assert_eq!(lines(&ours.stderr), warnings);
    let info = Command::new(env!("CARGO_BIN_EXE_tracewing")).arg("info").arg(&trace).output().unwrap();
    let info = String::from_utf8(info.stdout).unwrap();
    assert!(info.contains("sub-buffers overwritten") && info.contains("packets from "), "{info}");
}

#[test]
fn a_storm_of_signals_does_not_keep_the_recording_from_its_end() {
    let mut flight = Flight::start(&SMALL);
    // With the program's first answer the signal has its meaning.
    flight.numbers("emit 1");
    // Lines of more snapshots than a pipe holds.
    let mut stderr = flight.recorder.stderr.take().unwrap();
    let told = std::thread::spawn(move || std::io::read_to_string(&mut stderr).unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    let mut is_asked = false;
    let status = loop {
        for _ in 0..1000 {
            flight.signal(libc::SIGUSR2);
        }
        if !is_asked && flight.path(3).exists() {
            // Its number is above that of the signal for snapshots, so the kernel gives the latter first.
            flight.signal(libc::SIGTERM);
            is_asked = true;
        }
        if let Some(status) = flight.recorder.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            flight.recorder.kill().unwrap();
        }
    };
    assert_eq!(status.code(), Some(128 + libc::SIGTERM), "{status}");
    let told = told.join().unwrap();
    let summary: Value = serde_json::from_str(told.lines().next_back().unwrap()).unwrap();
    let snapshots = summary["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.last().unwrap()["reason"], "exit");
}
