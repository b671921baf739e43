//! The examples in the help of each command are true: those that read a recording find something in it.
//! (`main.rs` checks that the command line accepts all examples.)

#[path = "harness/mod.rs"]
mod harness;
#[path = "help_examples/mod.rs"]
mod help_examples;
#[path = "recorded/mod.rs"]
mod recorded;

use harness::{Printed, RunExt, TRACEWING, run, tracewing};
use help_examples::examples;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Commands whose examples read a recording. The examples of `functions` are of a program that a compiler has
/// instrumented.
const READERS: [&[&str]; 16] = [
    &[],
    &["list"],
    &["info"],
    &["stats"],
    &["threads"],
    &["breakdown"],
    &["sched", "timehist"],
    &["sched", "latency"],
    &["tasks"],
    &["latency"],
    &["critical-path"],
    &["locks"],
    &["profile"],
    &["export"],
    &["extract"],
    &["convert"],
];

/// How a line begins of commands that find nothing.
const NOTHING: [&str; 4] = [
    "tracewing: The filter leaves out all",
    "The filter leaves out all",
    "tracewing: no event is called",
    "0 periods",
];

/// Records what the examples are about: the server `shop`, tasks named `work/…` and `daemon`, requests of
/// `quotes`, with locks, samples, and the kernel's events. Gives the process id of `reactivity`, whose task
/// 21 is the daemon.
fn record_programs(folder: &Path) -> String {
    let packages = ["-p", "shop", "-p", "quotes", "-p", "reactivity", "-p", "tracewing-preload"];
    let programs = recorded::build(&packages);
    // An example asks for the worker on CPU 0.
    let script = "taskset -c 0 shop --clients 1 --workers 1 --seconds 2 & quotes --seconds 1 &
        reactivity --messages 55 & echo $! > pid; wait";
    tracewing()
        .args(["record", "--profile", "--locks", "-q", "-o", "my-trace", "--"])
        .args(["sh", "-c", script])
        .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
        .current_dir(folder)
        .succeeds();
    fs::read_to_string(folder.join("pid")).unwrap().trim().to_owned()
}

/// What the examples read.
const KEPT: [&str; 2] = ["my-trace", "pid"];

/// An example up to the first other program, which need not be installed.
fn own_part(example: &str) -> &str {
    let mut quote = None;
    for (at, letter) in example.char_indices() {
        quote = match (quote, letter) {
            (None, '\'' | '"') => Some(letter),
            (Some(open), close) if open == close => None,
            (None, '|' | '&' | ';') => return &example[..at],
            (same, _) => same,
        };
    }
    example
}

/// Runs an example, with `pid` in place of its process id; gives what it prints if it fails or finds nothing.
fn failure(example: &str, pid: &str, folder: &Path) -> Option<String> {
    let line = own_part(example).replace("4711", pid);
    let folders = Path::new(TRACEWING).parent()?;
    let path = format!("{}:{}", folders.display(), std::env::var("PATH").ok()?);
    let mut shell = Command::new("bash");
    let output = shell.args(["-c", &line]).env("PATH", path).current_dir(folder).ran();
    let found = [output.text(), output.notes()].concat();
    let is_empty = found.lines().any(|line| NOTHING.iter().any(|words| line.starts_with(words)));
    // The next example may write a folder of the same name.
    for entry in fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| !KEPT.iter().any(|kept| entry.file_name() == *kept))
    {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path).ok()? } else { fs::remove_file(path).ok()? }
    }
    (!output.status.success() || is_empty).then(|| format!("$ {line}\n{found}"))
}

#[test]
fn examples_of_commands_that_read_a_recording_find_something() {
    if !harness::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let pid = record_programs(folder.path());
    let (mut failures, mut count) = (Vec::new(), 0);
    for command in READERS {
        let help = tracewing().args(command).arg("--help").env("COLUMNS", "400").succeeds().text();
        let examples = examples(&help);
        let of_recording =
            examples.iter().filter(|line| line.contains("my-trace") && !line.starts_with("tracewing record"));
        for example in of_recording {
            count += 1;
            failures.extend(failure(example, &pid, folder.path()));
        }
    }
    assert!(count > 40, "{count} examples");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_command_has_a_manual_page() {
    for (words, title, usage) in [
        (&[][..], "tracewing", "tracewing [OPTIONS] <COMMAND>"),
        (&["record"], "tracewing-record", "tracewing record [OPTIONS] [CMD]..."),
        (&["sched", "latency"], "tracewing-sched-latency", "tracewing sched latency [OPTIONS] [TRACE]..."),
        (&["sched-latency"], "tracewing-sched-latency", "tracewing sched latency [OPTIONS] [TRACE]..."),
        (&["critical-path"], "tracewing-critical-path", "tracewing critical\\-path [OPTIONS] [TRACE]..."),
    ] {
        let page = run(&[&["man"], words].concat()).text();
        assert!(
            page.contains(&format!(".TH {title} 1  \"tracewing ")) && page.contains(".SH OPTIONS"),
            "{page}"
        );
        assert!(page.contains(".SH EXAMPLES\n.nf\n\\&  tracewing "), "{page}");
        assert!(page.contains(&format!(".SH SYNOPSIS\n.nf\n{usage}\n.fi\n")), "{page}");
    }
    assert!(run(&["man", "sched", "no"]).notes().contains("there is no command `sched no`"));
}
