//! Programs under filters for system calls that end them for any but a few
//! (`crates/tracewing/tests/programs/sandbox.rs`): they live on, and every event is there, or counted lost
//! with its reason.

mod harness;
mod recorded;

use harness::Printed;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tracewing_testing::wait_until;

use recorded::{Recording, UNREADY, program, record, recorder};

const NO_RSEQ: &str = "GLIBC_TUNABLES=glibc.pthread.rseq=0";

/// Ways to record: buffers per program, user, and process, protocol `Smp` without and with the C library's
/// registration, and buffers so small that most events open another sub-buffer or find none.
const WAYS: [(&[&str], &[&str]); 6] = [
    (&["--sub-buffers", "64"], &[]),
    (&["--sub-buffers", "64", "--buffers", "user"], &[]),
    (&["--sub-buffers", "64", "--buffers", "process"], &[]),
    (&["--sub-buffers", "64"], &["env", NO_RSEQ]),
    (&["--sub-buffers", "64", "--clock", "mono"], &[]),
    (&["--sub-buffers", "2", "--sub-buffer-size", "4K", "--flush", "1000"], &[]),
];

fn play(scene: &str, threads: u64, check: impl Fn(&Recording, BTreeMap<&str, u64>)) {
    let program = program("sandbox");
    for (options, before) in WAYS {
        let command = [before, &[program.to_str().unwrap(), scene]].concat();
        let recording = record(options, &command);
        let emitted: u64 = recording.stdout.trim().strip_prefix("events ").unwrap().parse().unwrap();
        let events = recording.events();
        let listed = events.iter().filter(|event| event.name != "tracewing:thread").count() as u64;
        let found = listed + recording.lost();
        // A thread that is announced may have been counted lost instead.
        let expected = emitted..=emitted + threads - (events.len() as u64 - listed);
        assert!(expected.contains(&found), "{scene}, {options:?}, {before:?}: {found} of {expected:?}");
        check(&recording, recording.reasons());
    }
}

/// Only small buffers lose anything.
fn loses_nothing(recording: &Recording, mut reasons: BTreeMap<&str, u64>) {
    reasons.remove("buffer full");
    assert!(reasons.is_empty(), "{}", recording.summary);
}

#[test]
fn a_first_event_under_a_filter() {
    play("first", 1, loses_nothing);
}

#[test]
fn every_kind_of_event_under_a_filter() {
    // Origins of user threads are recorded again in new sub-buffers; the number of a lock's events varies.
    play("kinds", 100, loses_nothing);
}

#[test]
fn threads_that_are_older_than_the_filter() {
    play("older", 1, loses_nothing);
}

#[test]
fn threads_that_are_younger_than_the_filter() {
    play("younger", 2, loses_nothing);
}

/// A child by `fork`, and one by `_Fork`, in which the C library runs no handlers.
#[test]
fn forked_children_of_which_each_system_call_is_the_end() {
    play("children", 3, |recording, mut reasons| {
        // A child of `_Fork` never gets any.
        reasons.remove(UNREADY);
        loses_nothing(recording, reasons);
    });
}

/// The agent of a child, which would make it a member of the recording, is ended by such a filter, too: there
/// is none then.
#[test]
fn children_of_a_filtered_program() {
    play("zygote", 3, |recording, mut reasons| {
        reasons.remove(UNREADY);
        loses_nothing(recording, reasons);
    });
}

/// A filter for all threads waits until none of the agent's is doing anything.
#[test]
fn a_filter_that_comes_while_the_process_joins() {
    play("at_once", 201, |recording, mut reasons| {
        reasons.remove(UNREADY);
        loses_nothing(recording, reasons);
    });
}

/// The recorder is stopped when the program starts, and continues when the program is filtered: its agent
/// does not, whether it or the recorder knows of the filter.
#[test]
fn a_program_that_is_filtered_before_its_recorder_answers() {
    for scene in ["outlives", "outlives_unseen"] {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "kill -STOP $PPID; (while [ ! -s ready ]; do sleep 0.01; done; kill -CONT $PPID; sleep 1; echo go on) |
             TRACEWING_WAIT=100 {} {scene} 2> ready; echo status $?",
            program("sandbox").display()
        );
        let child = recorder(folder.path(), &[]).args(["sh", "-c", &script]).spawn().unwrap();
        let recording = recorded::ended(folder, child);
        assert!(recording.stdout.ends_with("status 0\n"), "{scene}: {}", recording.stdout);
        let notes = recording.summary["notes"].to_string();
        assert!(notes.contains("(sandbox): unknown from "), "{scene}: {notes}");
    }
}

