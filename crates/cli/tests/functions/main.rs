//! `tracewing record --functions` and `tracewing functions`: the calls that C++ programs and uftrace report,
//! compared with the recording.

mod choice;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../kernel_common/mod.rs"]
mod kernel_common;
#[path = "../recorded/mod.rs"]
mod recorded;
mod views;

use harness::{Printed, RunExt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use recorded::{Recording, build, record, recorder};
use serde_json::Value;

/// Ways to build programs whose functions report their begins and ends.
const BUILDS: [(&str, &[&str]); 4] = [
    ("g++", &["-finstrument-functions"]),
    ("g++", &["-pg", "-mfentry"]),
    ("clang++", &["-finstrument-functions"]),
    ("clang++", &["-pg", "-mfentry"]),
];

/// Functions of the program that are left with others of the same thread above them, since they change
/// stacks.
const OF_STACKS: [&str; 3] = ["coroutine", "yields", "resumes"];

/// Compiles the C++ program, and builds the library; `None` where there is no such compiler.
fn program(folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    program_of("functions.cc", folder, compiler, options)
}

/// The same of another source.
fn program_of(source: &str, folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    build(&[&["-p", "tracewing-preload"], optimised].concat());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs").join(source);
    let program = folder.join("functions");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-w", "-pthread", "-o"]).arg(&program).arg(source).args(options);
    match command.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) if options.is_empty() => panic!("{}", output.notes()),
        _ => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("compiler option"),
                format_args!("{compiler} cannot make this with {options:?}"),
            );
            None
        }
    }
}

/// How often functions were called, by their names: as the program says.
fn reported(stdout: &str) -> BTreeMap<String, u64> {
    let line =
        |line: &str| line.split_once(' ').map(|(name, count)| (name.to_owned(), count.parse().unwrap()));
    stdout.lines().filter_map(line).collect()
}

/// `tracewing functions` of a recording.
fn functions(recording: &Recording, options: &[&str]) -> Output {
    harness::of(&recording.trace(), &[&["functions"], options].concat()).succeeds()
}

fn text(recording: &Recording, options: &[&str]) -> String {
    functions(recording, options).text()
}

fn json(recording: &Recording, options: &[&str]) -> Value {
    serde_json::from_slice(&functions(recording, &[options, &["--format", "json"]].concat()).stdout).unwrap()
}

/// The rows of a table by function.
fn rows(table: &Value) -> BTreeMap<String, Value> {
    let row = |row: &Value| {
        let name = row["function"].as_str().unwrap();
        (name.split('(').next().unwrap().to_owned(), row.clone())
    };
    table["functions"].as_array().unwrap().iter().map(row).collect()
}

/// How often functions were called, as the recording has it.
fn counted(rows: &BTreeMap<String, Value>) -> BTreeMap<String, u64> {
    rows.iter().map(|(name, row)| (name.clone(), row["calls"].as_u64().unwrap())).collect()
}

#[test]
fn every_call_is_counted_however_it_is_left() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let alone = Command::new(&program).arg("all").current_dir(folder.path()).ran();
        let recording = record(&["--functions"], &[program.as_os_str(), "all".as_ref()]);
        let what = format!("{compiler} {options:?}");
        assert_eq!(recording.stdout, alone.text(), "{what}: what the program does");
        let table = json(&recording, &[]);
        let rows = rows(&table);
        let mut found = counted(&rows);
        let mut reported = reported(&recording.stdout);
        assert!(reported.len() > 20, "{reported:?}");
        // Children of `vfork` run on their parent's thread block, so their events are counted lost. They have
        // no other functions.
        let in_vforked = reported.remove("before_exec").unwrap();
        assert_eq!(recording.reasons(), [("thread not protected", in_vforked)].into(), "{what}");
        found.retain(|name, _| reported.contains_key(name)); // there are functions of headers, too
        assert_eq!(found, reported, "{what}");
        let count = |member: &str| table[member].as_u64().unwrap();
        assert_eq!(count("not_followed"), 0);
        // Only a stack that is left in the middle of functions has ends without begins, each time. A loss
        // makes it doubtful which calls are open, and the next end may be taken for that of one further out.
        let most = reported["yields"] + reported["coroutine"] + in_vforked;
        assert!(count("unmatched_ends") <= most, "{what}: {}", count("unmatched_ends"));
        if options.contains(&"-mfentry") {
            // Jumps and exceptions are reported.
            let most: u64 = OF_STACKS.iter().map(|name| reported[*name]).sum();
            assert!(count("left") <= most, "{what}: {} were left", count("left"));
        }
        check_times(&rows, &what);
        check_graph(&json(&recording, &["--graph"]), &rows, &what);
    }
}

