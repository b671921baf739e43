//! `tracewing enable`, `disable`, `pause` and `resume` on recordings of a real program: events begin and stop
//! when they should, programs that do not answer are named, and there can be several recordings at once.

#[path = "../harness/mod.rs"]
mod harness;
mod limits;
#[path = "../recorded/mod.rs"]
mod recorded;

use harness::{Printed, RunExt};
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Recording, confirmed, ended, list, program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The program `steps` under `tracewing record`.
struct Steps {
    recorder: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    folder: tempfile::TempDir,
    pid: Pid,
}

impl Steps {
    /// Records it into the folder `t`. `before` are words before the program.
    fn record(options: &[&str], before: &[&str]) -> Self {
        Self::record_program("steps", options, before)
    }

    /// As [`Steps::record`], another program, whose first line of output is its process id.
    fn record_program(name: &str, options: &[&str], before: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = harness::tracewing();
        recorder.current_dir(folder.path()).args(["record", "--no-kernel", "--format", "json", "-o", "t"]);
        recorder.args(options).arg("--").args(before).arg(program(name));
        recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recorder = recorder.spawn().unwrap();
        let input = recorder.stdin.take().unwrap();
        let mut output = BufReader::new(recorder.stdout.take().unwrap()).lines();
        let pid = output.next().unwrap().unwrap().parse().unwrap();
        Self { recorder, input, output, folder, pid: Pid::from_raw(pid).unwrap() }
    }

    fn step(&mut self, step: impl ToString) {
        let step = step.to_string();
        writeln!(self.input, "{step}").unwrap();
        assert_eq!(self.output.next().unwrap().unwrap(), step);
    }

    /// A subcommand for this recording.
    fn command(&self, name: &str, options: &[&str]) -> Output {
        command(name, &self.recorder.id().to_string(), options)
    }

    /// A subcommand that all programs confirm; gives the recording's state.
    fn make(&self, name: &str, options: &[&str]) -> Value {
        let options = [options, &["--format", "json"]].concat();
        serde_json::from_slice(&confirmed(name, &self.recorder.id().to_string(), &options)).unwrap()
    }

    /// Lets the program come to its end.
    fn end(self) -> Recording {
        drop(self.input);
        ended(self.folder, self.recorder)
    }
}

fn command(name: &str, recording: &str, options: &[&str]) -> Output {
    harness::tracewing().args([name, recording]).args(options).ran()
}

/// The numbers of all events of a name in a trace, in the order of time.
fn numbers(trace: &Path, name: &str) -> Vec<u64> {
    list(trace).iter().filter(|event| event.name == name).map(|event| event.number("number")).collect()
}

#[test]
fn what_a_command_has_changed_holds_from_the_next_event_on() {
    let mut steps = Steps::record(&["-e", "steps:step"], &[]);
    steps.step(1);
    steps.make("disable", &["--level", "debug..trace"]);
    steps.step(2);
    let state = steps.make("enable", &["-e", "steps:*", "--where", "number > 3"]);
    assert_eq!((&state["programs"], &state["classes"]), (&1.into(), &2.into()));
    (3..5).for_each(|number| steps.step(number));
    assert_eq!(steps.make("pause", &[])["paused"], true);
    steps.step(5);
    steps.make("resume", &[]);
    steps.step(6);
    assert_eq!(steps.make("disable", &["--major", "3-5"])["majors"], "0-2,6-63");
    steps.step(7);
    steps.make("enable", &["--major", "3"]);
    steps.step(8);
    steps.make("enable", &["--provider", "steps", "--where", "word =~ 'o*' || number == 10"]);
    (9..12).for_each(|number| steps.step(number));
    steps.make("disable", &["-e", "*", "--process", "steps"]);
    steps.step(12);
    let rules = steps.make("rules", &[])["rules"].as_array().unwrap().len();
    assert_eq!(rules, 5);
    let recording = steps.end();
    assert_eq!(numbers(&recording.trace(), "steps:step"), [1, 4, 6, 8, 9, 10, 11]);
    // It has no field `word`: of the last condition the first half is unknown, and the second decides.
    assert_eq!(numbers(&recording.trace(), "steps:other"), [4, 6, 7, 8, 10]);
    recording.compare_with_babeltrace2();
    let info = harness::tracewing().arg("info").arg(recording.trace()).ran();
    let info = info.text();
    for part in ["events    enable -e steps:step", "changed   pause at", "debug, major class 3"] {
        assert!(info.contains(part), "{part} is not in\n{info}");
    }
}

#[test]
fn nothing_is_recorded_until_it_is_wanted() {
    let mut steps = Steps::record(&["-e", "nothing", "-e", "steps:stp"], &[]);
    steps.step(1);
    steps.make("enable", &["-e", "steps:other"]);
    steps.step(2);
    let recording = steps.end();
    let events = recording.events();
    assert_eq!(events.iter().filter(|event| event.name != "tracewing:thread").count(), 1);
    assert_eq!(numbers(&recording.trace(), "steps:other"), [2]);
    let notes = recording.summary["notes"].to_string();
    assert!(notes.contains("no event matched -e 'nothing'; `tracewing sites PROGRAM` lists"), "{notes}");
    assert!(notes.contains("no event matched -e 'steps:stp'; is `steps:step` meant?"), "{notes}");
}

#[test]
fn a_stopped_program_is_named_and_changes_when_it_continues() {
    let mut steps = Steps::record(&[], &[]);
    steps.step(1);
    kill_process(steps.pid, Signal::STOP).unwrap();
    let output = steps.command("disable", &["-e", "*"]);
    let text = output.notes();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let named = format!("process {} (steps) has not confirmed", steps.pid.as_raw_nonzero());
    assert!(text.contains(&named), "{text}");
    // A pause needs no answer from programs.
    assert_eq!(steps.make("pause", &[])["unanswered"], Value::Array(Vec::new()));
    steps.make("resume", &[]);
    kill_process(steps.pid, Signal::CONT).unwrap();
    steps.make("disable", &["-e", "*"]);
    steps.step(2);
    assert_eq!(numbers(&steps.end().trace(), "steps:step"), [1]);
}

