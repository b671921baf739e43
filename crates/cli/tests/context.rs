//! `--context`: what is recorded of threads, and `tracewing list --context`, which joins it with events. The
//! program is this test itself, started again with a variable set.

mod harness;
mod recorded;

use harness::{Printed, RunExt};
use recorded::{ended, recorder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tracewing::{Event, emit};
use tracewing_testing::wait_until;

const ROLE: &str = "TRACEWING_TEST_CONTEXT";
const USER: u32 = 54_321;
const ALL: &str = "pid,process,thread,uid,gid,cgroup,namespaces";

#[derive(Event)]
#[event(provider = "context_test")]
struct Phase {
    number: u64,
}

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn wait_for(file: &str) {
    wait_until(file, || Path::new(file).exists());
}

/// The program, in all its roles.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let name = |name: &std::ffi::CStr| {
        // SAFETY: a string, for the calling thread.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    };
    name(c"first");
    emit!(Phase { number: 1 });
    for number in 10..13 {
        let thread = std::thread::Builder::new().name(format!("short-{number}"));
        thread.spawn(move || emit!(Phase { number })).unwrap().join().unwrap();
    }
    if role == "changes" {
        wait_for("rename");
        name(c"second");
        wait_for("renamed");
        emit!(Phase { number: 2 });
        wait_for("become");
        if is_root() {
            // SAFETY: takes numbers only.
            assert_eq!(unsafe { libc::setuid(USER) }, 0);
        }
        wait_for("became");
        emit!(Phase { number: 3 });
    }
}

/// The command that is recorded.
fn command(role: &str) -> [String; 5] {
    let this = std::env::current_exe().unwrap().display().to_string();
    ["env".to_owned(), format!("{ROLE}={role}"), this, "program".to_owned(), "--exact".to_owned()]
}

/// The context of each event of the program, by its number.
fn contexts(trace: &Path) -> BTreeMap<u64, Value> {
    let output = harness::of(trace, &["list", "--context", "--format", "json", "-e", "context_test:*"]).ran();
    assert!(output.status.success(), "{}", output.notes());
    let events = output.text();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.map(|event| (event["payload"]["number"].as_u64().unwrap(), event["context"].clone())).collect()
}

fn wait_for_context(trace: &Path, what: &str) {
    wait_until(what, || {
        harness::of(trace, &["list", "-e", "tracewing:thread_context"]).ran().text().contains(what)
    });
}

#[test]
fn context_has_what_was_true_of_the_thread_at_the_event() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("context-{}", std::process::id());
    let options = ["--context", ALL, "--flush", "10", "--session", &name];
    let recorder = recorder(folder.path(), &options).args(command("changes")).spawn().unwrap();
    let trace = folder.path().join("t");
    let go = |file: &str| drop(std::fs::File::create(folder.path().join(file)).unwrap());
    wait_until("the first archive", || {
        contexts_are_there(&trace) && harness::run(&["rotate", &name]).status.success()
    });
    go("rename");
    wait_for_context(&trace, "\"second\"");
    go("renamed");
    go("become");
    if is_root() {
        wait_for_context(&trace, &format!("uid = {USER}"));
    }
    go("became");
    let recording = ended(folder, recorder);
    let all = contexts(&recording.trace());
    let text = |number: u64, field: &str| all[&number][field].as_str().unwrap_or("unknown").to_owned();
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 10, 11, 12]);
    for (number, thread) in [(2, "second"), (3, "second"), (10, "short-10"), (12, "short-12")] {
        assert_eq!(text(number, "thread"), thread, "{all:?}");
    }
    let pid = all[&1]["pid"].as_u64().unwrap();
    for (number, context) in &all {
        assert_eq!(context["pid"], pid, "{number}");
        let uid = if *number == 3 && is_root() { USER } else { own_uid() };
        assert_eq!(context["uid"], uid, "{number}: {context}");
        assert!(context["gid"].is_u64() && text(*number, "process") != "unknown", "{number}: {context}");
        assert!(text(*number, "namespaces").contains("mnt:"), "{number}: {context}");
        assert!(text(*number, "cgroup").starts_with('/'), "{number}: {context}");
    }
    // Each archive has what its events need.
    let archives = std::fs::read_dir(recording.trace().join("archives")).unwrap();
    let archives: Vec<_> = archives.map(|archive| archive.unwrap().path()).collect();
    assert!(archives.len() > 1);
    let alone: BTreeMap<_, _> = archives.iter().flat_map(|archive| contexts(archive)).collect();
    assert_eq!(alone, all);
}

fn contexts_are_there(trace: &Path) -> bool {
    let listed = harness::of(trace, &["list", "-e", "context_test:*"]).ran();
    listed.text().contains("number = 12")
}

fn own_uid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getuid() }
}

#[test]
fn only_what_is_asked_for_is_recorded_and_events_cost_the_same() {
    let record = |options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        ended_of(folder, options)
    };
    let (plain, with) = (record(&[]), record(&["--context", "thread,pid"]));
    let sizes = |trace: &Path| {
        let stats = harness::json(trace, &["stats", "-e", "context_test:*"]);
        (stats["events"][0]["events"].clone(), stats["events"][0]["bytes"].clone())
    };
    assert_eq!(sizes(&plain.trace()), sizes(&with.trace()));
    let all = contexts(&with.trace());
    let names: Vec<_> = all[&10].as_object().unwrap().keys().collect();
    assert_eq!(names, ["pid", "thread"]);
    with.compare_with_babeltrace2();
    let csv = harness::of(&with.trace(), &["list", "--context", "--format", "csv", "-e", "context_test:*"]);
    let csv = { csv }.ran().text();
    assert!(csv.lines().next().unwrap().ends_with(",context.pid,context.thread"), "{csv}");
    assert!(csv.contains(",short-11\n"), "{csv}");
    let text = harness::of(&with.trace(), &["list", "--context", "-e", "context_test:*"]).ran().text();
    assert!(text.contains("thread = \"short-11\" }, { tid = "), "{text}");
    let refused = harness::of(&plain.trace(), &["list", "--context"]).ran();
    assert!(refused.notes().contains("record it with `--context NAME`"), "{}", refused.notes());
    let output = harness::run(&["record", "--context", "pid,thred", "--", "true"]);
    assert!(output.notes().contains("a similar value exists: 'thread'"), "{}", output.notes());
}

fn ended_of(folder: tempfile::TempDir, options: &[&str]) -> recorded::Recording {
    let recorder = recorder(folder.path(), options).args(command("once")).spawn().unwrap();
    ended(folder, recorder)
}

#[test]
fn snapshots_have_the_context_of_threads_that_were_seen() {
    let folder = tempfile::tempdir().unwrap();
    let recording =
        ended_of(folder, &["--context", "process,uid", "--flight-recorder", "--snapshot-on", "exit"]);
    let snapshot = std::fs::read_dir(recording.trace()).unwrap().next().unwrap().unwrap().path();
    let all = contexts(&snapshot);
    assert_eq!(all.len(), 4, "{all:?}");
    // What began and ended between two looks is unknown.
    assert!(all.values().all(|context| context["uid"] == own_uid() || context["uid"].is_null()), "{all:?}");
}
