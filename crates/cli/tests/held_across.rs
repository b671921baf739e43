//! The warning of a lock that is held across an `.await`: `critical-path`, `tasks` and `locks` give the same
//! one of the same time.

mod harness;

use harness::{print, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A server with locks that are held so, and one of its workers.
fn recording() -> (PathBuf, &'static str) {
    (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/server"), "27136")
}

/// The warnings of a command.
fn warnings(trace: &Path, arguments: &[&str]) -> BTreeSet<String> {
    let (_, notes) = print(trace, arguments);
    notes.lines().filter(|line| line.contains("is held across an .await")).map(str::to_owned).collect()
}

/// Stamps at which locks are released, as options take them, one nanosecond before; a few from all over the
/// recording.
fn before_releases(trace: &Path) -> Vec<String> {
    let list = run(&["list", "--format", "json", "-e", "user_thread:released", trace.to_str().unwrap()]);
    let stamp = |line: &str| serde_json::from_str::<Value>(line).unwrap()["ns"].as_i64().unwrap() - 1;
    let text = String::from_utf8(list.stdout).unwrap();
    let stamps: Vec<i64> = text.lines().map(stamp).collect();
    assert!(stamps.len() > 100);
    let few = stamps.iter().skip(20).step_by(stamps.len() / 12);
    few.map(|ns| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)).collect()
}

#[test]
fn all_commands_warn_of_the_same_locks() {
    let (trace, worker) = recording();
    let all = warnings(&trace, &["locks"]);
    assert!(!all.is_empty());
    let path = ["critical-path", "--tid", worker];
    assert_eq!(warnings(&trace, &path), all);
    assert_eq!(warnings(&trace, &["tasks"]), all);
    for to in before_releases(&trace) {
        let range = ["--to", &to];
        let locks = warnings(&trace, &[&["locks"][..], &range].concat());
        assert_eq!(warnings(&trace, &[&path[..], &range].concat()), locks, "--to {to}");
        assert_eq!(warnings(&trace, &[&["tasks"][..], &range].concat()), locks, "--to {to}");
    }
}