/// A function that waits for 20 ms takes no less, and the average of calls lies between the shortest and the
/// longest.
fn check_times(rows: &BTreeMap<String, Value>, what: &str) {
    assert!(rows["waits"]["total_ns"].as_u64().unwrap() >= 20_000_000, "{what}");
    // A function that a jump leaves each time has no figures of single calls.
    let ended = rows.iter().filter(|(_, row)| !row["total_avg_ns"].is_null());
    for (name, row) in ended {
        let number = |column: &str| row[column].as_u64().unwrap();
        for part in ["total", "self"] {
            let [avg, min, max] = ["avg", "min", "max"].map(|figure| number(&format!("{part}_{figure}_ns")));
            assert!(min <= avg && avg <= max, "{what}: {name}: {row}");
        }
        assert!(number("self_ns") <= number("total_ns"), "{name}: {row}");
    }
}

/// The graph has the calls of the table, and each function lies within its caller.
fn check_graph(graph: &Value, rows: &BTreeMap<String, Value>, what: &str) {
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let mut around: Vec<(String, u64)> = Vec::new();
    let mut callers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in graph["functions"].as_array().unwrap() {
        let name = node["function"].as_str().unwrap().split('(').next().unwrap().to_owned();
        *calls.entry(name.clone()).or_default() += node["calls"].as_u64().unwrap();
        around.truncate(node["depth"].as_u64().unwrap() as usize);
        let total = node["total_ns"].as_u64().unwrap();
        if let Some((caller, outer)) = around.last() {
            assert!(total <= *outer, "{what}: {name} in {caller}");
            callers.entry(name.clone()).or_default().push(caller.clone());
        }
        around.push((name, total));
    }
    assert_eq!(calls, counted(rows), "{what}");
    for (function, caller) in [("works", "handler"), ("called", "calls"), ("recursive", "recursive")] {
        assert!(callers[function].iter().all(|found| found == caller), "{what}: {function}: {callers:?}");
    }
}

#[test]
fn uftrace_counts_the_same() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let uftrace = |arguments: &[&str]| {
            let mut command = Command::new("uftrace");
            command.args(arguments).args(["-d", "data"]).current_dir(folder.path());
            command
        };
        let Ok(output) = uftrace(&["record", "--no-libcall"]).arg(&program).output() else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Program("uftrace"),
                "uftrace is not installed",
            );
        };
        assert!(output.status.success(), "{}", output.notes());
        let report = uftrace(&["report", "-f", "call", "--demangle=full"]).ran();
        let report = report.text();
        let line = |line: &str| {
            let (count, name) = line.trim().split_once(char::is_whitespace)?;
            Some((name.trim().split('(').next()?.to_owned(), count.parse().ok()?))
        };
        let mut theirs: BTreeMap<String, u64> = report.lines().filter_map(line).collect();
        theirs.retain(|name, _| !name.starts_with("linux:"));
        let ours = counted(&rows(&json(&record(&["--functions"], &[&program]), &[])));
        assert!(ours.len() >= 6);
        assert_eq!(ours, theirs, "{compiler} {options:?}: {report}");
    }
}
