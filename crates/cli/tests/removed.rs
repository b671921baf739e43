//! Every kind of the kernel's events is taken away from a recording, one at a time: what analyses then print
//! is what they print of the whole, or unknown, or listed here with its reason. Needs root.

mod harness;

use harness::{Printed, RunExt, json_and_notes};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::env::current_exe;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;
use tracewing_testing::{Cause, skip};

/// What is taken away, the columns of `threads` and of `breakdown` that are unknown then, and what
/// `breakdown` says.
const REMOVED: [(&str, &[&str], &[&str], &str); 16] = [
    (
        "sched_switch",
        &["switches", "preemptions", "migrations"],
        &["running_ns", "ipc_ns", "ipc_waits", "blocked_ns", "ready_ns"],
        "",
    ),
    ("sched_waking", &["wakeups"], &["woke", "ipc_ns", "ipc_waits"], "The recording lacks some wake-ups"),
    ("sched_wakeup", &["wakeups"], &["woke", "ipc_ns", "ipc_waits"], "The recording lacks some wake-ups"),
    ("sched_wakeup_new", &["wakeups"], &["woke", "ipc_ns", "ipc_waits"], ""),
    (
        "syscall_entry_read",
        &["system_calls", "user_ns", "system_ns"],
        &["calls"],
        "The recording lacks some system calls",
    ),
    (
        "syscall_entry_*",
        &["system_calls", "user_ns", "system_ns"],
        &[],
        "The recording lacks some system calls",
    ),
    (
        "syscall_exit_*",
        &["user_ns", "system_ns"],
        &["running_ns", "events", "page_faults", "woke", "ipc_ns", "ipc_waits"],
        "The recording lacks some system calls",
    ),
    (
        "syscall_exit_read",
        &["user_ns", "system_ns"],
        &["page_faults", "woke"],
        "The recording lacks some system calls",
    ),
    (
        "x86_exceptions_page_fault_user",
        &["page_faults"],
        &["page_faults"],
        "The recording lacks some page faults",
    ),
    (
        "x86_exceptions_page_fault_kernel",
        &["page_faults"],
        &["page_faults"],
        "The recording lacks some page faults",
    ),
    ("irq_softirq_entry", &["interrupted_ns"], &["interrupted_ns"], "The recording lacks some softirqs"),
    ("irq_softirq_exit", &["interrupted_ns"], &["interrupted_ns"], "The recording lacks some softirqs"),
    ("irq_softirq_raise", &[], &[], "The recording lacks some softirqs"),
    ("irq_handler_*", &["interrupted_ns"], &["interrupted_ns"], "The recording lacks some interrupts"),
    (
        "x86_irq_vectors_local_timer_entry",
        &["interrupted_ns"],
        &["interrupted_ns"],
        "The recording lacks some interrupts",
    ),
    (
        "x86_irq_vectors_local_timer_exit",
        &["interrupted_ns"],
        &["interrupted_ns"],
        "The recording lacks some interrupts",
    ),
];

/// Set for the program that is recorded.
const TALKS: &str = "TRACEWING_TEST_TALKS";

/// Counts in the columns of `threads`: each is that of the whole recording, or unknown. Times are not
/// compared: without interrupts, theirs is in that of the interrupted threads, and without `sched_waking` a
/// thread is ready from `sched_wakeup` on, some microseconds later.
const COUNTS: [&str; 6] = ["switches", "preemptions", "migrations", "wakeups", "system_calls", "page_faults"];

