//! Kinds of events are taken away from stored recordings, one at a time: each step of a critical path is one
//! of the whole recording's, or says less, and the analyses name what is missing.

mod harness;

use harness::{Json, Printed, RunExt};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings").join(name)
}

fn tracewing(arguments: &[&str], trace: &Path) -> Output {
    harness::tracewing().args(arguments).args(["--format", "json"]).arg(trace).ran()
}

fn without(events: &str, whole: &Path, part: &Path) {
    let mut extract = harness::tracewing();
    let output = extract.args(["extract", "--exclude", events]).args([whole, part]).ran();
    assert!(output.status.success(), "{events}: {output:?}");
}

/// The path's steps, and the command's messages; no steps if the recording does not identify their thread.
fn path(target: &[String], trace: &Path) -> (Vec<Value>, String) {
    let arguments: Vec<&str> = target.iter().map(String::as_str).collect();
    let output = tracewing(&[&["critical-path"], &arguments[..]].concat(), trace);
    let said = output.notes();
    if !output.status.success() {
        assert!(said.contains("does not appear in this time"), "{said}");
        return (Vec::new(), said);
    }
    let mut document: Value = output.json();
    let Value::Array(steps) = document["steps"].take() else { panic!("{document}") };
    (steps, said)
}

/// The threads and tasks that have paths in a recording.
fn targets(trace: &Path) -> Vec<Vec<String>> {
    let all = |command: &[&str], member: &str| -> Vec<Value> {
        let mut document: Value = serde_json::from_slice(&tracewing(command, trace).stdout).unwrap();
        document[member].as_array_mut().map(std::mem::take).unwrap_or_default()
    };
    let threads = all(&["threads", "-n", "4"], "threads").into_iter();
    let threads = threads.map(|thread| vec!["--tid".to_owned(), thread["tid"].to_string()]);
    let tasks = all(&["tasks", "-n", "2"], "tasks").into_iter();
    let tasks = tasks.map(|task| vec!["--task".to_owned(), format!("{}/{}", task["process"], task["task"])]);
    threads.chain(tasks).collect()
}

/// What is taken away, and what `critical-path` then says is missing.
const REMOVED: [(&str, &str); 13] = [
    ("sched_switch", "The recording lacks some switches of threads"),
    ("sched_waking", "The recording lacks some wake-ups"),
    ("sched_wakeup", "The recording lacks some wake-ups"),
    ("sched_wak*", "The recording lacks some wake-ups"),
    ("syscall_entry_*", "The recording lacks some system calls"),
    ("syscall_exit_*", "The recording lacks some system calls"),
    ("irq_*", "The recording lacks some interrupts"),
    ("irq_softirq_exit", "The recording lacks some interrupts"),
    ("sched_process_*", ""),
    ("user_thread:switch", "The recording lacks some switches of tasks"),
    ("user_thread:wake", "The recording lacks some wakes of tasks"),
    ("user_thread:create", ""),
    ("user_thread:exit", ""),
];

/// What the stored recordings are without: they have few kinds of system calls, and of interrupts no vectors.
const STORED: [&str; 2] = ["The recording lacks some system calls", "The recording lacks some interrupts"];

/// What of all is said to be missing.
fn lacks(said: &str) -> Vec<&'static str> {
    let mut all: Vec<&str> = REMOVED.iter().map(|(_, says)| *says).filter(|says| !says.is_empty()).collect();
    all.sort_unstable_by_key(|says| (!STORED.contains(says), !says.contains("calls")));
    all.dedup();
    all.into_iter().filter(|says| said.contains(says)).collect()
}

/// Without `sched_waking` a thread is ready from `sched_wakeup` on, which comes later: steps that differ for
/// less than this, in ns, may lie between the two. The recordings are stored, so no machine is too slow for
/// that.
const DELAY: i64 = 100_000;

fn ns(step: &Value, name: &str) -> i64 {
    step[name].as_i64().unwrap()
}

/// The steps of a path that lie in the time of another one's step.
fn around<'v>(step: &Value, all: &'v [Value]) -> impl Iterator<Item = &'v Value> + use<'v> {
    let (from, to) = (ns(step, "begin_ns"), ns(step, "end_ns"));
    let first = all.partition_point(|of| ns(of, "end_ns") <= from);
    all[first..].iter().take_while(move |of| ns(of, "begin_ns") < to)
}

/// Whether a step contains no more than the one of the whole recording in the same time: it is that one, or
/// its thread or kind of activity is unknown, or a thread waits in it for unknown others.
fn says_no_more(step: &Value, of: &Value) -> bool {
    let what = step["activity"].as_str().unwrap();
    let is_same = |member: &str| step[member] == of[member];
    let waits = what == "ready" || what.starts_with("blocked");
    let is_party = is_same("subject") || (step["task"].is_null() && is_same("tid"));
    what == "unknown"
        || step["subject"] == ""
        || waits
        || (is_party && (is_same("activity") || what == "running"))
}

