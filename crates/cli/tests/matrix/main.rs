//! Programs that keep their own logs (a tokio server, an axum server, a C program), recorded with each set of
//! options: no command, and no export, reports more than the log has; where nothing is missing, none reports
//! less.

mod account;
mod checks;
#[path = "../export_formats/mod.rs"]
mod export_formats;
mod exports;
#[path = "../harness/mod.rs"]
mod harness;
mod hidden;
#[path = "../c_truth/log.rs"]
mod log;
#[path = "../recorded/mod.rs"]
mod recorded;
#[path = "../server_log/mod.rs"]
mod server_log;

use account::Account;
use harness::{Printed, RunExt, json, traceable};
use recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `record`; and the commands that then report all that the log has. A pattern of events that
/// begins with `:` is one of the program's own.
type Set = (&'static [&'static str], &'static [&'static str]);

const SETS: [Set; 16] = [
    (&["--sub-buffers", "32"], &["locks", "latency", "functions", "tasks", "threads"]),
    (&["--no-kernel"], &["locks", "latency", "functions", "tasks"]),
    (&["--exclude", "user_thread:*"], &["latency", "functions", "threads"]),
    // Few events.
    (&["-e", ":re*", "-k", "sched_switch"], &["latency", "threads"]),
    (&["-e", ":re*", "-k", "sched_*"], &["latency", "threads"]),
    (&["-e", ":re*", "-k", "syscall_*"], &["latency"]),
    (&["-e", "user_thread:switch", "-k", "sched_*"], &["tasks", "threads"]),
    // Lossy.
    (&["--sub-buffers", "2", "--sub-buffer-size", "4K"], &[]),
    (&["--sub-buffers", "2", "--sub-buffer-size", "4K", "--on-full", "overwrite"], &[]),
    // Flight recorders.
    (&["--flight-recorder", "--snapshot-on", "exit"], &["latency", "functions"]),
    (&["--flight-recorder", "--snapshot-on", "exit", "--sub-buffers", "2", "--sub-buffer-size", "4K"], &[]),
    // Without one kind.
    (&["--exclude", "sched_switch"], &["locks", "latency", "functions", "tasks"]),
    (&["--exclude", "sched_wak*"], &["locks", "latency", "functions", "tasks", "threads"]),
    (&["--exclude", "user_thread:switch"], &["locks", "latency", "functions", "threads"]),
    (&["--exclude", "*:released"], &["latency", "functions", "tasks", "threads"]),
    (&["--exclude", "function:exit"], &["locks", "latency", "tasks", "threads"]),
];

/// What `extract` chooses of the first set.
const EXTRACTS: [&[&str]; 7] = [
    &["--from", "+20ms"],
    &["--to", "+40ms"],
    &["--from", "+10ms", "--to", "+50ms"],
    &["--cpu", "0"],
    &["--user"],
    &["--kernel"],
    &["-e", "user_thread:*", "-e", "sched_switch"],
];

/// A recorded program: the folder that is kept until the checks are done, the trace, and its own account.
struct Recorded {
    _folder: tempfile::TempDir,
    trace: PathBuf,
    account: Account,
}

/// Options for a program whose events are in the namespace `own`; without the kernel where there is none.
fn options(set: &[&str], own: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut words = set.iter();
    while let Some(word) = words.next() {
        match *word {
            "-k" if !traceable() => drop(words.next()),
            pattern if pattern.starts_with(':') => options.push(format!("{own}{pattern}")),
            word => options.push(word.to_owned()),
        }
    }
    if !traceable() && !set.contains(&"--no-kernel") {
        options.push("--no-kernel".to_owned());
    }
    options
}

fn server(program: &Path, how: &str, set: &[&str]) -> Recorded {
    let options = options(set, "server");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let run = server_log::record(program, how, &options);
    Recorded { trace: run.trace(), account: Account::of_server(&run), _folder: run.folder }
}

fn clerks(set: &[&str]) -> Option<Recorded> {
    let options = options(set, "clerks");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let run = log::record(&options)?;
    Some(Recorded { trace: run.trace(), account: Account::of_clerks(&run), _folder: run.folder })
}

/// Records a program with each set of options, and checks each recording and the extracts of the first.
fn check(sets: &[Set], record: impl Fn(&[&str]) -> Option<Recorded>, knows_tasks: bool) {
    for (number, (set, whole)) in sets.iter().enumerate() {
        let Some(Recorded { trace, account, _folder: folder }) = record(set) else { return };
        let trace = if set.contains(&"--flight-recorder") { trace.join("snapshot-1") } else { trace };
        let whole: Vec<&str> = whole
            .iter()
            .filter(|command| **command != "threads" || trace.join("kernel").exists())
            .filter(|command| **command != "tasks" || knows_tasks)
            .copied()
            .collect();
        checks::check(&format!("{set:?}"), &trace, &account, &whole, number == 0);
        for extracted in if number == 0 { &EXTRACTS[..] } else { &[] } {
            let part = folder.path().join("extract");
            let extract = harness::of(&trace, &["extract"]).args(*extracted).arg("-o").arg(&part).ran();
            // Without the kernel, nothing may be left.
            assert!(extract.status.success() || !traceable(), "{extracted:?}: {}", extract.notes());
            if extract.status.success() {
                checks::check(&format!("{extracted:?}"), &part, &account, &[], true);
                fs::remove_dir_all(&part).unwrap();
            }
        }
    }
}

#[test]
fn a_tokio_server() {
    let program = server_log::server("server");
    check(&SETS, |set| Some(server(&program, "spawned", set)), true);
}

#[test]
fn a_tokio_server_whose_tasks_only_hooks_know() {
    let program = server_log::hooked("server");
    // Of what is left out, tasks that are spawned and those that hooks know are the same.
    check(&SETS[..11], |set| Some(server(&program, "plain", set)), true);
}

#[test]
fn an_axum_server() {
    let program = server_log::server("axum_server");
    // What leaves out kinds is as for the other server.
    check(&SETS[..4], |set| Some(server(&program, "plain", set)), false);
}

#[test]
fn a_c_program() {
    check(&SETS, clerks, true);
}