#[test]
fn what_is_taken_away_is_unknown_and_nothing_else_changes() {
    if !rustix::process::geteuid().is_root() {
        return skip(Cause::KernelEvents, "recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.01; cat /proc/self/maps | wc -l; \"$0\" talks";
    let mut record = harness::tracewing();
    record.args(["record", "-o"]).arg(&whole).args(["--", "sh", "-c", script]).arg(current_exe().unwrap());
    let recorded = record.env(TALKS, "1").ran();
    if !whole.join("kernel").exists() {
        let why = recorded.notes();
        return skip(Cause::KernelEvents, format_args!("no kernel events were recorded: {why}"));
    }
    let (all, _) = json_and_notes(&whole, &["threads"]);
    let (all_places, _) = json_and_notes(&whole, &["breakdown"]);
    let classes = std::fs::read_to_string(whole.join("kernel/metadata")).unwrap();
    let mut tried = BTreeSet::new();
    for (name, of_threads, of_breakdown, says) in REMOVED {
        if !classes.contains(&format!("\"{}", name.trim_end_matches('*'))) {
            skip(Cause::Listed("event class"), format_args!("this kernel has no {name}"));
            continue;
        }
        tried.insert(name);
        let part = folder.path().join("part");
        let _extracted =
            harness::tracewing().args(["extract", "--exclude", name]).args([&whole, &part]).succeeds();
        let (some, _) = json_and_notes(&part, &["threads"]);
        for thread in some["threads"].as_array().unwrap() {
            for column in of_threads {
                assert!(thread[column].is_null(), "{name}: {column} of {thread}");
            }
            let same = all["threads"].as_array().unwrap().iter().find(|other| other["tid"] == thread["tid"]);
            let mut waits = thread["blocked_on"].as_array().into_iter().flatten();
            let is_reported = name == "syscall_exit_*" && waits.any(|part| !part["on"].is_null());
            assert!(!is_reported, "{name}: no event shows what it waited in: {thread}");
            for column in COUNTS {
                let is_same = same.is_some_and(|same| same[column] == thread[column]);
                assert!(is_same || thread[column].is_null(), "{name}: {column} of {thread}, and of {same:?}");
            }
        }
        let (some, why) = json_and_notes(&part, &["breakdown"]);
        // What others did for a process, and what all CPUs did, is in the events that are left.
        // So is what happened somewhere, if no event shows where: that is in `unknown`.
        let is_of_it = |row: &&Value| match row["section"].as_str() {
            Some("inside") => !name.starts_with("syscall_exit") || row["activity"] != "unknown",
            part => part == Some("threads"),
        };
        for row in some["rows"].as_array().unwrap().iter().filter(is_of_it) {
            if row["section"] == "threads" && name != "sched_switch" {
                continue;
            }
            for column in of_breakdown {
                assert!(row[column].is_null(), "{name}: {column} of {row}");
            }
        }
        if name.contains("irq_") {
            assert_waits_are_the_same(name, &some, &all_places);
        }
        // Without switches, a thread may have no event at its begin or end.
        if name != "sched_switch" {
            assert_times_are_all_there(name, &some, &all_places);
        }
        assert!(why.contains(says), "{name}: {why}");
        std::fs::remove_dir_all(&part).unwrap();
    }
    assert!(tried.contains("sched_switch"), "{tried:?}");
}

/// Time of columns without a value is in `unknown`, or in what else is known of that time.
fn assert_times_are_all_there(name: &str, some: &Value, all: &Value) {
    const TIMES: [&str; 6] =
        ["running_ns", "ipc_ns", "interrupted_ns", "blocked_ns", "ready_ns", "unknown_ns"];
    let sums = |document: &Value| {
        let mut sums = BTreeMap::new();
        for row in document["rows"].as_array().unwrap().iter().filter(|row| row["section"] == "inside") {
            let ns: i64 = TIMES.iter().filter_map(|column| row[column].as_i64()).sum();
            *sums.entry(row["process"].to_string()).or_insert(0) += ns;
        }
        sums
    };
    let (some, all) = (sums(some), sums(all));
    for (process, ns) in &all {
        // The first event may be among those that are left out.
        let sum = some.get(process).copied().unwrap_or(0);
        assert!((ns - sum).abs() < 100_000, "without {name}: {sum} of {ns} ns of process {process}");
    }
}

/// Without some interrupts, waits are those of the whole recording, or unknown.
fn assert_waits_are_the_same(name: &str, some: &Value, all: &Value) {
    let rows = |document: &Value| document["rows"].as_array().unwrap().clone();
    let all = rows(all);
    let lacks_softirqs = name.starts_with("irq_softirq_");
    let mut sockets = 0;
    for row in rows(some) {
        let is_same = |other: &&Value| {
            ["process", "section", "activity"].iter().all(|column| other[column] == row[column])
        };
        let same = all.iter().find(is_same);
        if row["section"] == "inside" {
            for column in ["ipc_ns", "ipc_waits", "blocked_ns"] {
                let is_same = same.is_some_and(|same| same[column] == row[column]);
                assert!(is_same || row[column].is_null(), "{name}: {column} of {row}, and of {same:?}");
            }
            sockets += u32::from(row["activity"] == "recvfrom");
        }
        let is_of_process = row["activity"].as_str().is_some_and(|name| name.starts_with("process "));
        if lacks_softirqs && row["section"] == "outside" && is_of_process {
            assert!(row["running_ns"].is_null() && row["calls"].is_null(), "{name}: {row}");
        }
    }
    assert!(sockets > 0, "nothing was received: {some}");
}

/// The program that is recorded is this one: a thread waits for what another one sends over the loopback
/// device, which a softirq delivers.
#[test]
fn talks() {
    if std::env::var_os(TALKS).is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let receives = std::thread::spawn(move || {
        for _ in 0..10 {
            receiver.read_exact(&mut [0]).unwrap();
        }
    });
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(1));
        sender.write_all(&[0]).unwrap();
    }
    receives.join().unwrap();
}

