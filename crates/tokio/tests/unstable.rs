//! With `tokio_unstable` every task of a runtime is recorded exactly once.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{Event, lines_of, named, read, with_origins};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use tracewing_testing::Workspace;

const NAMES: [&str; 4] = ["existing", "program", "shutdown", "stealing"];

/// Builds the programs; returns the folder of executables.
static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), "unstable", &NAMES);
    let here = env!("CARGO_MANIFEST_DIR");
    let dependencies = format!(
        "tokio = {{ version = \"1\", features = [\"rt-multi-thread\", \"sync\"] }}\n\
         tracewing = {{ path = \"{here}/../tracewing\" }}\n\
         tracewing-tokio = {{ path = {here:?} }}\n"
    );
    let sources = [
        include_str!("unstable/existing.rs"),
        include_str!("unstable/program.rs"),
        include_str!("unstable/shutdown.rs"),
        include_str!("unstable/stealing.rs"),
    ];
    for (name, source) in NAMES.into_iter().zip(sources) {
        workspace.package(name, &format!("[[bin]]\nname = {name:?}"), source, &dependencies);
    }
    let output = workspace.cargo("build").env("RUSTFLAGS", "--cfg tokio_unstable").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    workspace.target().join("debug")
});

/// The events that a program recorded of itself.
fn events_of(program: &str) -> Vec<Event> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    assert!(Command::new(PROGRAMS.join(program)).arg(&trace).status().unwrap().success());
    with_origins(read(&trace))
}

#[test]
fn each_task_lives_once_while_a_runtime_ends() {
    let events = events_of("shutdown");
    let is_task = |name: &str| name == "user_thread:create";
    let created: Vec<u64> =
        events.iter().filter(|event| is_task(&event.name)).map(|event| event.number("thread")).collect();
    assert!(created.len() > 50, "{}", created.len());
    // What a runtime that has ended is given to spawn never becomes a task.
    let source = include_str!("unstable/shutdown.rs");
    let too_late = 1 + source.lines().position(|line| line.contains("handle.spawn(")).unwrap();
    let is_too_late = |event: &&Event| is_task(&event.name) && event.payload["line"] == too_late;
    assert_eq!(events.iter().filter(is_too_late).count(), 0, "line {too_late}");
    // How often each has ended, and which kernel thread runs what.
    let mut ends: BTreeMap<u64, u32> = created.iter().map(|task| (*task, 0)).collect();
    let mut runs: BTreeMap<i64, u64> = BTreeMap::new();
    let mut exited: BTreeMap<u64, u32> = BTreeMap::new();
    for event in &events {
        match event.name.as_str() {
            "user_thread:create" => {
                assert_eq!(event.number("parent"), runs.get(&event.tid).copied().unwrap_or(0), "{event:?}");
            }
            "user_thread:switch" => {
                let [prev, next] = ["prev", "next"].map(|field| event.number(field));
                assert_ne!(prev, next, "in itself: {event:?}");
                assert_eq!(runs.insert(event.tid, next).unwrap_or(0), prev, "{event:?}");
                if event.payload["cause"]["labels"][0] == "ended" {
                    *ends.get_mut(&prev).unwrap() += 1;
                }
                assert_eq!(ends.get(&next).copied().unwrap_or(0), 0, "has ended: {event:?}");
            }
            "user_thread:exit" => *exited.entry(event.number("thread")).or_default() += 1,
            _ => {}
        }
    }
    let without_end: Vec<_> = ends
        .iter()
        .filter(|(task, ends)| **ends + exited.get(task).copied().unwrap_or(0) == 0)
        .map(|(task, _)| events.iter().filter(|event| event.payload["thread"] == *task).collect::<Vec<_>>())
        .collect();
    assert!(
        without_end.is_empty(),
        "{} of {} never end: {:#?}",
        without_end.len(),
        created.len(),
        without_end[0]
    );
}

/// The hook after a poll may be called when another worker already runs the task.
#[test]
fn workers_that_take_a_task_from_each_other_do_not_run_it_permanently() {
    let events = events_of("stealing");
    let mut runs: BTreeMap<i64, u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "user_thread:switch") {
        let [prev, next] = ["prev", "next"].map(|field| event.number(field));
        // No task of this program runs another one.
        assert!(prev == 0 || next == 0, "{event:?}");
        assert_eq!(runs.insert(event.tid, next).unwrap_or(0), prev, "{event:?}");
    }
    assert!(runs.len() > 1 && runs.values().all(|runs| *runs == 0), "{runs:?}");
}

#[test]
fn tasks_without_instrumentation() {
    let events = events_of("program");
    let idle = ["worker", "park", "unpark"];
    let lines: Vec<String> = lines_of(&events)
        .into_iter()
        .filter(|line| idle.iter().all(|idle| !line.starts_with(idle)))
        .collect();
    assert_eq!(
        lines,
        [
            "create #1 -  hooked",
            "switch - #1 none",
            "create own #1 own hooked",
            "switch #1 - pending",
            "switch - own none",
            "switch own - yielded",
            "wake own",
            "switch - own none",
            "switch own - ended",
            "switch - #1 none",
            "exit #1 unknown",
            "switch #1 - ended",
            "create #3 -  hooked",
            "switch - #3 none",
            "switch #3 - budget",
            "switch - #3 none",
            "exit #3 unknown",
            "switch #3 - ended",
            "create #4 -  hooked",
            "switch - #4 none",
            "switch #4 - pending",
            "switch - #4 none",
            "exit #4 unknown",
            "switch #4 - ended",
            "create #5 -  hooked",
            "switch - #5 none",
            "create inside #5 inside hooked",
            "switch #5 inside nested",
            "switch inside #5 ended",
            "exit #5 unknown",
            "switch #5 - ended",
            "create local - local hooked",
            "switch - local none",
            "switch local - ended",
            "create blocking - blocking hooked",
            "switch - blocking none",
            "switch blocking - ended",
            "create #9 -  hooked",
            "exit #9 cancelled",
        ]
    );
    let library = named(&events, "user_thread:create")[0];
    assert_eq!(library.payload["file"], "program/main.rs");
}

#[test]
fn tasks_that_existed_before_the_recording() {
    let events = events_of("existing");
    let lines: Vec<String> = lines_of(&events)
        .into_iter()
        .filter(|line| ["worker", "park", "unpark"].iter().all(|idle| !line.starts_with(idle)))
        .collect();
    assert_eq!(
        lines,
        [
            "existed #1  hooked",
            "switch - #1 none",
            "switch #1 - pending",
            "existed #2  hooked",
            "switch - #2 none",
            "exit #2 unknown",
            "switch #2 - ended",
            "switch - #1 none",
            "exit #1 unknown",
            "switch #1 - ended",
        ]
    );
    let existed = named(&events, "user_thread:existed")[0];
    let place = include_str!("unstable/existing.rs").lines().position(|line| line.contains("tokio::spawn"));
    assert!(existed.payload["file"].as_str().unwrap().ends_with("main.rs"), "{existed:?}");
    assert_eq!(existed.number("line"), place.unwrap() as u64 + 1);
}