#[test]
fn a_flight_recorder_needs_no_system_calls_either() {
    for scene in ["first", "kinds", "older", "younger", "children"] {
        let options = ["--sub-buffers", "64", "--flight-recorder", "--snapshot-on", "exit"];
        let recording = record(&options, &[program("sandbox").to_str().unwrap(), scene]);
        let emitted: usize = recording.stdout.trim().strip_prefix("events ").unwrap().parse().unwrap();
        let events = recording.snapshot();
        let own = events.iter().filter(|event| event.name.starts_with("sandbox:")).count();
        let others = events.iter().filter(|event| !event.name.starts_with("tracewing:")).count();
        // A child of `_Fork` has no buffers.
        let emitted = if scene == "children" { emitted - 100 } else { emitted };
        assert!(
            own == emitted || scene == "kinds" && others >= emitted,
            "{scene}: {own}, {others} of {emitted}"
        );
    }
}

#[test]
fn without_filters_and_without_a_clock() {
    play("strict", 1, |recording, reasons| {
        assert_eq!(reasons, [("in a sandbox", recording.lost())].into(), "{}", recording.summary);
        assert!(recording.lost() >= 12, "{}", recording.summary);
    });
}

/// A program that outlives its recording under a filter of its own.
struct Outliving {
    /// What starts it, for `sh -c`, and waits until it is filtered.
    script: String,
    base: PathBuf,
    /// Its input.
    input: File,
}

impl Outliving {
    fn prepare(folder: &Path) -> Self {
        let base = folder.join("program");
        let at = base.display();
        let script = format!(
            "({} outlives < {at}.in 2> {at}.ready & echo $! > {at}.pid; wait $!; echo $? > {at}.status) \
             > {at}.out 2> /dev/null &
             while [ ! -s {at}.ready ]; do sleep 0.01; done",
            program("sandbox").display(),
        );
        let fifo = base.with_extension("in");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let input = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        Self { script, base, input }
    }

    fn read(&self, what: &str) -> String {
        std::fs::read_to_string(self.base.with_extension(what)).unwrap_or_default().trim().to_owned()
    }

    /// Continues it after the recording, and checks that it was not killed.
    fn lives(mut self) {
        self.input.write_all(b"go on\n").unwrap();
        wait_until("it has ended", || !self.read("status").is_empty());
        assert_eq!(self.read("status"), "0", "the program was killed");
    }
}

/// At the end of a recording the agent's thread, which the filter watches too, has to do without system
/// calls.
#[test]
fn a_program_that_outlives_its_recording_under_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let outliving = Outliving::prepare(folder.path());
    let script = format!("{}; sleep 0.5", outliving.script);
    let child = recorder(folder.path(), &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let summary = output.notes();
    assert!(output.status.success(), "{summary}");
    assert!(summary.contains("is filtered by seccomp and cannot be changed"), "{summary}");
    outliving.lives();
}

/// The command and all that it starts have the filters of the recorder, too: one more makes the difference.
#[test]
fn a_program_with_more_filters_than_its_recorder_is_left_alone() {
    let (program, folder) = (program("sandbox"), tempfile::tempdir().unwrap());
    let program = program.to_str().unwrap();
    let outliving = Outliving::prepare(folder.path());
    let script = format!("{}; {program} lives", outliving.script);
    let recorder = recorder(folder.path(), &["--sub-buffers", "64"]);
    let mut wrapped = Command::new(program);
    wrapped.current_dir(folder.path()).args(["wrap_allowing", program, "wrap_allowing"]);
    wrapped.arg(recorder.get_program()).args(recorder.get_args()).args(["sh", "-c", &script]);
    wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    tracewing_testing::with_default_signals(&mut wrapped);
    let recording = recorded::ended(folder, wrapped.spawn().unwrap());
    let filtered = outliving.read("pid");
    let note = format!(
        "process {filtered} (sandbox) is filtered by seccomp and cannot be changed: it keeps its event rules"
    );
    assert_eq!(recording.summary["notes"], serde_json::json!([note]), "the other one is as the recorder");
    assert_eq!((recording.stdout.as_str(), recording.lost()), ("events 200\n", 0), "{}", recording.summary);
    outliving.lives();
}

