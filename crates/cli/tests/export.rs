//! `tracewing export` of a program whose tasks share two workers: what pajeng, protoc and a JSON reader find
//! in the files has the times of `tracewing threads`, to the nanosecond. As root with the events of the
//! kernel, else without.

mod export_formats;
mod harness;
mod recorded;

use export_formats::{Shown, Times, chrome, paje, perfetto};
use harness::{Printed, RunExt, traceable};
use recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

const MESSAGES: u64 = 3;

/// A recording that all tests read.
fn recording() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = build(&["-p", "reactivity"]).join("reactivity");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export");
        // From an earlier run, if there was one.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let mut record = harness::tracewing();
        record.args(["record", "-o"]).arg(folder.join("trace"));
        if !traceable() {
            record.arg("--no-kernel");
        }
        record.arg("--").arg(program).args(["--tasks", "4", "--quantum", "2"]);
        let output = record.args(["--messages", &MESSAGES.to_string()]).stdout(Stdio::null()).output();
        let output = output.expect("tracewing starts");
        assert!(output.status.success(), "{}", output.notes());
        folder
    })
}

fn run(arguments: &[&str]) -> Output {
    harness::tracewing().current_dir(recording()).args(arguments).ran()
}

/// Exports, and gives the file.
fn export(format: &str, name: &str, filter: &[&str]) -> PathBuf {
    let output = run(&[&["export", "trace", "--format", format, "-o", name], filter].concat());
    assert!(output.status.success(), "{}", output.notes());
    recording().join(name)
}

/// The times of `tracewing threads`, those that are not 0.
fn times(filter: &[&str]) -> BTreeMap<String, Times> {
    let mut all = BTreeMap::new();
    for (by, key) in [("thread", "threads"), ("task", "user_threads")] {
        let output = run(&[&["threads", "trace", "--format", "json", "--by", by], filter].concat());
        let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for row in table[key].as_array().expect("a list") {
            let name = match by {
                "thread" => row["tid"].to_string(),
                _ => format!("{}/{}", row["process"], row["task"]),
            };
            let columns = ["running_ns", "ready_ns", "blocked_ns", "nested_ns", "unknown_ns"];
            let times = columns.map(|column| (column, row[column].as_u64().expect("ns")));
            let times: Times = times.into_iter().filter(|(_, ns)| *ns > 0).collect();
            if !times.is_empty() {
                all.insert(name, times);
            }
        }
    }
    all
}

fn is_missing(program: &str) -> bool {
    let is_missing = Command::new(program).arg("--version").output().is_err();
    if is_missing {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program(program),
            format_args!("{program} is not installed"),
        );
    }
    is_missing
}

/// What must be in every format.
fn check(shown: &Shown, filter: &[&str]) {
    let wanted = times(filter);
    assert!(wanted.len() > 4, "{wanted:?}");
    assert_eq!(shown.times, wanted);
    assert_eq!(shown.messages, (0..MESSAGES).collect::<Vec<_>>());
    assert!(shown.links > 5, "{} links", shown.links);
    assert!(!recording().join("trace/kernel").exists() || shown.waiting > 0);
}

#[test]
fn pajeng_finds_the_times_of_threads() {
    if !is_missing("pj_dump") {
        check(&paje(&export("paje", "all.paje", &[])), &[]);
    }
}

#[test]
fn protoc_finds_the_times_of_threads() {
    if !is_missing("protoc") {
        check(&perfetto(&export("perfetto", "all.perfetto", &[])), &[]);
    }
}

#[test]
fn a_json_reader_finds_the_times_of_threads() {
    check(&chrome(&export("chrome", "all.json", &[])), &[]);
}

#[test]
fn all_formats_show_the_same() {
    let json = chrome(&export("chrome", "same.json", &[]));
    if !is_missing("pj_dump") {
        assert_eq!(paje(&export("paje", "same.paje", &[])), json);
    }
    if !is_missing("protoc") {
        assert_eq!(perfetto(&export("perfetto", "same.perfetto", &[])), json);
    }
}

#[test]
fn an_extract_has_its_own_times() {
    let filter = ["--from", "+20ms", "--to", "+120ms"];
    let json = chrome(&export("chrome", "part.json", &filter));
    assert_eq!(json.times, times(&filter));
    if !is_missing("pj_dump") {
        assert_eq!(paje(&export("paje", "part.paje", &filter)), json);
    }
}

#[test]
fn standard_output_is_the_same_file() {
    for format in ["paje", "perfetto", "chrome"] {
        let file = std::fs::read(export(format, &format!("file.{format}"), &[])).expect("a file");
        let output = run(&["export", "trace", "--format", format, "-o", "-"]);
        assert!(output.status.success() && output.stdout == file, "{format}");
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_lies_in_the_recording() {
    let folder = recording();
    std::fs::write(folder.join("mine"), "mine").expect("a file");
    for (out, why) in [("mine", "exists"), ("trace/x", "lies in"), ("trace", "exists")] {
        let output = run(&["export", "trace", "--format", "paje", "-o", out]);
        let said = output.notes();
        assert!(!output.status.success() && said.contains(why), "{out}: {said}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("mine")).expect("a file"), "mine");
    assert!(!folder.join(".mine.unfinished").exists());
}
