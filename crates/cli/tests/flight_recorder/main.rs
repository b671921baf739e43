//! Flight recorders: snapshots by signal, by command, by the program, on panic and at exit; what they hold,
//! event by event; and that `tracewing list` and babeltrace2 agree about each.

mod flight;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../recorded/pilot.rs"]
mod pilot;
#[path = "../recorded/mod.rs"]
mod recorded;
mod recorder;

use flight::*;
use harness::{Json, Printed, RunExt, traceable};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use pilot::Pilot;
use recorded::{Event, list, program, recorder};
use serde_json::Value;

#[test]
fn snapshots_by_command_signal_program_and_exit_overlap() {
    let mut flight = Flight::start(&SMALL);
    let emitted = flight.numbers("emit 10000");
    assert_eq!(flight.command(), flight.path(1));
    let first = check(&flight.path(1));
    assert_ends(&first, &emitted);
    assert_full(&first);

    let emitted = flight.numbers("emit 500");
    flight.signal(libc::SIGUSR2);
    wait_for("no snapshot by signal", || flight.path(2).exists());
    let second = check(&flight.path(2));
    assert_ends(&second, &emitted);
    assert_full(&second);
    for (cpu, (from, _)) in second {
        assert!(from <= first[&cpu].1, "the snapshots do not overlap");
    }

    let emitted = flight.numbers("emit 1");
    assert_eq!(Path::new(&flight.order("snapshot")), flight.path(3));
    assert_ends(&check(&flight.path(3)), &emitted);

    let emitted = flight.numbers("emit 30000");
    let ended = flight.end();
    assert_eq!(ended.exit_status, 0);
    let reasons = ended.reasons();
    assert_eq!([reasons[0], reasons[1], reasons[3]], ["tracewing snapshot", "SIGUSR2", "exit"]);
    assert!(reasons[2].starts_with("asked for by process "), "{}", reasons[2]);
    assert_ends(&check(&ended.path(4)), &emitted);
    let reported: u64 = ended.summary["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["events"].as_u64().unwrap())
        .sum();
    let listed: usize = (1..=4).map(|number| list(&ended.path(number)).len()).sum();
    assert_eq!(reported, listed as u64);
    assert_eq!(ended.summary["events"], reported);
    // All in one view: traces of their own, which repeat each other.
    assert_eq!(list(&ended.folder.path().join("t")).len(), listed);
    let entries = std::fs::read_dir(ended.folder.path().join("t")).unwrap().count();
    assert_eq!(entries, 4, "something else was left in the folder");
}

/// A snapshot that the user has taken away himself is not one that was removed.
#[test]
fn snapshots_may_be_moved_away() {
    let mut flight = Flight::start(&[&SMALL[..], &["--keep", "2"]].concat());
    let moved = flight.folder.path().join("moved");
    for number in 1..=3 {
        flight.numbers("emit 100");
        assert_eq!(flight.command(), flight.path(number));
        if number == 1 {
            std::fs::rename(flight.path(1), &moved).unwrap();
        }
    }
    let ended = flight.end();
    check(&moved);
    let snapshots = ended.summary["snapshots"].as_array().unwrap();
    let removed: Vec<bool> = snapshots.iter().map(|one| one["is_removed"] == true).collect();
    assert_eq!(removed, [false, true, false, false], "{snapshots:?}");
    assert_eq!([2, 3, 4].map(|number| ended.path(number).exists()), [false, true, true]);
    let totals = &ended.summary["snapshot_totals"];
    assert_eq!((&totals["taken"], &totals["removed"]), (&4.into(), &1.into()), "{totals}");
    assert_eq!(totals["removed_events"], snapshots[1]["events"]);
    assert_eq!(totals["removed_bytes"], snapshots[1]["bytes"]);
    let last = std::fs::read(ended.path(4).join("tracewing.json")).unwrap();
    let last: serde_json::Value = serde_json::from_slice(&last).unwrap();
    let about = (&last["snapshot"]["number"], &last["snapshot"]["removed"]);
    assert_eq!(about, (&4.into(), &0.into()), "the second one goes after that");
    let notes = ended.summary["notes"].to_string();
    assert!(!notes.contains("cannot be removed"), "{notes}");
}

#[test]
fn what_the_buffers_never_had_to_give_up_is_in_every_snapshot() {
    let mut flight = Flight::start(&[]);
    for round in 1..=3 {
        let emitted = flight.numbers("emit 1000");
        flight.command();
        let found = check(&flight.path(round));
        assert_ends(&found, &emitted);
        assert!(found.values().all(|(first, _)| *first == 1));
    }
    flight.end();
}

#[test]
fn snapshots_of_writers_at_full_speed_have_no_gap() {
    for options in [&[][..], &["--clock", "mono"], &["--buffers", "process"]] {
        // With protocol `Smp` a thread that loses its CPU in the middle of an event keeps the rest of its
        // sub-buffer from a snapshot, which does not wait for it for long.
        let unfinished = if options.contains(&"mono") { SUB_BUFFER / EVENT } else { 0 };
        let mut flight = Flight::start(&[&SMALL[..], options].concat());
        flight.order("fly");
        for _ in 0..8 {
            let emitted = flight.numbers("count");
            let trace = flight.command();
            let found = suffixes(&list(&trace));
            compare_with_babeltrace2(&trace);
            if emitted.iter().all(|number| *number > 0) {
                assert_eq!(found.len(), emitted.len(), "{options:?}: a CPU is missing");
                let mut lasts = found.values().map(|(_, last)| *last).zip(&emitted);
                let reported =
                    || format!("{options:?}: {found:?} after {emitted:?}: {}", description(&trace));
                assert!(lasts.all(|(last, before)| last + unfinished >= *before), "{}", reported());
            }
        }
        let emitted = flight.numbers("land");
        assert_ends(&suffixes(&list(&flight.command())), &emitted);
        flight.end();
    }
}

#[test]
fn a_panic_leaves_a_snapshot_with_the_panic_as_its_end() {
    let mut flight = Flight::start(&SMALL);
    let emitted = flight.numbers("emit 5000");
    assert_eq!(flight.order("panic"), "panicked");
    let events = list(&flight.path(1));
    let last = events.last().unwrap();
    assert_eq!(last.name, "tracewing:panic");
    assert_eq!(last.payload["message"], "mayday");
    assert!(last.payload["file"].as_str().unwrap().ends_with("pilot.rs"), "{}", last.payload);
    assert_ends(&suffixes(&events), &emitted);
    assert_eq!(flight.order("panic"), "panicked");
    let ended = flight.end();
    let reasons = ended.reasons();
    assert!(reasons[0].starts_with("panic in process "), "{reasons:?}");
    assert_eq!(reasons[1..], ["exit"], "one snapshot for the first panic");
}

#[test]
fn only_what_was_chosen_leads_to_a_snapshot() {
    let mut flight = Flight::start(&["--snapshot-on", "exit"]);
    flight.numbers("emit 10");
    assert_eq!(flight.order("panic"), "panicked");
    let ended = flight.end();
    assert_eq!(ended.reasons(), ["exit"]);

    let mut flight = Flight::start(&["--snapshot-on", "sigusr2", "--snapshot-on", "panic"]);
    flight.numbers("emit 10");
    flight.signal(libc::SIGUSR2);
    wait_for("no snapshot by signal", || flight.path(1).exists());
    flight.order("panic");
    let ended = flight.end();
    assert_eq!(ended.reasons().len(), 2, "{:?}", ended.reasons());

    let mut flight = Flight::start(&["--snapshot-on", "panic"]);
    flight.numbers("emit 10");
    let ended = flight.end();
    assert!(ended.reasons().is_empty());
    assert!(!ended.folder.path().join("t").exists(), "a recording without a snapshot leaves nothing");
}

#[test]
fn a_killed_program_leaves_all_that_it_emitted() {
    for env in [&[][..], &["GLIBC_TUNABLES=glibc.pthread.rseq=0"]] {
        let mut flight = Flight::start_in(&["--flight-recorder"], &SMALL, env);
        let emitted = flight.numbers("emit 3000");
        flight.order("abort");
        let ended = flight.ended();
        assert_eq!((ended.exit_status, ended.reasons()), (128 + libc::SIGKILL, vec!["exit"]));
        assert_ends(&check(&ended.path(1)), &emitted);
    }
}

#[test]
fn buffers_of_processes_that_have_ended_are_still_in_the_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("for i in 1 2 3; do echo 'emit 7' | {}; done", program("pilot").display());
    let options = ["--flight-recorder", "--buffers", "process"];
    let output = recorder(folder.path(), &options).args(["sh", "-c", &script]).succeeds();
    let trace = folder.path().join("t/snapshot-1");
    let mut by_thread = BTreeMap::<i64, u64>::new();
    list(&trace).iter().filter(|event| event.name == "pilot:count").for_each(|event| {
        *by_thread.entry(event.tid).or_default() += 1;
    });
    // Each thread's last number, of three processes.
    let reported = output.text();
    let reported: Vec<u64> =
        reported.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(reported.len() >= 3);
    assert_eq!(by_thread.into_values().collect::<Vec<_>>(), reported);
    compare_with_babeltrace2(&trace);
}

