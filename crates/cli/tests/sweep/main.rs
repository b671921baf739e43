//! Every kind of event is taken away from a recording, one kind at a time and a few together: each number
//! that a command prints of the rest is the one that it prints of the whole, or it is unknown. Where it is
//! another one, `ALLOWED` says which and why, and what the command has to say. `TRACEWING_CASES` and
//! `TRACEWING_SEED` choose how many pairs of kinds, and which.

mod commands;
#[path = "../forms/mod.rs"]
mod forms;
#[path = "../harness/mod.rs"]
mod harness;
mod slices;
mod tables;

use harness::{Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracewing_rules::Glob;

/// Kinds that are taken away together: those of which one says what another one leaves open.
const TOGETHER: [&str; 9] = [
    "sched_wak*",
    "syscall_entry_*",
    "syscall_exit_*",
    "irq_*",
    "x86_irq_vectors_*",
    "x86_exceptions_*",
    "sched_process_*",
    "user_thread:{wait,acquired,released}",
    "lock:*",
];

/// The names of the events of a recording.
fn names(trace: &Path) -> Vec<String> {
    let stats = harness::json(trace, &["stats"]);
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    stats["events"].as_array().unwrap().iter().map(name).filter(|name| !name.is_empty()).collect()
}

/// The kinds to take away, each as patterns: every one that is there, but of system calls only a few, which
/// are all alike; all of the kernel's, as without root; and as many pairs as `TRACEWING_CASES` says.
fn kinds(trace: &Path) -> Vec<Vec<String>> {
    const CALLS: [&str; 3] = ["read", "futex", "execve"];
    let names = names(trace);
    let is_alike = |name: &str| {
        let call = name.strip_prefix("syscall_entry_").or_else(|| name.strip_prefix("syscall_exit_"));
        call.is_some_and(|call| !CALLS.contains(&call))
    };
    let one: Vec<_> = names.iter().filter(|name| !is_alike(name)).cloned().collect();
    let kernel = names.iter().filter(|name| !name.contains(':')).cloned().collect();
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let (first, cases) = (number("TRACEWING_SEED").unwrap_or(0), number("TRACEWING_CASES").unwrap_or(2));
    let pair = |case: usize| [case * 7 + 1, case * 11 + 4].map(|at| one[at % one.len()].clone()).to_vec();
    let pairs: Vec<_> = (first..first + cases).map(pair).collect();
    let several = TOGETHER.iter().map(|kinds| match kinds.split_once('{') {
        None => vec![(*kinds).to_owned()],
        Some((start, ends)) => {
            ends.trim_end_matches('}').split(',').map(|end| format!("{start}{end}")).collect()
        }
    });
    let is_there = |kind: &Vec<String>| {
        kind.iter().any(|pattern| names.iter().any(|name| Glob::new(pattern.as_str()).matches(name)))
    };
    let one = one.iter().map(|name| vec![name.clone()]);
    one.chain(several).chain([kernel]).chain(pairs).filter(is_there).collect()
}

/// Takes kinds of events away from a recording. False if nothing would be left.
fn without(kind: &[String], whole: &Path, part: &Path) -> bool {
    let mut extract = harness::tracewing();
    extract.arg("extract").args(kind.iter().flat_map(|pattern| ["--exclude", pattern]));
    let output = extract.arg(whole).arg(part).ran();
    assert!(output.status.success() || !output.notes().contains("panicked"), "{kind:?}: {}", output.notes());
    output.status.success()
}

/// What is wrong, and an example.
type Wrong = (String, String);

/// What of a recording is not as it should be when kinds of events are missing, each with an example, and how
/// many there are.
fn wrong(whole: &Path) -> BTreeMap<String, (usize, String)> {
    let folder = tempfile::tempdir().unwrap();
    let (tables, slices) = (tables::of(whole), slices::of(whole));
    assert!(tables.len() > 3, "{whole:?}");
    let mut wrong = BTreeMap::new();
    for kind in kinds(whole) {
        let part = folder.path().join("part");
        if !without(&kind, whole, &part) {
            continue;
        }
        let of_tables = tables.iter().flat_map(|table| table.compare(&kind, &part));
        let of_slices = slices.iter().flat_map(|slices| slices.compare(&kind, &part));
        for (what, example) in of_tables.chain(of_slices) {
            wrong.entry(what).or_insert((0, example)).0 += 1;
        }
        std::fs::remove_dir_all(&part).unwrap();
    }
    wrong
}

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings").join(name)
}

fn check(name: &str, trace: &Path) {
    let wrong = wrong(trace);
    let shown: String =
        wrong.iter().map(|(what, (count, of))| format!("\n{count} x {what}, as {of}")).collect();
    assert!(wrong.is_empty(), "{name}, {} kinds of numbers:{shown}", wrong.len());
}

#[test]
fn everything_that_reports_numbers_is_held() {
    let lines = commands::COMMANDS.iter().map(|(command, ..)| command.to_vec());
    let mut missing = forms::missing(lines);
    missing.retain(|form| !commands::ELSEWHERE.iter().any(|(of, _)| Glob::new(*of).matches(form)));
    assert!(missing.is_empty(), "not held against the whole recording: {missing:#?}");
}

#[test]
fn of_a_recording_with_losses() {
    check("lossy", &stored("lossy"));
}

#[test]
fn of_a_snapshot() {
    check("snapshot", &stored("snapshot"));
}

#[test]
fn of_a_server() {
    check("server", &stored("server"));
}

#[test]
fn of_a_c_program() {
    check("clerks", &stored("clerks"));
}

#[test]
fn of_a_machine() {
    check("system", &stored("system"));
}

#[test]
fn of_a_pipeline_with_all_of_the_kernels_events_and_samples() {
    check("pipeline", &stored("pipeline"));
}