/// In a container the recorder has the filter, too: programs that have no more than that take part.
#[test]
fn recorder_and_programs_under_one_filter() {
    let (program, folder) = (program("sandbox"), tempfile::tempdir().unwrap());
    let mut wrapped = std::process::Command::new(&program);
    let recorder = recorder(folder.path(), &["--sub-buffers", "64"]);
    wrapped.current_dir(folder.path()).arg("wrap").arg(recorder.get_program()).args(recorder.get_args());
    wrapped.arg(&program).arg("lives").stdin(std::process::Stdio::null());
    let wrapped = wrapped.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    tracewing_testing::with_default_signals(wrapped);
    let recording = recorded::ended(folder, wrapped.spawn().unwrap());
    assert_eq!((recording.events().len(), recording.lost()), (201, 0), "{}", recording.summary);
    assert_eq!(recording.summary["notes"], serde_json::json!([]));
}

/// Also by a filter that ends it for what joining takes. The recorder looks for such programs now and then,
/// seldom on a busy machine.
#[test]
fn a_program_that_is_filtered_from_its_start_is_noted() {
    let program = program("sandbox");
    let program = program.to_str().unwrap();
    for filter in ["wrap", "wrap_killing"] {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let mut command = recorder(folder.path(), &[]);
        command.args([program, filter, program, "lives"]).stdin(std::process::Stdio::piped());
        let mut child = command.stderr(std::fs::File::create(&said).unwrap()).spawn().unwrap();
        let begin = std::time::Instant::now();
        while !std::fs::read_to_string(&said).unwrap().contains("is not recorded") {
            assert!(begin.elapsed().as_secs() < 60, "{filter}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        drop(child.stdin.take());
        let recording = recorded::ended_with(folder, child, &said);
        assert_eq!(recording.stdout, "events 200\n", "{filter}");
        // The first one has joined, and executed the second one.
        assert_eq!(recording.events().len(), 0, "{filter}");
        let notes = recording.summary["notes"].as_array().unwrap();
        let is_reported = |note: &serde_json::Value| {
            note.as_str()
                .unwrap()
                .ends_with("(sandbox) is not recorded: it was filtered by seccomp when it started")
        };
        assert_eq!(notes.iter().filter(|note| is_reported(note)).count(), 1, "{filter}: {notes:?}");
    }
}

/// The agent's thread is what the recorder has do something. A filter of another thread does not watch it.
#[test]
fn a_filter_of_one_thread_leaves_the_program_changeable() {
    let (program, folder) = (program("sandbox"), tempfile::tempdir().unwrap());
    let script = format!("{} one 2> ready", program.display());
    let mut command = recorder(folder.path(), &["-e", "nothing:*"]);
    let mut child = command.args(["sh", "-c", &script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let ready = folder.path().join("ready");
    let begin = std::time::Instant::now();
    while std::fs::read(&ready).unwrap_or_default().is_empty() {
        assert!(begin.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    recorded::confirmed("enable", &child.id().to_string(), &["-e", "sandbox:step"]);
    // It emits now. When its class is enabled would be too early: its sites are switched after that.
    drop(child.stdin.take());
    let recording = recorded::ended(folder, child);
    assert!(recording.events().iter().any(|event| event.name == "sandbox:step"), "{}", recording.summary);
    assert!(!recording.stderr.contains("seccomp"), "{}", recording.stderr);
}

/// The agent asks the kernel for no names. The recorder does, where a thread has none of its own.
#[test]
fn names_are_read_by_the_recorder() {
    for options in [&[][..], &["--buffers-in", "b"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = recorder(folder.path(), options);
        command.arg(program("sandbox")).arg("named").stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (trace, begin) = (folder.path().join("t"), std::time::Instant::now());
        let is_written = || trace.join("tracewing.json").exists() && recorded::list(&trace).len() >= 11;
        while !is_written() {
            assert!(begin.elapsed().as_secs() < 60);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        drop(child.stdin.take());
        let events = recorded::ended(folder, child).events();
        let thread = events.iter().find(|event| event.name == "tracewing:thread").unwrap();
        assert_eq!(thread.payload["name"], "by a file", "{options:?}");
    }
}

/// The thread has ended before the recorder looks.
#[test]
fn names_of_short_threads_are_noted() {
    let recording = record(&[], &[program("sandbox").to_str().unwrap(), "short"]);
    let events = recording.events();
    let thread = events.iter().find(|event| event.name == "tracewing:thread").unwrap();
    assert_eq!(thread.payload["name"], "by prctl");
}