#[test]
fn kernel_and_user_events_are_in_one_snapshot() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut record = harness::tracewing();
    record.current_dir(folder.path()).args(["record", "--flight-recorder", "--format", "json", "-o", "t"]);
    record.args(SMALL).arg("--").arg(program("pilot"));
    record.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut flight = Flight(Pilot::start(folder, &mut record));
    let mut last = None;
    for round in 1..=2 {
        let emitted = flight.numbers("emit 4000");
        let trace = flight.command();
        assert_eq!(trace, flight.path(round));
        assert_ends(&check(&trace), &emitted);
        assert_ends_at_its_moment(&trace);
        last = Some(trace);
    }
    let last = last.unwrap();
    let names: Vec<String> = list(&last).into_iter().map(|event| event.name).collect();
    for name in ["sched_switch", "syscall_entry_write", "pilot:count"] {
        assert!(names.iter().any(|other| other == name), "no {name}");
    }
    assert_later_events_are_doubted(&last);
    let ended = flight.end();
    let kernel = ended.summary["snapshots"][2]["kernel_streams"].as_array().unwrap();
    assert!(kernel.iter().any(|stream| stream["events"].as_u64().unwrap() > 0));
    let instances = Path::new("/sys/kernel/tracing/instances");
    assert!(std::fs::read_dir(instances).is_ok());
}
