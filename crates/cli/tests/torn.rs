//! Filters that leave out one of two events that show something only together: that is then unknown, and
//! nothing else is wrong.

mod harness;

use harness::{Json, RunExt};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A tokio server's, with locks of tasks and of threads.
fn server() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/server")
}

fn locks(filter: &[&str]) -> Vec<Value> {
    locks_of(&server(), filter)
}

fn locks_of(trace: &Path, filter: &[&str]) -> Vec<Value> {
    let mut run = harness::tracewing();
    let output = run.arg("locks").arg(trace).args(["--format", "json"]).args(filter).ran();
    assert!(output.status.success(), "{filter:?}: {output:?}");
    let mut document: Value = output.json();
    serde_json::from_value(document["locks"].take()).unwrap()
}

/// Columns that take two events.
const SHOWN_BY_TWO: [&str; 12] = [
    "waited",
    "refused",
    "wait_ns",
    "wait_avg_ns",
    "wait_max_ns",
    "wait_min_ns",
    "held",
    "hold_ns",
    "hold_avg_ns",
    "hold_max_ns",
    "hold_min_ns",
    "owner_wait_ns",
];

/// Whether a column of a lock is that of the whole recording, or unknown.
fn is_well(row: &Value, whole: &[Value], column: &str) -> bool {
    let same = whole.iter().find(|other| other["lock"] == row["lock"] && other["kind"] == row["kind"]);
    row[column].is_null() || same.is_some_and(|same| same[column] == row[column])
}

#[test]
fn what_two_events_show_is_unknown_if_one_is_left_out() {
    let whole = locks(&[]);
    let columns = || SHOWN_BY_TWO.iter().chain(&["acquired"]);
    for name in [
        "user_thread:wait",
        "user_thread:acquired",
        "user_thread:released",
        "user_thread:given_up",
        "lock:released",
    ] {
        for filter in [["--exclude", name], ["-e", name]] {
            let rows = locks(&filter);
            for row in &rows {
                let wrong: Vec<_> = columns().filter(|column| !is_well(row, &whole, column)).collect();
                assert!(wrong.is_empty(), "{filter:?}: {wrong:?} of {row}");
            }
        }
    }
    let rows = locks(&["--where", "spins > 1 || waited == 1"]);
    assert!(rows.iter().all(|row| SHOWN_BY_TWO.iter().all(|column| row[*column].is_null())), "{rows:?}");
}

#[test]
fn events_that_belong_together_may_be_chosen_together() {
    let whole = locks(&[]);
    for filter in [&["-e", "user_thread:*"][..], &["-e", "lock:*"], &["--user"], &["--where", "lock > 0"]] {
        let rows = locks(filter);
        assert!(!rows.is_empty(), "{filter:?}");
        for row in &rows {
            let is_whole = |column: &str| !row[column].is_null() && is_well(row, &whole, column);
            assert!(
                ["wait_ns", "hold_ns", "acquired"].iter().all(|column| is_whole(column)),
                "{filter:?}: {row}"
            );
        }
    }
}

/// A task may ask for a lock on one thread, get it on another, and give it back on a third one.
#[test]
fn what_tasks_wait_is_unknown_of_one_thread_and_known_of_one_task() {
    for filter in [["--tid", "27136"], ["--where", "$tid == 27136"]] {
        let rows = locks(&filter);
        let (of_tasks, of_threads): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row["at"].as_str().is_some_and(|at| !at.contains(":120")));
        let of_tasks: Vec<_> = of_tasks.into_iter().filter(|row| row["kind"] != "futex").collect();
        assert!(!of_tasks.is_empty() && !of_threads.is_empty(), "{rows:?}");
        for column in SHOWN_BY_TWO {
            assert!(of_tasks.iter().all(|row| row[column].is_null()), "{filter:?}, {column}: {of_tasks:?}");
        }
        let known = |row: &&Value| !row["hold_ns"].is_null() && !row["wait_ns"].is_null();
        assert!(of_threads.iter().all(known), "{filter:?}: {of_threads:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part");
    let mut extract = harness::tracewing();
    extract.args(["extract", "--tid", "27136"]).arg(server()).arg(&part).succeeds();
    let rows = locks_of(&part, &[]);
    assert!(rows.iter().any(|row| row["wait_ns"].is_null() && row["kind"] == "mutex"), "{rows:?}");
    let rows = locks(&["--task", "connection/1"]);
    assert!(rows.iter().any(|row| row["wait_ns"].as_u64() > Some(1_000_000)), "{rows:?}");
}
