//! `tracewing record --locks`: locks of C programs of all kinds, and `tracewing locks`; `lock_truth` has
//! each call.

mod chains;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../kernel_common/mod.rs"]
mod kernel_common;
#[path = "../lock_programs/mod.rs"]
mod lock_programs;
mod programs;
#[path = "../recorded/mod.rs"]
mod recorded;
mod waits;

use harness::{Json, Printed, RunExt};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tracewing_testing::am_root;

use lock_programs::{program, record_locks, table};
use recorded::{Event, build, ended, record, recorder};
use serde_json::Value;

#[test]
fn what_chooses_other_events_leaves_locks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    for choice in [["--level", "error"], ["--major", "63"], ["--process", "nobody"], ["--provider", "none"]] {
        let events = record_locks(&choice, &program).events();
        let count = |name: &str| events.iter().filter(|event| event.name == name).count();
        assert!(count("lock:acquired") >= 1000 && count("lock:released") >= 1000, "{choice:?}");
    }
}

#[test]
fn what_is_excluded_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    let recording = record_locks(&["-e", "none:*", "--exclude", "lock:rel*"], &program);
    let events = recording.events();
    let count = |name: &str| events.iter().filter(|event| event.name == name).count();
    assert!(count("lock:acquired") >= 1000 && count("lock:released") == 0);
}

/// A thread that waits for a condition has not got the mutex meanwhile.
#[test]
fn without_waits_for_conditions_it_is_unknown_how_long_locks_were_held() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let hold = |trace: &Path, is_known: bool| {
        let (locks, said) = harness::json_and_notes(trace, &["locks"]);
        let rows = locks["locks"].as_array().unwrap();
        let mutexes: Vec<_> = rows.iter().filter(|row| row["kind"] == "mutex").collect();
        assert!(mutexes.iter().any(|row| row["hold_ns"].is_null() != is_known), "{said} {locks}");
        assert!(is_known || mutexes.iter().all(|row| row["hold_ns"].is_null()), "{said} {locks}");
        assert_eq!(said.contains("other releases (lock:not_released"), !is_known, "{said}");
    };
    let whole = record_locks(&[], &program);
    hold(&whole.trace(), true);
    let part = folder.path().join("part");
    let mut extract = harness::of(&whole.trace(), &["extract"]);
    extract.args(["--exclude", "lock:condition_*", "-o"]).arg(&part).succeeds();
    hold(&part, false);
    hold(&record_locks(&["--exclude", "lock:condition_*"], &program).trace(), false);
}

#[test]
fn a_program_that_dies_with_a_lock_leaves_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "crash", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).ran();
    assert_eq!(output.status.code(), Some(134), "{}", output.notes());
    let events = recorded::list(&place.path().join("t"));
    let find = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    let ([has], [wants]) = (&find("lock:acquired")[..], &find("lock:requested")[..]) else { panic!() };
    assert_eq!(has.number("lock"), wants.number("lock"));
    assert_eq!(wants.payload["owner"], has.tid);
    assert!(find("lock:released").is_empty());
}

#[test]
fn a_program_that_dies_within_a_lock_leaves_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "crash", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).arg("wild").ran();
    assert_eq!(output.status.code(), Some(128 + libc::SIGSEGV), "{}", output.notes());
    let events = recorded::list(&place.path().join("t"));
    assert_eq!(events.iter().filter(|event| event.name == "lock:acquired").count(), 1);
}

#[test]
fn locks_are_recorded_from_begin_to_end_of_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(ends) = program(folder.path(), "ends", &["-rdynamic"]) else { return };
    let Some(plugin) = program(folder.path(), "plugin", &["-shared", "-fPIC"]) else { return };
    let recording = record(&["--locks"], &[ends, plugin]);
    let events = recording.events();
    // Those of the child of `vfork`, which runs on its parent's thread block.
    const LOST: usize = 3;
    assert_eq!(recording.reasons(), [("thread not protected", 2 * LOST as u64)].into());
    let (mut count, mut lost) = (0, 0);
    for line in recording.stdout.lines() {
        let (lock, expected) = line.split_once(' ').unwrap();
        let (lock, expected): (u64, usize) = (lock.parse().unwrap(), expected.parse().unwrap());
        for name in ["lock:acquired", "lock:released"] {
            let is_it = |event: &&Event| event.name == name && event.number("lock") == lock;
            let found = events.iter().filter(is_it).count();
            assert!(
                found == expected || (found == 0 && expected == LOST),
                "{name} of {lock:#x} in {}",
                recording.stdout
            );
            lost += expected - found;
        }
        count += 1;
    }
    assert_eq!((count, lost), (5, 2 * LOST));
}

#[test]
fn the_crates_own_locks_are_shown_by_their_lines() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let mut expected: Vec<(String, u64, u64)> = Vec::new();
    for line in recording.stdout.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let place = format!("crates/tracewing/tests/programs/locks.rs:{}", numbers[0]);
        expected.push((place, numbers[1], numbers[2]));
    }
    assert!(expected.len() > 15, "{}", recording.stdout);
    let callers = table(&recording, &["--by", "caller"]);
    let mut found = Vec::new();
    for row in callers["locks"].as_array().unwrap() {
        let number = |field: &str| row[field].as_u64().unwrap();
        found.push((row["at"].as_str().unwrap().to_owned(), number("acquired"), number("waited")));
        // A thread that sleeps has made all its tries before; conditions are not tried.
        let tries = if row["kind"] == "condition" { 0 } else { 7 };
        assert_eq!(row["spins"].as_u64().unwrap_or(0), number("waited") * tries, "{row}");
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    recording.compare_with_babeltrace2();
}