/// A thread that waits on a CPU whose switches from its idle thread are missing runs again before its next
/// event: without the ends of system calls, that may be an event of its program.
#[test]
fn without_ends_of_system_calls_running_becomes_unknown_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/server");
    let part = folder.path().join("part");
    let _extracted = harness::tracewing()
        .args(["extract", "--exclude", "syscall_exit_*"])
        .args([&whole, &part])
        .succeeds();
    let [all, some] = [&whole, &part].map(|trace| json_and_notes(trace, &["threads"]).0);
    let [all, some] = [&all, &some].map(|said| said["threads"].as_array().unwrap());
    let mut fell = false;
    for thread in some {
        let same = all.iter().find(|other| other["tid"] == thread["tid"]).unwrap();
        let time = |column: &str| [same, thread].map(|thread| thread[column].as_u64().unwrap());
        for column in ["ready_ns", "blocked_ns", "running_ns"] {
            let [was, is] = time(column);
            assert!(is <= was, "{column}: {is} of {was}: {thread}");
            fell |= is < was;
        }
        let [was, is] = time("unknown_ns");
        assert!(is >= was, "{is} of {was}: {thread}");
    }
    assert!(fell, "running time is known all the same: {some:?}");
}

/// Time in states that cannot be distinguished is still there.
#[test]
fn time_of_columns_without_a_value_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/server");
    let part = folder.path().join("part");
    let times = |trace: &Path| {
        let (mut document, _) = json_and_notes(trace, &["threads"]);
        let Value::Array(threads) = document["threads"].take() else { panic!("{document}") };
        let sum = |thread: &Value| -> i64 {
            const ALL: [&str; 4] = ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"];
            ALL.iter().filter_map(|column| thread[column].as_i64()).sum()
        };
        threads.iter().map(|thread| (thread["tid"].to_string(), sum(thread))).collect::<Vec<_>>()
    };
    let all = times(&whole);
    // Without switches, a thread ends with the event of its exit, not when it leaves its CPU after that.
    let removed = [("sched_wakeup", 100_000), ("sched_waking", 100_000), ("sched_switch", 3_000_000)];
    for (name, less) in removed {
        let _extracted =
            harness::tracewing().args(["extract", "--exclude", name]).args([&whole, &part]).succeeds();
        let some: BTreeMap<_, _> = times(&part).into_iter().collect();
        for (tid, ns) in &all {
            // The first event may be among those that are left out.
            assert!((0..less).contains(&(ns - some[tid])), "without {name}: {some:?} of {all:?}");
        }
        std::fs::remove_dir_all(&part).unwrap();
    }
}

/// What was never recorded counts no less than what was taken away.
#[test]
fn counts_of_some_events_are_not_those_of_all() {
    if !rustix::process::geteuid().is_root() {
        return skip(Cause::Root, "recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let some = ["sched:sched_switch", "sched:sched_waking", "syscalls:sys_enter_read"];
    let options = some.iter().flat_map(|event| ["-k", event]);
    let mut record = harness::tracewing();
    let recorded =
        record.args(["record", "-o"]).arg(&trace).args(options).args(["--", "cat", "/proc/self/maps"]);
    let recorded = recorded.ran();
    if !trace.join("kernel").exists() {
        return skip(Cause::KernelEvents, recorded.notes());
    }
    let (threads, _) = json_and_notes(&trace, &["threads"]);
    let threads = threads["threads"].as_array().unwrap();
    let known = |column: &str| threads.iter().filter(|thread| thread[column].is_u64()).count();
    assert!(known("switches") > 0, "{threads:?}");
    assert_eq!((known("system_calls"), known("wakeups")), (0, 0), "{threads:?}");
}
