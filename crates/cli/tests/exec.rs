//! Programs that execute others: what the first one was at ends, and the process is called as the last one.

mod harness;
mod kernel_common;
mod recorded;

use harness::{json, traceable};
use std::path::Path;
use std::process::Command;
use tracewing_testing::installed;

use recorded::{Recording, build, ended, record};

/// What a chain of three programs in a folder does, which are the same but for their names; `None` where that
/// cannot be made.
fn recording(folder: &Path, options: &[&str], with_kernel: bool) -> Option<Recording> {
    if !installed(&["gcc"]) || (with_kernel && !traceable()) {
        return None;
    }
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    build(&[&["-p", "tracewing-preload"], optimised].concat());
    let programs = ["first", "second", "third"].map(|name| folder.join(name));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs/exec.c");
    let mut gcc = Command::new("gcc");
    // What they have is at the same addresses in each.
    gcc.args(["-O1", "-g", "-no-pie", "-fno-pie", "-pthread", "-finstrument-functions", "-o"]);
    gcc.arg(&programs[0]).arg(source);
    assert!(gcc.status().unwrap().success());
    for copy in &programs[1..] {
        tracewing_testing::copy_program(&programs[0], copy);
    }
    if !with_kernel {
        return Some(record(options, &programs));
    }
    let place = tempfile::tempdir().unwrap();
    let programs = programs.each_ref().map(|path| path.to_str().unwrap());
    let recorder = kernel_common::record(place.path(), options, &programs).spawn().unwrap();
    Some(ended(place, recorder))
}

#[test]
fn calls_end_when_their_process_executes_another_program() {
    for with_kernel in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let Some(recording) = recording(folder.path(), &["--functions"], with_kernel) else { return };
        let table = json(&recording.trace(), &["functions"]);
        let count = |member: &str| table[member].as_u64().unwrap();
        // Twice a `main`, `executes` and `waits`.
        assert_eq!((count("replaced"), count("unfinished"), count("left")), (6, 0, 0), "{table}");
        let graph = json(&recording.trace(), &["functions", "--graph"]);
        let mut around = Vec::new();
        let mut found = Vec::new();
        for node in graph["functions"].as_array().unwrap() {
            around.truncate(node["depth"].as_u64().unwrap() as usize);
            around.push(node["function"].as_str().unwrap());
            found.push((around.join(" "), node["calls"].as_u64().unwrap()));
        }
        found.sort();
        let expected = [
            ("main", 3),
            ("main executes", 2),
            ("main executes leaf", 2),
            ("main leaf", 10),
            ("waits", 2),
            ("waits leaf", 2),
        ];
        assert_eq!(found, expected.map(|(path, calls)| (path.to_owned(), calls)), "kernel: {with_kernel}");
    }
}

#[test]
fn locks_are_gone_when_their_process_executes_another_program() {
    for with_kernel in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let Some(recording) = recording(folder.path(), &["--locks"], with_kernel) else { return };
        let table = json(&recording.trace(), &["locks"]);
        let rows = table["locks"].as_array().unwrap().iter();
        let row = rows.max_by_key(|row| row["held"].as_u64()).unwrap();
        // Two were acquired before an exec.
        assert_eq!(
            (&row["acquired"], &row["held"]),
            (&16.into(), &14.into()),
            "kernel: {with_kernel}, {row}"
        );
        let depths = json(&recording.trace(), &["locks", "--histogram"]);
        let depths = depths["histogram"].as_array().unwrap().iter().filter(|bin| bin["measure"] == "depth");
        assert!(depths.clone().all(|bin| bin["from"] == 0), "{depths:?}");
    }
}

#[test]
fn a_process_has_the_name_of_the_program_it_executed_last() {
    for with_kernel in [false, true] {
        let options = if with_kernel { &["--locks", "--profile"][..] } else { &["--locks"] };
        let folder = tempfile::tempdir().unwrap();
        let Some(recording) = recording(folder.path(), options, with_kernel) else { return };
        let events = recorded::list(&recording.trace());
        let process =
            events.iter().find(|event| event.name == "tracewing:thread").unwrap().payload["pid"].clone();
        let commands = [
            (&["locks"][..], "locks"),
            (&["locks", "--by", "thread", "--tid", "-"], "locks"),
            (&["threads", "--by", "process"], "processes"),
            (&["breakdown"], "rows"),
            (&["profile", "--least", "0"], "profile"),
        ];
        for (command, rows) in commands {
            let tid = process.to_string();
            let command: Vec<&str> =
                command.iter().map(|word| if *word == "-" { &*tid } else { word }).collect();
            let found = json(&recording.trace(), &command);
            let of_process = found[rows].as_array().unwrap().iter().filter(|row| row["process"] == process);
            let mut names: Vec<&str> = of_process.map(|row| row["name"].as_str().unwrap()).collect();
            names.dedup();
            let expected: &[&str] = if rows == "profile" && names.is_empty() { &[] } else { &["third"] };
            assert_eq!(names, expected, "kernel: {with_kernel}, {command:?}");
        }
    }
}

