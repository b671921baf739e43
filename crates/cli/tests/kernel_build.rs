//! `tracewing record --system-wide` of a parallel compile, programs that know nothing of it: nothing is lost
//! with the default buffers, babeltrace2 prints what `tracewing list` prints, and every process that strace
//! saw has its name.

mod harness;
mod kernel_common;

use harness::{Json, Printed, RunExt, traceable};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tracewing_testing::installed;

use kernel_common::{end, events, listing, record, summary, tracewing};

const SOURCES: u32 = 6;

fn write_sources(folder: &Path) {
    let mut makefile = "program:".to_owned();
    (0..SOURCES).for_each(|n| makefile += &format!(" s{n}.o"));
    makefile += "\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -O2 -pipe -c -o $@ $<\n";
    fs::write(folder.join("Makefile"), makefile).unwrap();
    for n in 0..SOURCES {
        let main = if n == 0 { "int main(void) { return 0; }\n" } else { "" };
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\nint f{n}(int x) {{ return abs(x) + {n}; }}\n{main}"
        );
        fs::write(folder.join(format!("s{n}.c")), source).unwrap();
    }
}

/// What strace saw: for each process the programs that it executed, in order.
fn executed(log: &str) -> BTreeMap<i32, Vec<String>> {
    let mut processes: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    // An execve that another process interrupts is printed in two parts.
    let mut begun = BTreeMap::new();
    for line in log.lines() {
        let (pid, what) = line.split_once(' ').unwrap();
        let (pid, what) = (pid.parse().unwrap(), what.trim_start());
        let programs = processes.entry(pid).or_default();
        let path = what.strip_prefix("execve(\"").map(|rest| rest.split_once('"').unwrap().0.to_owned());
        let ended = if what.starts_with("execve(") && what.ends_with("<unfinished ...>") {
            begun.insert(pid, path);
            continue;
        } else if what.starts_with("<... execve resumed>") {
            begun.remove(&pid).unwrap()
        } else {
            path
        };
        programs.extend(ended.filter(|_| what.ends_with(" = 0")));
    }
    processes
}

/// The name that a process has after executing a file: 15 bytes of it.
fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap();
    &name[..name.len().min(15)]
}

#[test]
fn every_process_of_a_compile_is_named_and_nothing_is_lost() {
    if !traceable() || !installed(&["make", "gcc", "strace"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_sources(folder.path());
    let command =
        "strace -f -qq -s 4096 -e signal=none -e trace=execve,exit_group -o log make -s -j4".split(' ');
    let command: Vec<&str> = command.collect();
    let output = end(record(folder.path(), &["--system-wide"], &command).spawn().unwrap());
    assert!(output.status.success(), "{}", output.notes());
    let summary = summary(&output);
    assert_eq!((&summary["lost_events"], &summary["state"]), (&0.into(), &"complete".into()), "{summary}");
    let trace = folder.path().join("t");
    let (text, warnings) = listing(&trace);
    assert_eq!(warnings, "");
    let events = events(&text);
    assert_eq!(Some(events.len() as u64), summary["events"].as_u64());

    let threads = tracewing(folder.path()).args(["threads", "--format", "json", "t"]).ran();
    let threads: serde_json::Value = threads.json();
    let threads = threads["threads"].as_array().unwrap();

    let processes = executed(&fs::read_to_string(folder.path().join("log")).unwrap());
    assert!(processes.len() as u32 > 3 * SOURCES, "{processes:?}");
    for (pid, programs) in &processes {
        let of_it = |name| events.iter().filter(move |event| event.tid == *pid && event.name == name);
        let recorded: Vec<&str> = of_it("sched_process_exec").map(|event| event.field("filename")).collect();
        assert_eq!(&recorded, programs, "process {pid}");
        let forked = events.iter().filter(|event| {
            event.name == "sched_process_fork" && event.number("child_tid") == i64::from(*pid)
        });
        assert_eq!(forked.count(), 1, "process {pid}");
        let ends: Vec<&str> = of_it("sched_process_exit").map(|event| event.field("comm")).collect();
        let [name] = ends[..] else { panic!("process {pid} ended {} times", ends.len()) };
        if let Some(last) = programs.last() {
            assert_eq!(name, name_of(last), "process {pid}");
        }
        let listed = threads.iter().find(|thread| thread["tid"] == *pid);
        assert_eq!(listed.unwrap_or_else(|| panic!("{pid} is not listed"))["name"], name, "{listed:?}");
    }
    println!("{} events, {} processes named", events.len(), processes.len());
}
