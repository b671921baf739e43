//! `tracewing tasks` warns of what is wrong with the tasks of a tokio program
//! (`crates/tokio/examples/troubles.rs`), and of nothing else. Warnings that need the kernel's events appear
//! for root.

mod harness;
mod recorded;

use harness::{Printed, RunExt, traceable};
use recorded::build;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// As in the program.
const TIMES: u64 = 40;
/// As in the command: so many polls without success are worth a warning.
const FEW: u64 = 10;
/// Polls without success are shorter, in ns.
const AT_ONCE: i64 = 10_000;

/// Polls of a task, but not its first, that ended pending at once, by the stamps of its switches.
fn short_polls(trace: &Path, name: &str) -> u64 {
    let mut list = harness::tracewing();
    list.args(["list", "--format", "json", "-e", "user_thread:*"]).arg(trace);
    let output = list.ran();
    let events = output.text();
    let (mut origin, mut thread, mut polls) = (Value::Null, Value::Null, Vec::new());
    let mut begin = 0;
    for event in events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let payload = &event["payload"];
        let stamp = event["ns"].as_i64().unwrap();
        match event["event"].as_str().unwrap() {
            "user_thread:origin" if payload["name"] == name => origin = payload["origin"].clone(),
            "user_thread:create" if payload["origin"] == origin => thread = payload["thread"].clone(),
            "user_thread:switch" if payload["next"] == thread => begin = stamp,
            "user_thread:switch" if payload["prev"] == thread => {
                polls.push((stamp - begin, payload["cause"]["labels"][0] == "blocked"));
            }
            _ => {}
        }
    }
    polls.iter().skip(1).filter(|(ns, is_pending)| *ns < AT_ONCE && *is_pending).count() as u64
}

#[test]
fn each_trouble_is_reported_for_the_task_that_has_it() {
    let program = build(&["-p", "tracewing-tokio", "--example", "troubles"]).join("examples/troubles");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let mut record = harness::tracewing();
    record.args(["record", "-o"]).arg(&trace).args(if traceable() { &[][..] } else { &["--no-kernel"] });
    record.arg("--").arg(program).stdout(Stdio::null()).succeeds();
    let tasks =
        |options: &[&str]| harness::tracewing().arg("tasks").arg(&trace).args(options).succeeds().text();
    let table: Value = serde_json::from_str(&tasks(&["--format", "json"])).unwrap();
    let task = |name: &str| {
        let rows = table["tasks"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {table}"))
    };
    let count =
        |name: &str, what: &str| task(name)[what].as_u64().unwrap_or_else(|| panic!("{what} in {table}"));
    // The first poll was not woken, and the last one had something to do. A slow machine makes polls longer
    // than those that count; one that loses its CPU meanwhile is short all the same.
    let vain = count("vain", "spurious_polls");
    assert!((short_polls(&trace, "vain")..=TIMES).contains(&vain), "{table}");
    assert_eq!(count("vain", "polls"), TIMES + 2, "{table}");
    for other in ["main", "blocks", "hogs"] {
        assert!(count(other, "spurious_polls") * 2 < count(other, "polls").max(10), "{other}: {table}");
    }
    let text = tasks(&[]);
    let warned: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    let about = |name: &str, what: &str| {
        warned.iter().any(|line| line.contains(&format!("({name})")) && line.contains(what))
    };
    assert_eq!(about("vain", "spurious wakes"), vain >= FEW && vain * 2 >= TIMES + 2, "{text}");
    if !trace.join("kernel").exists() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            "the kernel's events show whether a worker sleeps or runs",
        );
    }
    assert_eq!(count("blocks", "blocking_polls"), TIMES, "{table}");
    assert!(about("blocks", "blocks its worker") && !about("blocks", "does not yield"), "{text}");
    assert!(about("blocks", "nanosleep"), "the report names what it sleeps in: {text}");
    assert!(count("hogs", "long_polls") > TIMES / 2, "{table}");
    assert!(about("hogs", "does not yield") && !about("hogs", "blocks its worker"), "{text}");
    for well in ["main", "wakes"] {
        assert!(!warned.iter().any(|line| line.contains(&format!("({well})"))), "{text}");
    }
}

#[test]
fn tasks_have_names_where_their_creations_were_chosen_else_it_is_said_why_not() {
    let program = build(&["-p", "reactivity"]).join("reactivity");
    let folder = tempfile::tempdir().unwrap();
    let tasks = |name: &str, chosen: &[&str]| {
        let trace = folder.path().join(name);
        let mut record = harness::tracewing();
        record.args(["record", "--no-kernel", "-o"]).arg(&trace).args(chosen).arg("--").arg(&program);
        record.args(["--tasks", "2", "--quantum", "1", "--messages", "1"]);
        record.stdout(Stdio::null()).succeeds();
        let output = harness::tracewing().arg("tasks").arg(&trace).ran();
        output.text()
    };
    let chosen = ["-e", "user_thread:create", "-e", "user_thread:switch"];
    let why = "The recording has no events that name tasks";
    let named = tasks("named", &chosen);
    assert!(named.contains("work/1") && named.contains("daemon") && !named.contains(why), "{named}");
    // No event shows what workers did in polls, which does not mean that they did not sleep.
    assert!(named.contains("what workers did in polls is unknown"), "{named}");
    let row = named.lines().find(|line| line.contains("work/1")).expect("it has a row");
    assert_eq!(row.split_whitespace().nth(10), Some("-"), "preempted: {named}");
    // Nor is what polls have woken, which may be all that they were for.
    let json = harness::json(&folder.path().join("named"), &["tasks"]);
    let rows = json["tasks"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["spurious_polls"].is_null()), "{json}");
    assert!(!named.contains("spurious wakes"), "{named}");
    // Nor are there some of the tasks' own events, which are named only where they are missing.
    let (wakes, switches) = ("has no wakes of tasks", "has no switches of tasks");
    assert!(named.contains(wakes) && !named.contains(switches), "{named}");
    let created = tasks("created", &["-e", "user_thread:create", "-e", "user_thread:wake"]);
    assert!(created.contains(switches) && !created.contains(wakes), "{created}");
    let nameless = tasks("nameless", &[&chosen[..], &["--exclude", "user_thread:origin"]].concat());
    assert!(nameless.contains("3 tasks") && nameless.contains(why), "{nameless}");
}
