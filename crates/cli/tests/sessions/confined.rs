//! What recorders of root give up that run nothing for the user: capabilities that they do not need, and how
//! to get them back. What a recorder runs has what it would have without one.

use crate::background::{Background, Pilot, as_user};
use crate::harness::Printed;
use std::collections::BTreeSet;
use std::fs;
use tracewing_testing::{Cause, NOBODY, am_root, skip, traceable, wait_until};

/// Numbers of `linux/capability.h`.
const SETUID: u32 = 7;
const NET_ADMIN: u32 = 12;
const SYS_MODULE: u32 = 16;
const SYS_RAWIO: u32 = 17;
const SYS_PTRACE: u32 = 19;
const SYS_ADMIN: u32 = 21;

/// The value of a line of a file like `/proc/PID/status`.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap().trim()
}

fn set(status: &str, key: &str) -> u64 {
    u64::from_str_radix(value(status, key), 16).unwrap()
}

/// `status` of each thread of a process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok()).collect()
}

fn own() -> String {
    fs::read_to_string("/proc/thread-self/status").unwrap()
}

fn has(set: u64, capability: u32) -> bool {
    set & 1 << capability != 0
}

/// Whether this process has what a recorder has to have so that it gives up the rest.
fn is_usual_root() -> bool {
    let is_usual =
        am_root() && has(set(&own(), "CapEff"), SYS_PTRACE) && has(set(&own(), "CapEff"), SYS_MODULE);
    if !is_usual {
        skip(Cause::Root, "not root with all capabilities");
    }
    is_usual
}

#[test]
fn recorders_of_sessions_keep_what_they_need_and_execute_nothing_with_more() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:*");
    sessions.succeeds("trigger add web hit -e pilot:count --where number==1 --do notify");
    sessions.start("web");
    // Programs of all users are attached to nevertheless.
    let mut pilot = Pilot::run(&sessions, &as_user(NOBODY));
    pilot.emit(10);
    wait_until("it is recorded", || sessions.channel("web", "main")["events"].as_u64() >= Some(10));
    let recorders = sessions.recorders();
    assert_eq!(recorders.len(), 2);
    for pid in recorders {
        let threads = threads(pid);
        let sets: BTreeSet<u64> =
            threads.iter().flat_map(|thread| ["CapPrm", "CapEff"].map(|key| set(thread, key))).collect();
        assert_eq!(sets.len(), 1, "the same of each of its threads: {sets:x?}");
        let kept = *sets.first().unwrap();
        for gone in [SETUID, NET_ADMIN, SYS_MODULE, SYS_RAWIO] {
            assert!(!has(kept, gone), "{gone} in {kept:x}");
        }
        assert!(has(kept, SYS_PTRACE));
        for thread in &threads {
            assert_eq!(set(thread, "CapBnd") & !kept, 0, "exec would give it back");
            assert_eq!(value(thread, "NoNewPrivs"), "1");
        }
    }
}

#[test]
fn what_a_recorder_runs_has_what_it_would_have_without_one() {
    if !is_usual_root() {
        return;
    }
    let sessions = Background::new();
    let script = sessions.folder().join("status.sh");
    fs::write(&script, "#!/bin/sh\ncat /proc/self/status > \"$0.$PPID\"\n").unwrap();
    rustix::fs::chmod(&script, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    sessions.succeeds(&format!("session create web -e pilot:* --on-archive {script}"));
    sessions.succeeds(&format!("trigger add web hit -e pilot:count --where number==1 --exec {script}"));
    sessions.start("web");
    let recorders: Vec<u64> = ["main", "hit"]
        .iter()
        .map(|name| sessions.channel("web", name)["recorder"].as_u64().unwrap())
        .collect();
    let mut pilot = Pilot::start(&sessions);
    pilot.emit(10);
    sessions.succeeds("rotate web");
    let said = |recorder: &u64| fs::read_to_string(format!("{script}.{recorder}")).unwrap_or_default();
    wait_until("both have run", || recorders.iter().all(|recorder| said(recorder).contains("NoNewPrivs")));
    for recorder in &recorders {
        assert_same(&said(recorder));
    }
    sessions.succeeds("session stop web");
    let recorded = sessions.succeeds("record -q --no-kernel -o t -- cat /proc/self/status").text();
    assert_same(&recorded);
}

/// A command has the capabilities of this process.
fn assert_same(status: &str) {
    for key in ["CapPrm", "CapEff", "CapBnd", "CapInh", "NoNewPrivs"] {
        assert_eq!(value(status, key), value(&own(), key), "{key}");
    }
}

#[test]
fn a_recorder_that_attaches_to_nothing_cannot_administrate_the_machine() {
    if !is_usual_root() || !traceable(tracewing_kernel::privileges()) {
        return;
    }
    let sessions = Background::new();
    sessions.succeeds("session create web --system-wide -k sched_switch");
    sessions.start("web");
    for thread in sessions.recorders().into_iter().flat_map(threads) {
        let kept = set(&thread, "CapPrm");
        assert!(!has(kept, SYS_ADMIN) && has(kept, SYS_PTRACE), "{thread}");
    }
    wait_until("it records", || sessions.channel("web", "main")["events"].as_u64() > Some(0));
    sessions.succeeds("session stop web");
}

#[test]
fn a_recorder_of_another_user_has_none() {
    if !am_root() {
        return skip(Cause::Root, "another user's session needs root");
    }
    let sessions = Background::of_user(NOBODY);
    sessions.succeeds("session create web -e pilot:*");
    sessions.start("web");
    for pid in sessions.recorders() {
        assert!(threads(pid).iter().all(|thread| set(thread, "CapPrm") == 0), "{pid}");
    }
}
