//! `record --with`: the processes of another recording, as if they had been selected one by one.

use super::namespaces::inside;
use super::*;
use crate::harness::{json, traceable};
use std::path::Path;

/// Starts a recorder of the processes of another one.
fn with(folder: &Path, other: &Recorder, options: &[&str]) -> Recorder {
    Recorder::of(folder, &[&["--with", &other.pid()], options].concat())
}

fn summary(said: &str) -> Value {
    serde_json::from_str(said.lines().next_back().unwrap()).unwrap()
}

/// Its programs are invited: no thread of theirs is stopped.
#[test]
fn the_kernels_events_are_those_of_its_processes() {
    if !am_root() || !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let first = Recorder::start(&folder.path().join("first"), program.pid, &[], 1);
    let mut second =
        with(&folder.path().join("second"), &first, &["-e", "resident:step", "-k", "sched_switch"]);
    second.wait(program.pid, 2);
    program.order("emit 20");
    assert_eq!(program.order("fork 10"), "0");
    let trace = second.trace().to_owned();
    let said = summary(&second.stop());
    assert_eq!(said["attached"][0]["pid"], program.pid, "{said}");
    assert!(said["longest_stop_ns"].is_null() && said["lost_events"] == 0, "{said}");
    assert_eq!(count(&trace, "resident:step"), 40);
    let table = json(&trace, &["threads"]);
    let rows = table["threads"].as_array().unwrap();
    let row = rows.iter().find(|row| row["tid"] == program.pid).unwrap();
    assert!(row["switches"].as_u64() > Some(0) && row["user_events"] == 20, "{row}");
    // The program, its two children, and what records them; nothing else of the machine.
    let named = |name: &str| rows.iter().filter(|row| row["name"] == name).count();
    assert_eq!((named("resident"), rows.len()), (3, 3 + named("tracewing")), "{rows:?}");
    first.stop();
    program.end();
}

#[test]
fn it_ends_with_the_last_process() {
    let folder = tempfile::tempdir().unwrap();
    let program = Resident::start();
    let first = Recorder::start(&folder.path().join("first"), program.pid, &[], 1);
    let mut second = with(&folder.path().join("second"), &first, &["--no-kernel"]);
    second.wait(program.pid, 2);
    // The other recording's end is no end of this one.
    first.stop();
    wait_until("the first agent has ended", || agents(program.pid) == 1);
    program.end();
    second.ended();
}

/// It cannot follow an invitation to a path: that is not in its mount namespace.
#[test]
fn one_that_cannot_come_is_attached_to() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = inside(&PROGRAM);
    let first = Recorder::start(&folder.path().join("first"), program.pid, &[], 1);
    let mut second = with(&folder.path().join("second"), &first, &["--no-kernel", "-e", "resident:step"]);
    second.wait(program.pid, 2);
    program.order("emit 20");
    let trace = second.trace().to_owned();
    let said = summary(&second.stop());
    assert!(said["longest_stop_ns"].as_u64() > Some(0), "{said}");
    assert_eq!(count(&trace, "resident:step"), 20);
    first.stop();
    program.end();
}

#[test]
fn samples_of_its_processes_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let first = Recorder::start(&folder.path().join("first"), program.pid, &[], 1);
    let refused = |words: &[&str]| {
        let mut command = harness::tracewing();
        command.args(["record", "-o"]).arg(folder.path().join("none")).args(words);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        output.notes()
    };
    let pid = first.pid();
    let said = refused(&["--with", &pid, "--locks"]);
    assert!(said.contains("cannot be used for a running program"), "{said}");
    let said = refused(&["--with", &pid, "--profile", "99", "--", "true"]);
    assert!(said.contains("leave one of them out"), "{said}");
    let mut second = with(&folder.path().join("second"), &first, &["--no-kernel", "--profile", "99"]);
    second.wait(program.pid, 2);
    program.order("emit 20");
    second.stop();
    assert!(folder.path().join("second/profile").exists());
    first.stop();
    program.end();
}
