//! Programs in other namespaces than the recorder's: user, PID, mount, network, IPC, host name.

use super::*;
use crate::harness::{RunExt, json, traceable};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Only the program's own file and its folder can be reached in this machine's file systems.
const SCRIPT: &str =
    "mount -t proc none /proc && mount -t tmpfs none /tmp && mount -t tmpfs none /run && exec \"$0\"";

/// The program, as the first process of its namespaces.
pub fn inside(program: &Path) -> Resident {
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--net",
        "--ipc",
    ]);
    command.args(["--uts", "sh", "-c", SCRIPT]).arg(program);
    let mut program = Resident::of(&mut command);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", program.pid)).unwrap();
    program.pid = children.trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid)).unwrap();
    assert!(status.contains(&format!("NSpid:\t{}\t1\n", program.pid)), "{status}");
    program
}

fn threads(pid: u32) -> BTreeSet<i64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.map(|task| task.file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// The rows of `threads`, of one process.
fn rows(trace: &Path, pid: u32) -> Vec<Value> {
    let table = json(trace, &["threads"]);
    table["threads"].as_array().unwrap().iter().filter(|row| row["process"] == pid).cloned().collect()
}

#[test]
fn its_events_are_those_of_the_threads_that_the_kernel_names() {
    if !am_root() || !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = inside(&PROGRAM);
    let before = program.state();
    let trace = folder.path().join("t");
    let mut recorder = Recorder::of(&trace, &["--pid", &program.pid.to_string()]);
    recorder.wait(program.pid, 1);
    assert_eq!(program.order("emit 20"), "emitted");
    // Later threads, one of which ends before it can be seen.
    assert_eq!(program.order("keep 30"), "emitted");
    assert_eq!(program.order("thread 40"), "emitted");
    assert_eq!(program.order("fork 10"), "0");
    let known = threads(program.pid);
    let said = recorder.stop();
    let summary: Value = serde_json::from_str(said.lines().next_back().unwrap()).unwrap();
    // A child may not have buffers in time.
    let lost = summary["lost_events"].as_u64().unwrap() as usize;
    wait_until("the agent has ended", || program.state().1 == before.1);

    let steps: Vec<_> =
        recorded::list(&trace).into_iter().filter(|event| event.name == "resident:step").collect();
    let first = i64::from(program.pid);
    let of = |is_one: &dyn Fn(i64) -> bool| steps.iter().filter(|event| is_one(event.tid)).count();
    assert_eq!((steps.len() + lost, of(&|tid| tid == first)), (110, 20), "{said}");
    assert_eq!(of(&|tid| tid != first && known.contains(&tid)), 30);
    // Numbers inside begin at 1. The machine's reach an end, and then begin again, but at 300 (RESERVED_PIDS
    // in the kernel's pid.c).
    assert_eq!(of(&|tid| tid < 300), 0, "numbers inside");
    // At most the children and that one thread were not seen.
    assert!(of(&|tid| tid >= 1 << 30) <= 60);

    // Both kinds of events are of the same thread.
    let rows = rows(&trace, program.pid);
    let row = rows.iter().find(|row| row["tid"] == first).unwrap_or_else(|| panic!("{rows:?}"));
    assert!(row["user_events"] == 20 && row["switches"].as_u64() > Some(0), "{row}");
    let kept = rows.iter().find(|row| {
        let tid = row["tid"].as_i64().unwrap();
        tid != first && known.contains(&tid) && row["user_events"] == 30
    });
    assert!(kept.is_some_and(|row| row["switches"].as_u64() > Some(0)), "{rows:?}");
    program.end();
}

#[test]
fn a_server_of_tokio() {
    if !am_root() || !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let tasks = recorded::build(&["-p", "tracewing-tokio", "--example", "resident_tasks"]);
    let mut program = inside(&tasks.join("examples/resident_tasks"));
    let trace = folder.path().join("t");
    let mut recorder = Recorder::of(&trace, &["--pid", &program.pid.to_string()]);
    recorder.wait(program.pid, 1);
    for order in ["serve 2", "release", "unlock", "born"] {
        assert_eq!(program.order(order), "done");
    }
    let known = threads(program.pid);
    let said = recorder.stop();
    let table = json(&trace, &["tasks", "-n", "100"]);
    let tasks = table["tasks"].as_array().unwrap();
    let born = tasks.iter().find(|row| row["name"] == "born").unwrap_or_else(|| panic!("{said} {table}"));
    assert_eq!((&born["process"], &born["unknown_ns"]), (&program.pid.into(), &0.into()), "{born}");
    let workers = rows(&trace, program.pid);
    let polled = workers.iter().filter(|row| row["polls"].as_u64() > Some(0));
    let polled: Vec<i64> = polled.map(|row| row["tid"].as_i64().unwrap()).collect();
    assert!(!polled.is_empty() && polled.iter().all(|tid| known.contains(tid)), "{workers:?}");
    program.end();
}

#[test]
fn it_is_asked_changed_and_found() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = PROGRAM.with_file_name(format!("inside-{}", std::process::id()));
    tracewing_testing::copy_program(&*PROGRAM, &named);
    let mut program = inside(&named);
    let pid = program.pid.to_string();
    let on = || {
        let sites = harness::run(&["sites", "--format", "csv", "-e", "resident:step", &pid]);
        assert!(sites.status.success(), "{sites:?}");
        String::from_utf8(sites.stdout).unwrap().contains(",on,")
    };
    let name = named.file_name().unwrap().to_str().unwrap();
    let options = ["--no-kernel", "--flight-recorder", "--name", name, "-e", "resident:answer"];
    let mut recorder = Recorder::of(&folder.path().join("flight"), &options);
    recorder.wait(program.pid, 1);
    assert!(!on());
    assert!(harness::run(&["enable", &recorder.pid(), "-e", "resident:step"]).status.success());
    assert!(on());
    program.order("emit 5");
    let snapshot = program.order("snapshot");
    let steps: Vec<_> =
        recorded::list(snapshot.as_ref()).into_iter().filter(|event| event.name == "resident:step").collect();
    assert_eq!(steps.len(), 5);
    assert!(steps.iter().all(|event| event.tid == i64::from(program.pid)), "{snapshot}");
    harness::tracewing().args(["snapshot", &recorder.pid()]).succeeds();
    recorder.stop();
    program.end();
    fs::remove_file(named).unwrap();
}

/// The program evaluates them, and knows its own numbers only.
#[test]
fn conditions_have_the_numbers_inside_which_is_said() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut program = inside(&PROGRAM);
    let condition = |number: u32| format!("--where=$pid == {number}");
    let [outside, here] = [program.pid, 1].map(condition);
    let expected = format!("process {} (resident) is in another PID namespace", program.pid);
    let pid = program.pid.to_string();
    let options = ["--no-kernel", "--pid", &pid, "-e", "resident:step", &outside];
    let mut recorder = Recorder::of(&folder.path().join("t"), &options);
    recorder.wait(program.pid, 1);
    program.order("emit 5");
    let enabled = harness::run(&["enable", &recorder.pid(), "-e", "resident:step", &here]);
    assert!(enabled.status.success() && enabled.notes().contains(&expected), "{}", enabled.notes());
    program.order("emit 3");
    let trace = recorder.trace().to_owned();
    let said = recorder.stop();
    assert!(said.contains(&expected), "{said}");
    assert_eq!(count(&trace, "resident:step"), 3, "{said}");
    program.end();
}
