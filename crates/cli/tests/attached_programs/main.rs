//! Programs that were built with tracewing and run already when a recorder attaches to them.

mod filters;
#[path = "../harness/mod.rs"]
mod harness;
mod helpers;
mod hostile;
mod killed;
mod kinds;
mod namespaces;
mod plugins;
#[path = "../recorded/mod.rs"]
mod recorded;
mod resident;
mod start;
mod tasks;
mod with;
mod yama;

use harness::{Printed, RunExt};
use resident::{PROGRAM, Recorder, Resident, agents, count, is_on, waits_in_vain};
use serde_json::Value;
use std::process::Command;
use std::time::Instant;
use tracewing_testing::{am_root, wait_until};

#[test]
fn a_running_program_joins_and_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    program.order("emit 3");
    let before = program.state();
    let mut mapped = None;
    for round in 1..=10 {
        let begin = Instant::now();
        let recorder = Recorder::start(&folder.path().join(round.to_string()), program.pid, &[], 1);
        assert_eq!(program.order("emit 100"), "emitted");
        assert_eq!(program.order("thread 10"), "emitted");
        let trace = recorder.trace().to_owned();
        let said = recorder.stop();
        let summary: Value = serde_json::from_str(said.lines().next_back().unwrap()).unwrap();
        assert_eq!(summary["lost_events"], 0, "{said}");
        let stop = summary["longest_stop_ns"].as_u64().unwrap_or(0);
        assert!(stop > 0 && u128::from(stop) < begin.elapsed().as_nanos(), "{said}");
        assert_eq!((count(&trace, "resident:step"), count(&trace, "resident:answer")), (110, 1));
        wait_until("the agent has ended", || program.state() == before);
        assert_eq!(program.order("reported"), round.to_string());
        let (all, buffers) = program.mappings();
        assert_eq!(buffers, 0);
        assert!(
            all <= *mapped.get_or_insert(all),
            "{all} mappings in round {round}, {mapped:?} after the first"
        );
    }
    program.order("emit 3");
    program.end();
}

#[test]
fn the_summary_names_the_longest_stop() {
    let folder = tempfile::tempdir().unwrap();
    let program = Resident::start();
    let mut command = harness::tracewing();
    command.args(["record", "--no-kernel", "--for", "0.5", "--pid", &program.pid.to_string(), "-o"]);
    let said = command.arg(folder.path().join("t")).succeeds().notes();
    let stop = said.split_once("; longest stop of a thread: ").and_then(|(_, text)| text.split_once(" ms\n"));
    assert!(stop.is_some_and(|(ms, _)| ms.parse::<f64>().is_ok_and(|ms| ms > 0.0)), "{said}");
}

/// As that of a service's script that ends with `exec server`.
#[test]
fn a_program_that_was_just_executed_joins_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Command::new("sh");
    let program = Resident::of(script.args(["-c", "sleep 0.3; exec \"$0\""]).arg(&*PROGRAM));
    let mut command = harness::tracewing();
    command.args(["record", "--no-kernel", "--for", "0.7", "--pid", &program.pid.to_string(), "-o"]);
    let said = command.arg(folder.path().join("t")).succeeds().notes();
    assert!(said.contains("1 program joined"), "{said}");
}

/// At any moment of its joining.
#[test]
fn a_recorder_that_ends_at_once_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let before = program.state();
    // Most of them while it attaches.
    let attaching = (0..60).map(|round| 1000 + round * 250);
    for (round, microseconds) in attaching.chain((0..20).map(|round| 1000 + round * 5000)).enumerate() {
        let seconds = format!("0.{microseconds:06}");
        let trace = folder.path().join(round.to_string());
        Recorder::spawn(&trace, program.pid, &["--for", &seconds]).ended();
        // The end of a recorder wakes what waits for it.
        assert!(!waits_in_vain(program.pid), "after {seconds} s");
        wait_until("the agent has ended", || program.state() == before);
        assert_eq!(program.mappings().1, 0, "after {seconds} s");
        assert_eq!(program.order("emit 10"), "emitted");
    }
    program.end();
}

#[test]
fn a_killed_recorder_leaves_buffers_until_the_next_one_attaches() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let before = program.state();
    // More than a process takes part in at a time.
    for round in 0..10 {
        let recorder = Recorder::start(&folder.path().join(round.to_string()), program.pid, &[], 1);
        assert!(program.mappings().1 > 0);
        recorder.kill();
        wait_until("the agent has ended", || program.state() == before);
        program.order("emit 10");
    }
    let recorder = Recorder::start(&folder.path().join("last"), program.pid, &[], 1);
    program.order("emit 10");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 10);
    wait_until("the agent has ended", || program.state() == before);
    assert_eq!(program.mappings().1, 0);
    program.end();
}

#[test]
fn children_join_by_the_door_and_what_they_execute_is_attached_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    assert_eq!(program.order("fork 100"), "0");
    assert_eq!(program.order("exec"), "ready");
    let children = format!("/proc/{0}/task/{0}/children", program.pid);
    let child = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
    wait_until("the executed program is recorded", || agents(child) == 1);
    let trace = recorder.trace().to_owned();
    wait_until("it has reported its state", || program.order("reported") == "1");
    program.order("emit 1000");
    program.end();
    recorder.ended();
    assert_eq!(count(&trace, "resident:step"), 1200);
    assert_eq!(count(&trace, "resident:answer"), 2);
}

/// Another recorder may trace it at the moment.
#[test]
fn a_tracer_that_lets_go_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let pid = program.pid;
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let (say, hear) = std::sync::mpsc::channel();
    // What a thread traces is let go when it ends.
    let tracer = std::thread::spawn(move || {
        // SAFETY: numbers.
        say.send(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize) }).unwrap();
        let _ = ends.recv();
    });
    assert_eq!(hear.recv(), Ok(0));
    let mut recorder = Recorder::spawn(&folder.path().join("t"), pid, &[]);
    wait_until("it has begun", || harness::run(&["rules", &recorder.pid()]).status.success());
    // Longer than an attempt takes.
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(end);
    tracer.join().unwrap();
    recorder.wait(pid, 1);
    program.order("emit 10");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 10);
    program.end();
}

#[test]
fn every_copy_joins() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let plugin = PROGRAM.with_file_name("libplugin.so");
    program.order(&format!("load {}", plugin.display()));
    let before = program.state();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 2);
    wait_until("it has reported its state", || program.order("reported") == "1");
    wait_until("the plug-in has its classes", || is_on(program.pid, "plugin:step"));
    program.order("emit 5");
    program.order("plugin 7");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!((count(&trace, "resident:step"), count(&trace, "plugin:step")), (5, 7));
    wait_until("the agents have ended", || program.state() == before);
    program.end();
}

#[test]
fn an_attached_program_asks_its_flight_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &["--flight-recorder"], 1);
    program.order("emit 5");
    let snapshot = program.order("snapshot");
    assert_eq!(count(snapshot.as_ref(), "resident:step"), 5);
    recorder.stop();
    program.end();
}

#[test]
fn rules_change_and_sites_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &["-e", "resident:answer"], 1);
    let on = || is_on(program.pid, "resident:step");
    assert!(!on());
    // Of whichever process one thinks.
    for pid in [recorder.pid(), program.pid.to_string()] {
        assert!(harness::run(&["enable", &pid, "-e", "resident:step"]).status.success());
    }
    assert!(on());
    program.order("emit 5");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 5);
    program.end();
}
