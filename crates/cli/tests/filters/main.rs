//! Filters, end to end: a program whose tasks share two workers is recorded, and each filter gives the events
//! that a plain reading of `tracewing list --super` gives, with every command, and in what
//! `tracewing extract` writes. As root with the events of the kernel, else without.

mod extracts;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../recorded/mod.rs"]
mod recorded;
mod times;

use harness::{Printed, RunExt, traceable};
use recorded::build;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The program that tests record.
fn program() -> PathBuf {
    build(&["-p", "reactivity"]).join("reactivity")
}

/// A recording that all tests read.
fn recording() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filters");
        // From an earlier run, if there was one.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let mut record = harness::tracewing();
        record.args(["record", "-o"]).arg(folder.join("trace"));
        if !traceable() {
            record.arg("--no-kernel");
        }
        record.arg("--").arg(program()).args(["--tasks", "4", "--quantum", "4", "--messages", "3"]);
        record.stdout(Stdio::null()).succeeds();
        folder
    })
}

#[track_caller]
fn run(arguments: &[&str]) -> String {
    harness::tracewing().current_dir(recording()).args(arguments).succeeds().text()
}

fn has_kernel() -> bool {
    recording().join("trace/kernel").exists()
}

/// Lines of `list --super`, in their order.
fn super_trace(filter: &[&str]) -> Vec<Value> {
    let text = run(&[&["list", "trace", "--super", "--format", "json"], filter].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The thread that an event belongs to, or to which a switch leads: (process, LWP, task).
type Place = (Option<i64>, Option<i64>, Option<u64>);

/// All events with their places, by the switches alone.
fn places() -> Vec<(Value, Place, Place)> {
    let mut carried: HashMap<i64, u64> = HashMap::new();
    let mut processes: HashMap<i64, i64> = HashMap::new();
    let mut found = Vec::new();
    // Of the command the recording says it before all events.
    let metadata = std::fs::read_to_string(recording().join("trace/kernel/metadata")).unwrap_or_default();
    let root =
        metadata.split_once("root_process = ").and_then(|(_, rest)| rest.split_once(';')?.0.parse().ok());
    processes.extend(root.map(|root: i64| (root, root)));
    for event in super_trace(&[]) {
        let (process, tid, task) = (event["pid"].as_i64(), event["tid"].as_i64(), event["thr"].as_u64());
        let mut next = (None, None, None);
        if let (Some(process), Some(tid)) = (process, tid) {
            processes.insert(tid, process);
        }
        match (event["name"].as_str().expect("a name"), tid) {
            ("user_thread:switch", Some(tid)) => {
                let to = event["params"]["next"].as_u64().expect("a number");
                carried.insert(tid, to);
                next = (process, None, Some(to));
            }
            // What is created belongs to itself, too.
            ("user_thread:create", Some(_)) => {
                next = (process, None, event["params"]["thread"].as_u64());
            }
            ("sched_switch", _) => {
                let to = event["params"]["next_tid"].as_i64().expect("a number");
                next = (processes.get(&to).copied(), Some(to), carried.get(&to).copied());
            }
            // What a process begins belongs to it, if it says so (CLONE_THREAD).
            ("task_newtask", Some(_)) => {
                let process = process.unwrap_or_default();
                let number = |field: &str| event["params"][field].as_i64();
                let child = number("tid").or_else(|| number("pid")).expect("a number");
                let is_thread = number("clone_flags").expect("a number") & 0x1_0000 != 0;
                processes.insert(child, if is_thread { process } else { child });
                next = (processes.get(&child).copied(), Some(child), None);
            }
            ("sched_process_fork", _) => {
                let child = event["params"]["child_tid"].as_i64().expect("a number");
                next = (processes.get(&child).copied(), Some(child), None);
            }
            _ => {}
        }
        found.push((event, (process, tid, task), next));
    }
    found
}

/// The process and two tasks' numbers, as the program prints them.
fn tasks() -> (i64, u64, u64) {
    let created = super_trace(&["-e", "user_thread:create", "-e", "user_thread:origin"]);
    let task = |name: &str| {
        let origin = created.iter().find(|event| event["params"]["name"] == name).expect("it is recorded");
        let is_its = |event: &&Value| {
            event["name"] == "user_thread:create" && event["params"]["origin"] == origin["params"]["origin"]
        };
        let event = created.iter().find(is_its).expect("it is created");
        (event["pid"].as_i64().expect("a process"), event["params"]["thread"].as_u64().expect("a number"))
    };
    let (work, daemon) = (task("work/1"), task("daemon"));
    (work.0, work.1, daemon.1)
}

/// A CPU on which a worker of the process runs a task: a machine that is busy may have left it only one.
fn cpu_of(process: i64) -> u64 {
    let switches = super_trace(&["-e", "user_thread:switch", "--where", "next != 0"]);
    let switch = switches.iter().find(|event| event["pid"] == process).expect("a task runs");
    switch["cpu"].as_u64().expect("a number")
}

/// Rows of `threads --format json`.
fn threads(by: &str, filter: &[&str]) -> Vec<Value> {
    let text = run(&[&["threads", "trace", "--format", "json", "--by", by], filter].concat());
    let table: Value = serde_json::from_str(&text).expect("JSON");
    let key = if by == "task" { "user_threads" } else { "threads" };
    table[key].as_array().expect("a list").clone()
}

fn sum(rows: &[Value], columns: &[&str]) -> u64 {
    rows.iter().flat_map(|row| columns.iter().map(|column| row[column].as_u64().expect("ns"))).sum()
}

#[test]
fn events_belong_to_the_running_thread_and_switches_also_to_the_next_one() {
    let (process, work, _) = tasks();
    let all = places();
    let tid = all.iter().find(|(.., next)| next.2 == Some(work)).and_then(|(_, here, _)| here.1);
    let tid = tid.expect("a worker runs the task");
    let same = |filter: &[&str], fits: &dyn Fn(&Value, Place) -> bool| {
        let chosen = all.iter().filter(|(event, here, next)| fits(event, *here) || fits(event, *next));
        let chosen: Vec<&Value> = chosen.map(|(event, ..)| event).collect();
        assert!(!chosen.is_empty(), "{filter:?} chooses nothing");
        assert_eq!(super_trace(filter).iter().collect::<Vec<_>>(), chosen, "{filter:?}");
    };
    let of_task = |_: &Value, place: Place| place.2 == Some(work);
    same(&["--task", "work/1"], &of_task);
    same(&["--task", &work.to_string()], &of_task);
    same(&["--task", &format!("{process}/{work}")], &of_task);
    same(&["--tid", &tid.to_string()], &|_, place| place.1 == Some(tid));
    same(&["--process", &process.to_string()], &|_, place| place.0 == Some(process));
    // With the program's events alone, its name is known only once its first thread has reported it.
    if has_kernel() {
        // It is called so once it has executed the program, or a switch within that says so.
        let is_named = |event: &Value, side: &str| {
            let of = |member: &str| &event["params"][format!("{side}_{member}")];
            of("tid") == process && of("comm") == "reactivity"
        };
        let names = |event: &Value| {
            let is_exec = event["name"] == "sched_process_exec" && event["pid"] == process;
            is_exec || is_named(event, "prev") || is_named(event, "next")
        };
        let named = all.iter().find(|(event, ..)| names(event)).map(|(event, ..)| event["ns"].as_i64());
        let is_called_so = |event: &Value| event["ns"].as_i64() > named.flatten();
        same(&["--process", "react*"], &|event, place| place.0 == Some(process) && is_called_so(event));
    }
    let cpu = cpu_of(process);
    same(&["--process", &process.to_string(), "--cpu", &cpu.to_string()], &|event, place| {
        place.0 == Some(process) && event["cpu"] == cpu
    });
    same(&["--user"], &|event, _| event["type"] == "USER");
    same(&["--cpu", &cpu.to_string()], &|event, _| event["cpu"] == cpu);
    assert!(super_trace(&["--task", &format!("{}/{work}", process + 1)]).is_empty());
    assert_eq!(super_trace(&["--cpu", "0-1000000"]).len(), all.len());
    if has_kernel() {
        same(&["--kernel"], &|event, _| event["type"] == "KERN");
    }
}

#[test]
fn conditions_ask_for_derived_columns() {
    let (process, work, _) = tasks();
    let same = |condition: &str, fits: &dyn Fn(&Value) -> bool| {
        let mut all = super_trace(&[]);
        all.retain(|event| fits(event));
        assert_eq!(super_trace(&["--where", condition]), all, "{condition}");
        all.len()
    };
    assert!(same("$task_name == 'work/1'", &|event| event["thr_name"] == "work/1") > 0);
    assert!(
        same(&format!("$task == {work} && $mode == 'user'"), &|event| {
            event["thr"] == work && event["mode"] == "user"
        }) > 0
    );
    assert!(
        same(&format!("$pid == {process} && $task == 0"), &|event| event["pid"] == process
            && event["thr"] == 0)
            > 0
    );
    if has_kernel() {
        assert!(
            same("$call =~ 'cl*'", &|event| event["call"]
                .as_str()
                .is_some_and(|call| call.starts_with("cl")))
                > 0
        );
        assert!(same("$mode == 'interrupt'", &|event| event["mode"] == "interrupt") > 0);
    }
}

/// Whether babeltrace2 prints the line, too. Of two events of the same nanosecond, the later one may have
/// fewer cycles; the negative distance is an unsigned number, or none, in babeltrace2's text.
fn is_same_line(own: &str, other: &str) -> bool {
    fn parts(line: &str) -> Option<(&str, &str)> {
        let (stamp, rest) = line.split_once("] (")?;
        Some((stamp, rest.split_once(") ")?.1))
    }
    own == other || own.contains("] (-") && parts(own) == parts(other)
}

#[test]
fn every_command_chooses_the_same_and_an_extract_holds_it() {
    let (process, work, _) = tasks();
    let cpu = cpu_of(process).to_string();
    let (process, work) = (process.to_string(), work.to_string());
    let on_cpu = format!("next != 0 && $cpu == {cpu}");
    let filters: &[&[&str]] = &[
        &["--task", &work],
        &["--task", "work/*", "--exclude", "user_thread:wake"],
        &["--process", &process, "--cpu", &cpu],
        &["--process", "reactivity", "--user", "--from", "+1ms", "--to", "+1min"],
        &["--where", "$task_name == 'daemon'", "--from", "reactivity:received_msg#1"],
        &["--from", "reactivity:received_msg#1", "--to", "reactivity:received_msg#3"],
        &["-e", "user_thread:switch", "--where", &on_cpu],
    ];
    for (number, filter) in filters.iter().enumerate() {
        let part = format!("part-{number}");
        // OUT with a name, or the last one of those without.
        let out = if number % 2 == 0 { vec!["-o", &part] } else { vec![part.as_str()] };
        run(&[&["extract", "trace"], &out[..], filter].concat());
        let options = &["--clock-cycles", "--fields", "trace:hostname,trace:domain"];
        let list = |trace: &str, filter: &[&str]| run(&[&["list", trace], &options[..], filter].concat());
        let count = list("trace", filter).lines().count();
        assert!(count > 0, "{filter:?}");
        // Events that carry names are in it whatever is chosen.
        let names = ["lttng_statedump_*", "tracewing:thread", "user_thread:origin", "user_thread:create"];
        let of_kernel = ["task_newtask", "sched_process_fork", "sched_process_exec"];
        let others: Vec<&str> =
            names.iter().chain(&of_kernel).flat_map(|name| ["--exclude", *name]).collect();
        assert!(list(&part, &others) == list("trace", &[&others[..], *filter].concat()), "{filter:?}");
        let statistics: Value =
            serde_json::from_str(&run(&[&["stats", "trace", "--format", "json"], *filter].concat()))
                .expect("JSON");
        assert_eq!(statistics["total"]["events"], count, "{filter:?}");
        let json = format!("{part}.json");
        run(&[&["convert", "trace", "--format", "json", "-o", &json], *filter].concat());
        let converted = std::fs::read_to_string(recording().join(json)).expect("it was written");
        assert!(converted == run(&[&["list", "trace", "--format", "json"], *filter].concat()), "{filter:?}");
        if let Ok(peer) = Command::new("babeltrace2").args(options).arg(recording().join(&part)).output() {
            let (all, peer) = (list(&part, &["--from", "2001-01-01"]), peer.text());
            let first = all.lines().zip(peer.lines()).find(|(own, other)| !is_same_line(own, other));
            assert_eq!(first, None, "babeltrace2 reads {part} otherwise");
            assert_eq!(all.lines().count(), peer.lines().count(), "{part}");
        }
    }
}

#[test]
fn a_word_that_a_column_never_has_is_refused() {
    let cases = [
        ("$state == 'bogus'", "running, runnable, preempted"),
        ("$mode != 'kernel'", "user, syscall, interrupt"),
    ];
    for (condition, words) in cases {
        for command in ["list", "threads", "stats"] {
            let mut tracewing = harness::tracewing();
            tracewing.current_dir(recording()).args([command, "trace", "--where", condition]);
            let output = tracewing.ran();
            let said = output.notes();
            assert!(!output.status.success() && said.contains(words), "{command} {condition}: {said}");
            assert_eq!(said.matches("has no label").count(), 1, "one reason for all events: {said}");
        }
    }
    let mut tracewing = harness::tracewing();
    tracewing.current_dir(recording()).args(["list", "trace", "--where", "nosuch == 5"]);
    let said = String::from_utf8_lossy(&tracewing.ran().stderr).into_owned();
    assert_eq!(said.matches("`nosuch`").count(), 1, "{said}");
    assert!(!run(&["list", "trace", "--where", "$state != 'blocked' || $mode =~ 'sys*'"]).is_empty());
    // What else is true selects, and a warning says that the word does not.
    let known = run(&["list", "trace", "--where", "$mode =~ 'u*'"]);
    let mut tracewing = harness::tracewing();
    tracewing.current_dir(recording()).args([
        "list",
        "trace",
        "--where",
        "$state == 'bogus' || $mode =~ 'u*'",
    ]);
    let output = tracewing.ran();
    let said = output.notes();
    assert_eq!(said.matches("a comparison of the condition is unknown for all events").count(), 1, "{said}");
    assert!(output.status.success() && output.text() == known && !known.is_empty());
}