#[test]
fn a_forked_child_gets_changes() {
    let mut steps = Steps::record(&[], &[]);
    steps.step("fork");
    let begin = Instant::now();
    while steps.make("rules", &[])["programs"] != 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the child does not connect");
    }
    steps.step(1);
    steps.make("disable", &["-e", "steps:step"]);
    steps.step(2);
    let recording = steps.end();
    assert_eq!(numbers(&recording.trace(), "steps:step"), [1]);
    assert_eq!(numbers(&recording.trace(), "steps:other"), [1, 2]);
}

#[test]
fn recordings_of_recordings_take_what_each_wants() {
    let inner = ["record", "--no-kernel", "--quiet", "-e", "steps:other", "-o", "inner"];
    let before: Vec<&str> = [harness::TRACEWING].into_iter().chain(inner).chain(["--"]).collect();
    let mut steps = Steps::record(&["-e", "steps:step"], &before);
    steps.step(1);
    steps.make("disable", &["-e", "*"]);
    steps.step(2);
    confirmed("enable", &steps.pid.as_raw_nonzero().to_string(), &["-e", "steps:step"]);
    steps.step(3);
    let recording = steps.end();
    assert_eq!(numbers(&recording.trace(), "steps:step"), [1]);
    assert!(numbers(&recording.trace(), "steps:other").is_empty());
    let inner = recording.folder.path().join("inner");
    assert_eq!(numbers(&inner, "steps:step"), [3]);
    assert_eq!(numbers(&inner, "steps:other"), [1, 2, 3]);
}

#[test]
fn programs_of_a_recording_that_runs_are_recorded_once_more() {
    let mut steps = Steps::record(&["-e", "steps:step"], &[]);
    steps.step(1);
    let first = steps.recorder.id().to_string();
    let with = |options: &[&str]| {
        let mut second = harness::tracewing();
        second.current_dir(steps.folder.path()).args(["record", "--format", "json", "--with", &first]);
        second.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        tracewing_testing::with_default_signals(&mut second).spawn().unwrap()
    };
    let second = with(&["-o", "second", "-e", "steps:other"]);
    let begin = Instant::now();
    let is_reported = |id: u32| {
        let output = command("rules", &id.to_string(), &["--format", "json"]);
        serde_json::from_slice(&output.stdout).is_ok_and(|state: Value| state["programs"] == 1)
    };
    while !is_reported(second.id()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the program does not join");
    }
    // It ends by itself; whatever it is, that is no concern of the other two.
    let third = with(&["-o", "third", "--for", "0.05"]).wait_with_output().unwrap();
    assert_eq!(third.status.code(), Some(0), "{third:?}");
    steps.step(2);
    steps.make("disable", &["-e", "*"]);
    steps.step(3);
    kill_process(Pid::from_raw(second.id() as i32).unwrap(), Signal::INT).unwrap();
    let second = second.wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    let summary: Value = serde_json::from_slice(&second.stderr).unwrap();
    assert_eq!((&summary["processes"], &summary["lost_events"]), (&1.into(), &0.into()));
    steps.step(4);
    let recording = steps.end();
    assert_eq!(numbers(&recording.trace(), "steps:step"), [1, 2]);
    assert_eq!(numbers(&recording.folder.path().join("second"), "steps:other"), [2, 3]);
    assert!(numbers(&recording.folder.path().join("second"), "steps:step").is_empty());
}

#[test]
fn a_recording_that_has_ended_leaves_nothing_in_the_program() {
    leaves_nothing(4, "echo $$; exec \"$0\"");
}

/// Nor does it with protocol `Smp`, where a program can take part in more recordings, one after the other,
/// than it has slots.
#[test]
fn a_recording_without_sequences_leaves_nothing_in_the_program() {
    leaves_nothing(10, "echo $$; GLIBC_TUNABLES=glibc.pthread.rseq=0 exec \"$0\"");
}

fn leaves_nothing(recordings: usize, script: &str) {
    // Its threads emit all the time: they find the buffers closed before the program hears of the end.
    let mut pilot = Steps::record_program("pilot", &[], &["sh", "-c", script]);
    writeln!(pilot.input, "fly").unwrap();
    assert_eq!(pilot.output.next().unwrap().unwrap(), "flying");
    let (recorder, pid) = (pilot.recorder.id().to_string(), pilot.pid.as_raw_nonzero());
    let mapped = || {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        maps.lines().filter(|line| line.contains("memfd:tracewing")).count()
    };
    let before = mapped();
    let has_events = |name: &str, seconds: &str| {
        let mut further = harness::tracewing();
        further.current_dir(pilot.folder.path()).args(["record", "--format", "json", "--with", &recorder]);
        further.args(["--for", seconds, "--sub-buffer-size", "4K", "-o", name]);
        let further = further.succeeds();
        let summary: Value = serde_json::from_slice(&further.stderr).unwrap();
        summary["events"].as_u64() > Some(0)
    };
    for number in 0..recordings {
        // However long a busy machine lets the program's thread wait for its turn to join.
        let joins =
            ["0.3", "3", "30"].iter().any(|seconds| has_events(&format!("{number}-{seconds}"), seconds));
        assert!(joins, "recording {number} has no events");
    }
    let begin = Instant::now();
    while mapped() > before {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} mappings, {before} before", mapped());
        std::thread::sleep(Duration::from_millis(10));
    }
    pilot.end();
}