/// A thread that is not its process' first one asks for its parent's number 300 times, executes the program
/// again, and asks 500 times more as the process' only thread. The first thread asks 100 times.
const SECOND_THREAD: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

static char *self;

static void ask(int times) { while (times-- > 0) getppid(); }

static void *executes(void *unused) {
    ask(300);
    execl(self, self, "again", (char *)0);
    return unused;
}

int main(int count, char **arguments) {
    pthread_t other;
    self = arguments[0];
    if (count > 1) { ask(500); return 0; }
    ask(100);
    if (pthread_create(&other, 0, executes, 0) != 0) return 1;
    pthread_join(other, 0);
    return 1;
}
"#;

#[test]
fn a_thread_that_executes_a_program_in_the_first_ones_place_stays_one_thread() {
    if !installed(&["gcc"]) || !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["executes.c", "executes"].map(|name| folder.path().join(name));
    std::fs::write(&source, SECOND_THREAD).unwrap();
    let made = Command::new("gcc").args(["-O1", "-pthread", "-o"]).args([&program, &source]).status();
    assert!(made.unwrap().success());
    // Some kernels record no switch from an idle CPU now and then: some time of a thread is unknown then.
    let is_complete = (0..10).any(|_| {
        let place = tempfile::tempdir().unwrap();
        let recorder =
            kernel_common::record(place.path(), &[], &[program.to_str().unwrap()]).spawn().unwrap();
        of_two_threads(&ended(place, recorder))
    });
    assert!(is_complete, "some time is unknown in each recording");
}

/// Looks at a recording of [`SECOND_THREAD`]; whether the times of both threads are known.
fn of_two_threads(recording: &Recording) -> bool {
    assert_eq!(recording.lost(), 0);
    let threads = json(&recording.trace(), &["threads"]);
    let rows: Vec<_> =
        threads["threads"].as_array().unwrap().iter().filter(|row| row["name"] == "executes").collect();
    let calls = |row: &serde_json::Value| row["system_calls"].as_u64().unwrap();
    let [executed, first] = rows[..] else { panic!("two threads: {threads}") };
    let (executed, first) =
        if calls(executed) > calls(first) { (executed, first) } else { (first, executed) };
    assert_eq!(executed["tid"], executed["process"], "{threads}");
    assert!(calls(executed) >= 800 && (100..300).contains(&calls(first)), "{threads}");
    let breakdown = json(&recording.trace(), &["breakdown"]);
    let asked = breakdown["rows"].as_array().unwrap().iter().find(|row| row["activity"] == "getppid");
    assert_eq!(asked.unwrap_or_else(|| panic!("{breakdown}"))["calls"], 900, "{breakdown}");
    [executed, first].iter().all(|row| row["unknown_ns"] == 0)
}

/// The events of all system calls together say which call it is by its number only, which is not read.
#[test]
fn calls_and_their_time_are_unknown_where_only_the_raw_events_have_them() {
    if !traceable() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let options = ["-k", "raw_syscalls:*", "-k", "sched_*"];
    let recorder = kernel_common::record(place.path(), &options, &["sh", "-c", "id; id"]).spawn().unwrap();
    let recording = ended(place, recorder);
    let events = recorded::list(&recording.trace());
    assert!(events.iter().any(|event| event.name == "sys_enter"));
    let threads = json(&recording.trace(), &["threads"]);
    for row in threads["threads"].as_array().unwrap() {
        for column in ["user_ns", "system_ns", "system_calls"] {
            assert!(row[column].is_null(), "{column}: {row}");
        }
    }
    let breakdown = json(&recording.trace(), &["breakdown"]);
    let rows = breakdown["rows"].as_array().unwrap();
    assert!(
        rows.iter().filter(|row| row["section"] == "inside").all(|row| row["calls"].is_null()),
        "{breakdown}"
    );
    assert!(!rows.iter().any(|row| row["activity"] == "user"), "{breakdown}");
}
