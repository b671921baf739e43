//! Recordings of programs that are instrumented with `tracing`: what they emit is listed, and they follow
//! when a running recording is changed.

mod harness;
mod recorded;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use recorded::{Event, Recording, build, ended, record};

fn example(name: &str) -> std::path::PathBuf {
    build(&["-p", "tracewing-tracing", "--example", name]).join("examples").join(name)
}

/// A program under `tracewing record` that makes a step when the test asks for it.
struct Steps {
    recorder: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    folder: tempfile::TempDir,
}

impl Steps {
    fn record(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = recorded::recorder(folder.path(), options);
        let mut recorder = recorder.arg(example("tracing_steps")).stdin(Stdio::piped()).spawn().unwrap();
        let input = recorder.stdin.take().unwrap();
        let mut output = BufReader::new(recorder.stdout.take().unwrap()).lines();
        output.next().unwrap().unwrap();
        Self { recorder, input, output, folder }
    }

    fn step(&mut self, number: u64) {
        writeln!(self.input, "{number}").unwrap();
        assert_eq!(self.output.next().unwrap().unwrap(), number.to_string());
    }

    /// A subcommand that all programs confirm.
    fn make(&self, name: &str, options: &[&str]) {
        recorded::confirmed(name, &self.recorder.id().to_string(), options);
    }

    fn end(self) -> Recording {
        drop(self.input);
        ended(self.folder, self.recorder)
    }
}

fn numbers(events: &[Event], provider: &str) -> Vec<u64> {
    let of_provider = events.iter().filter(|event| event.name.starts_with(provider));
    of_provider
        .filter(|event| !event.payload["number"].is_null())
        .map(|event| event.number("number"))
        .collect()
}

#[test]
fn call_sites_follow_a_running_recording() {
    let mut steps = Steps::record(&["-e", "other:*"]);
    (1..4).for_each(|number| steps.step(number));
    steps.make("enable", &["-e", "steps::inner:*"]);
    (4..7).for_each(|number| steps.step(number));
    steps.make("disable", &["-e", "steps::*"]);
    (7..10).for_each(|number| steps.step(number));
    steps.make("enable", &["-e", "*", "--where", "number != 11"]);
    (10..13).for_each(|number| steps.step(number));
    let recording = steps.end();
    let events = recording.events();
    assert_eq!(numbers(&events, "steps::inner:"), [4, 5, 6, 10, 12]);
    assert_eq!(numbers(&events, "tracing_steps:step_new"), [10, 12]);
    assert_eq!(recording.lost(), 0);
    recording.compare_with_babeltrace2();
}

#[test]
fn a_pause_needs_nothing_of_the_program() {
    let mut steps = Steps::record(&["-e", "steps::*"]);
    steps.step(1);
    steps.make("pause", &[]);
    steps.step(2);
    steps.make("resume", &[]);
    steps.step(3);
    assert_eq!(numbers(&steps.end().events(), "steps::inner:"), [1, 3]);
}

#[test]
fn spans_of_a_program() {
    let recording = record(&[], &[example("orders")]);
    assert_eq!(recording.lost(), 0);
    recording.compare_with_babeltrace2();
    let events = recording.events();
    let of = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    let mut orders: Vec<u64> = of("orders:place_new").iter().map(|event| event.number("order")).collect();
    orders.sort_unstable();
    assert!(orders.into_iter().eq(1..100));
    let order_of: BTreeMap<u64, u64> =
        of("orders:place_new").iter().map(|event| (event.number("span"), event.number("order"))).collect();
    for packing in of("orders:packing_begin") {
        assert_eq!(order_of[&packing.number("parent")], packing.number("order"));
    }
    let mut prices = 0;
    for price in of("orders:price_new") {
        assert!(order_of.contains_key(&price.number("parent")));
        prices += 1;
    }
    assert_eq!(prices, 3 * 99);
    for moment in ["enter", "exit", "close", "record"] {
        assert_eq!(of(&format!("orders:place_{moment}")).len(), 99, "{moment}");
    }
    assert_eq!(of("orders:packing_end").len(), 99);
}

/// The numbers in the events with these names.
fn first_numbers(events: &[Event], name: impl Fn(&str) -> bool) -> Vec<u64> {
    let events = events.iter().filter(|event| name(&event.name) && !event.payload["number"].is_null());
    events.map(|event| event.number("number")).collect()
}

#[test]
fn first_events_of_call_sites_are_recorded_and_need_no_conversation() {
    let program = example("tracing_first");
    let strace = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("calls");
    let mut command: Vec<&std::ffi::OsStr> = Vec::new();
    if strace {
        // Also what waits: sleeps and polls.
        let calls = "trace=%network,poll,ppoll,select,epoll_wait,nanosleep,clock_nanosleep";
        command.extend(["strace", "-f", "-e", calls, "-o"].map(std::ffi::OsStr::new));
        command.push(log.as_os_str());
    } else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("strace"),
            "no strace, so system calls are not looked at",
        );
    }
    command.push(program.as_os_str());
    let recording = record(&["-e", "tracing_first:*", "-e", "log:*"], &command);
    assert_eq!(recording.lost(), 0, "{}", recording.stderr);
    let (tid, took) = recording.stdout.trim().split_once(' ').unwrap();
    println!("ns of each first event{}: {took}", if strace { ", under strace" } else { "" });
    let events = recording.events();
    let of_program = |name: &str| ["said", "counted", "checked"].iter().any(|kind| name.contains(kind));
    assert_eq!(first_numbers(&events, of_program), (0..30).collect::<Vec<_>>());
    let of_spans = |name: &str| name.ends_with("_new");
    assert_eq!(first_numbers(&events, of_spans), (40..60).collect::<Vec<_>>());
    for ending in ["_enter", "_exit", "_close"] {
        assert_eq!(events.iter().filter(|event| event.name.ends_with(ending)).count(), 20, "{ending}");
    }
    assert_eq!(events.iter().filter(|event| event.name == "log:info").count(), 1);
    let others = |event: &&Event| event.name.starts_with("disabled:") || event.name == "tracewing:first";
    assert_eq!(events.iter().find(others).map(|event| &event.name), None);
    let emitter = |event: &&Event| event.name != "tracewing:thread";
    assert!(events.iter().filter(emitter).all(|event| event.tid.to_string() == tid));
    recording.compare_with_babeltrace2();
    if strace {
        let calls = std::fs::read_to_string(&log).unwrap();
        let own: Vec<&str> = calls.lines().filter(|line| line.split(' ').next() == Some(tid)).collect();
        let own: Vec<&&str> = own.iter().filter(|line| line.contains('(')).collect();
        assert_eq!(own, [] as [&&str; 0], "of {} lines", calls.lines().count());
        assert!(calls.contains("connect("), "another thread reports to the recorder: {calls}");
    }
}

#[test]
fn conditions_apply_to_first_events() {
    let recording =
        record(&["-e", "tracing_first:*", "--where", "number & 1 == 1"], &[example("tracing_first")]);
    assert_eq!(recording.lost(), 0, "{}", recording.stderr);
    let odd: Vec<u64> = (0..60).filter(|number| number % 2 == 1 && !(30..40).contains(number)).collect();
    assert_eq!(first_numbers(&recording.events(), |_| true), odd);
    recording.compare_with_babeltrace2();
}