#[test]
fn steps_of_critical_paths_are_those_of_the_whole_or_say_less() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part");
    for name in ["server", "clerks"] {
        let whole = stored(name);
        let targets = targets(&whole);
        let known: Vec<_> = targets.iter().map(|target| path(target, &whole)).collect();
        let mut common = 0;
        for (events, says) in REMOVED {
            without(events, &whole, &part);
            for (target, (all, said)) in targets.iter().zip(&known) {
                assert_eq!(lacks(said), STORED, "{target:?} of {name}: {said}");
                let (steps, said) = path(target, &part);
                assert!(steps.is_empty() || said.contains(says), "{events}, {target:?}: {said}");
                for (step, of) in steps.iter().flat_map(|step| around(step, all).map(move |of| (step, of))) {
                    if ns(step, "end_ns").min(ns(of, "end_ns"))
                        > ns(step, "begin_ns").max(ns(of, "begin_ns")) + DELAY
                    {
                        assert!(says_no_more(step, of), "{name} without {events}: {step} of {of}");
                        common +=
                            u32::from(step["subject"] == of["subject"] && step["activity"] == of["activity"]);
                    }
                }
            }
            std::fs::remove_dir_all(&part).unwrap();
        }
        assert!(common > 100, "{name}: {common} steps are known without all events");
    }
}

#[test]
fn latency_names_what_its_worst_periods_lack() {
    const WORST: [&str; 7] =
        ["latency", "--begin", "clerks:request", "--end", "clerks:response", "--by", "id"];
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part");
    let whole = stored("clerks");
    let said = |options: &[&str], trace: &Path| {
        String::from_utf8(tracewing(&[&WORST, options].concat(), trace).stderr).unwrap()
    };
    assert_eq!(lacks(&said(&[], &whole)), STORED);
    for (events, says) in REMOVED.into_iter().take(8) {
        without(events, &whole, &part);
        assert!(said(&[], &part).contains(says), "{events}: {}", said(&[], &part));
        assert_eq!(said(&["--show", "figures"], &part), "", "periods themselves do not need {events}");
        std::fs::remove_dir_all(&part).unwrap();
    }
}

/// What is left shows other owners and depths than the whole.
#[test]
fn remaining_events_do_not_show_the_holders_of_locks() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part");
    let whole = stored("server");
    let printed = |command: &[&str], trace: &Path| {
        let output = tracewing(command, trace);
        (output.json(), output.notes())
    };
    let edges = |trace: &Path| {
        let (document, said) = printed(&["locks", "--graph"], trace);
        let edges = document["graph"].as_array().unwrap().clone();
        let (tasks, threads): (Vec<_>, Vec<_>) =
            edges.into_iter().partition(|edge| edge["waiter"].as_str().unwrap().contains("/task "));
        ([threads, tasks], said)
    };
    let (all, said) = edges(&whole);
    assert!(
        all.iter().all(|edges| !edges.is_empty()) && !said.contains("not in the graph"),
        "{all:?}, {said}"
    );
    let (lengths, _) = printed(&["locks", "--histogram"], &whole);
    for (events, lacks, lacks_holds) in [
        ("user_thread:given_up", 1, false),
        ("user_thread:released", 1, true),
        ("user_thread:acquired", 1, true),
        ("user_thread:wait", 1, false),
        ("lock:released", 0, true),
        ("syscall_exit_futex", 2, false),
    ] {
        without(events, &whole, &part);
        let (some, said) = edges(&part);
        for at in [0, 1] {
            let expected = if at == lacks { &[][..] } else { &all[at] };
            assert_eq!(some[at], expected, "without {events}: {said}");
        }
        assert_eq!(said.contains("are not in the graph"), lacks < 2, "{events}: {said}");
        let (some, said) = printed(&["locks", "--histogram"], &part);
        let expected = if lacks_holds { &Value::Array(Vec::new()) } else { &lengths["histogram"] };
        assert_eq!(some["histogram"], *expected, "without {events}: {said}");
        assert_eq!(said.contains("Lengths and depths are unknown"), lacks_holds, "{events}: {said}");
        std::fs::remove_dir_all(&part).unwrap();
    }
    without("user_thread:switch", &whole, &part);
    let (_, said) = printed(&["locks", "--histogram"], &part);
    assert!(said.contains("The depths do not include 113 acquisitions"), "{said}");
    let output = tracewing(&["list", "--super", "-e", "server:request", "-n", "1"], &part);
    assert!(output.json()["thr"].is_null(), "{}", output.text());
    std::fs::remove_dir_all(&part).unwrap();
    without("server:request", &whole, &part);
    let latency = ["latency", "--begin", "server:request", "--end", "server:response", "--match", "id"];
    let (of_none, said) = printed(&latency, &part);
    assert!(of_none["max_ns"].is_null() && of_none["count"] == 0, "{of_none}");
    assert!(said.contains("The recording lacks some events server:request"), "{said}");
}
