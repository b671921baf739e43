//! Programs that keep their own logs (a tokio server, an axum server, a C program), recorded with each set of
//! options: no command, and no export, reports more than the log has; where nothing is missing, none reports
//! less.
//!
//! Each set is recorded with two of the four programs: one whose tasks are known, and one without. `cargo
//! xtask soak --only matrix` records each set with all of them.

mod account;
mod checks;
mod events;
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
mod samples;
#[path = "../server_log/mod.rs"]
mod server_log;

use account::Account;
use harness::{Printed, RunExt, json, traceable};
use recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `record`; and the commands that then report all that the log has. A pattern of events that
/// begins with `:` is one of the program's own. `calls` are events of an axum server's clients.
type Set = (&'static [&'static str], &'static [&'static str]);

const SETS: [Set; 17] = [
    (&["--sub-buffers", "32"], &["locks", "latency", "functions", "tasks", "threads", "breakdown", "calls"]),
    (&["--no-kernel"], &["locks", "latency", "functions", "tasks", "calls"]),
    (&["--exclude", "user_thread:*"], &["latency", "functions", "threads", "breakdown", "calls"]),
    // Few events.
    (&["-e", ":re*", "-k", "sched_switch"], &["latency", "threads"]),
    (&["-e", ":re*", "-k", "sched_*"], &["latency", "threads"]),
    (&["-e", ":re*", "-k", "syscall_*"], &["latency"]),
    (&["-e", "user_thread:switch", "-k", "sched_*"], &["tasks", "threads"]),
    // Lossy.
    (&["--sub-buffers", "2", "--sub-buffer-size", "4K"], &[]),
    (&["--sub-buffers", "2", "--sub-buffer-size", "4K", "--on-full", "overwrite"], &[]),
    // Flight recorders.
    (&["--flight-recorder", "--snapshot-on", "exit"], &["latency", "functions", "calls"]),
    (&["--flight-recorder", "--snapshot-on", "exit", "--sub-buffers", "2", "--sub-buffer-size", "4K"], &[]),
    // Without one kind.
    (
        &["-k", "sched_wak*", "-k", "syscalls:*", "-k", "irq:*", "-k", "exceptions:*", "-k", "task:*"],
        &["locks", "latency", "functions", "tasks", "calls"],
    ),
    (
        &[
            "-k",
            "sched_switch",
            "-k",
            "sched_process*",
            "-k",
            "syscalls:*",
            "-k",
            "irq:*",
            "-k",
            "exceptions:*",
        ],
        &["locks", "latency", "functions", "tasks", "threads", "calls"],
    ),
    (
        &["--exclude", "user_thread:switch"],
        &["locks", "latency", "functions", "threads", "breakdown", "calls"],
    ),
    (&["--exclude", "*:released"], &["latency", "functions", "tasks", "threads", "breakdown", "calls"]),
    (&["--exclude", "function:exit"], &["locks", "latency", "tasks", "threads", "breakdown", "calls"]),
    // With samples.
    (
        &["--profile", "--sub-buffers", "32"],
        &["locks", "latency", "functions", "tasks", "threads", "breakdown", "calls", "profile"],
    ),
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

/// A program that executes another one while it stops the recorder most of the time, so that buffers fill.
fn with_pauses(folder: &Path, program: &Path) -> PathBuf {
    let script = folder.join("pauses");
    let text = format!(
        "#!/bin/sh\n(unset LD_PRELOAD; while kill -0 $$ && kill -STOP $PPID; do sleep 0.05; kill -CONT $PPID; sleep 0.02; done) \
         2>/dev/null >&2 &\nexec {} \"$@\"\n",
        program.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// Whether events are to be lost.
fn is_lossy(set: &[&str]) -> bool {
    set.contains(&"4K") && !set.contains(&"--flight-recorder")
}

fn server(program: &Path, how: &str, set: &[&str]) -> Recorded {
    let options = options(set, "server");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let place = tempfile::tempdir().unwrap();
    let pauses = is_lossy(set).then(|| with_pauses(place.path(), program));
    let run = server_log::record(pauses.as_deref().unwrap_or(program), how, &options);
    Recorded { trace: run.trace(), account: Account::of_server(&run), _folder: run.folder }
}

fn clerks(program: &Path, set: &[&str]) -> Recorded {
    let options = options(set, "clerks");
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let place = tempfile::tempdir().unwrap();
    let pauses = is_lossy(set).then(|| with_pauses(place.path(), program));
    let folder = tempfile::tempdir().unwrap();
    let run = log::record_in(folder, pauses.as_deref().unwrap_or(program), &options);
    Recorded { trace: run.trace(), account: Account::of_clerks(&run), _folder: run.folder }
}

/// How often a recording is made that may lose nothing by chance.
const TRIES: usize = 5;

/// Records a program; until something is lost, where it is to be.
fn recorded(set: &[&str], record: &impl Fn(&[&str]) -> Recorded) -> Recorded {
    let must_lose = is_lossy(set) && !set.contains(&"overwrite");
    for _ in 0..TRIES {
        let recorded = record(set);
        if !must_lose || checks::has_losses(&recorded.trace) {
            return recorded;
        }
    }
    panic!("{set:?}: nothing is lost");
}

/// Half of the sets.
#[derive(Clone, Copy)]
enum Half {
    Even,
    Odd,
}

impl Half {
    /// Numbers and sets of it, and the first of all; all sets if the environment says so.
    fn sets(self) -> impl Iterator<Item = (usize, &'static Set)> {
        let are_all = std::env::var_os("TRACEWING_MATRIX_WHOLE").is_some();
        let is_chosen = move |number: usize| are_all || number == 0 || number % 2 == self as usize;
        SETS.iter().enumerate().filter(move |(number, _)| is_chosen(*number))
    }
}

/// Records a program with sets of options, and checks each recording and the extracts of the first.
fn check(half: Half, record: impl Fn(&[&str]) -> Recorded, knows_tasks: bool) {
    for (number, (set, whole)) in half.sets() {
        let Recorded { trace, account, _folder: folder } = recorded(set, &record);
        let trace = if set.contains(&"--flight-recorder") { trace.join("snapshot-1") } else { trace };
        let whole: Vec<&str> = whole
            .iter()
            .filter(|command| !["threads", "breakdown"].contains(command) || trace.join("kernel").exists())
            .filter(|command| **command != "tasks" || knows_tasks)
            .copied()
            .collect();
        checks::check(&format!("{set:?}"), &trace, &account, &whole, number == 0);
        if number == 0 {
            events::convert(&format!("{set:?}"), &trace);
        }
        for extracted in EXTRACTS.iter().filter(|_| number == 0) {
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
    check(Half::Even, |set| server(&program, "spawned", set), true);
}

#[test]
fn a_tokio_server_whose_tasks_only_hooks_know() {
    let program = server_log::hooked("server");
    check(Half::Odd, |set| server(&program, "plain", set), true);
}

#[test]
fn an_axum_server() {
    let program = server_log::server("axum_server");
    check(Half::Even, |set| server(&program, "plain", set), false);
}

#[test]
fn a_c_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = log::program(folder.path()) else { return };
    check(Half::Odd, |set| clerks(&program, set), true);
}
