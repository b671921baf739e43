//! Buffers in files (`--buffers-in`): program and recorder are killed, and every event that was emitted is in
//! the trace folder or in what `tracewing recover` gets out of the files. Garbage in the files is survived.

mod buffers;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../recorded/mod.rs"]
mod recorded;

use buffers::*;
use harness::{Printed, RunExt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Event, list, program, recorder};
use serde_json::Value;

#[test]
fn every_event_of_a_killed_recording_is_in_the_trace_or_in_the_buffers() {
    let rseq = &["GLIBC_TUNABLES=glibc.pthread.rseq=0"][..];
    let kinds =
        [(&[][..], &[][..]), (&["--buffers", "process"], &[]), (&["--clock", "mono"], &[]), (&[], rseq)];
    for (round, (options, env)) in kinds.into_iter().cycle().take(8).enumerate() {
        // Late enough that the recorder had nothing to do meanwhile, or in the middle of its work.
        let flush = if round % 2 == 0 { "3600000" } else { "10" };
        let mut recorded = Recorded::start(&[options, &["--flush", flush]].concat(), env);
        recorded.numbers("emit 1000");
        let emitted = recorded.numbers("emit 30000");
        recorded.kill(round % 4 < 2);
        let output = recover(recorded.folder.path(), &["-o", "r"]);
        let stderr = output.notes();
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains("events recovered into r") && stderr.contains("/t\n"), "{stderr}");
        compare_with_babeltrace2(&recorded.path("r"));

        let written = numbers(&list(&recorded.path("t")));
        let rest = numbers(&list(&recorded.path("r")));
        let cpus: BTreeSet<u64> = written.keys().chain(rest.keys()).copied().collect();
        assert_eq!(cpus.len(), emitted.len());
        for (cpu, last) in cpus.into_iter().zip(&emitted) {
            let none = Vec::new();
            let (first, second) = (written.get(&cpu).unwrap_or(&none), rest.get(&cpu).unwrap_or(&none));
            assert!(first.iter().copied().eq(1..=first.len() as u64), "{options:?}: the trace has gaps");
            let from = second.first().copied().unwrap_or(last + 1);
            // A packet that was written and not yet released is in both.
            assert!(from <= first.len() as u64 + 1, "{options:?}: {} to {from} are missing", first.len());
            let both = first.len() as u64 + 1 - from;
            assert!(both <= PACKET, "{options:?}: {both} events are in both");
            assert!(
                second.iter().copied().eq(from..=*last),
                "{options:?}: {from} to {last} are not all there"
            );
        }

        let output = recover(recorded.folder.path(), &["--all", "-o", "all"]);
        assert!(output.status.success());
        let all = numbers(&list(&recorded.path("all")));
        for (cpu, rest) in &rest {
            assert!(all[cpu].ends_with(rest));
            assert!(all[cpu].windows(2).all(|pair| pair[0] + 1 == pair[1]));
        }
        compare_with_babeltrace2(&recorded.path("all"));
    }
}

#[test]
fn the_buffers_of_a_killed_flight_recorder_hold_the_newest_events() {
    for (options, env) in [(&[][..], &[][..]), (&["--clock", "mono"], &[])] {
        let flight = ["--flight-recorder"];
        let mut recorded = Recorded::start(&[&flight, &SMALL[..], options].concat(), env);
        let emitted = recorded.numbers("emit 20000");
        recorded.kill(false);
        let output = recover(recorded.folder.path(), &[]);
        assert!(output.status.success(), "{}", output.notes());
        let trace = recorded.path("b-recovered");
        let found = numbers(&list(&trace));
        assert_eq!(found.len(), emitted.len());
        for (found, last) in found.values().zip(emitted) {
            assert!(found.iter().copied().eq(last + 1 - found.len() as u64..=last), "{options:?}");
            assert!(found.len() * 38 > 3 * (16 << 10), "only {} events were kept", found.len());
        }
        compare_with_babeltrace2(&trace);
        let description = fs::read(trace.join("tracewing.json")).unwrap();
        let description: Value = serde_json::from_slice(&description).unwrap();
        assert_eq!(
            (&description["state"], &description["buffers"]["overwrite"]),
            (&"recovered".into(), &true.into())
        );
    }
}

/// Writers and recorder die at any moment, in the middle of an event or of a sub-buffer.
#[test]
fn a_process_killed_at_full_speed_leaves_a_gap_free_end() {
    for round in 0..12 {
        let options = [&["--flight-recorder"][..], &["--flight-recorder", "--clock", "mono"]][round % 2];
        let mut recorded = Recorded::start(&[options, &SMALL].concat(), &[]);
        recorded.order("fly");
        std::thread::sleep(Duration::from_millis(3 * round as u64));
        let before = recorded.numbers("count");
        recorded.kill(round % 4 < 2);
        let output = recover(recorded.folder.path(), &["-o", "r"]);
        assert!(output.status.success(), "{}", output.notes());
        let found = numbers(&list(&recorded.path("r")));
        compare_with_babeltrace2(&recorded.path("r"));
        for (found, before) in found.values().zip(&before) {
            assert!(found.windows(2).all(|pair| pair[0] + 1 == pair[1]), "round {round}: a gap");
            assert!(found.last().unwrap() >= before, "round {round}: an emitted event is missing");
        }
        if before.iter().all(|number| *number > 0) {
            assert_eq!(found.len(), before.len(), "round {round}");
        }
    }
}

#[test]
fn a_recording_that_ends_well_empties_its_folder() {
    for options in [&[][..], &["--flight-recorder"], &["--buffers", "process"]] {
        let mut recorded = Recorded::start(options, &[]);
        let emitted = recorded.numbers("emit 10");
        let names: Vec<_> = fs::read_dir(recorded.path("b")).unwrap().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let Recorded { folder, recorder, orders, .. } = recorded;
        drop(orders);
        let output = recorder.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(!folder.path().join("b").exists());
        let events =
            list(&folder.path().join("t")).iter().filter(|event| event.name == "pilot:count").count();
        assert_eq!(events as u64, emitted.iter().sum::<u64>());
    }
}

#[test]
fn what_cannot_be_recorded_or_recovered_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let error = |output: Output| {
        assert!(!output.status.success());
        output.notes()
    };
    let path = folder.path();
    assert!(error(recover(path, &[])).contains("cannot read b"));
    fs::create_dir(path.join("b")).unwrap();
    assert!(error(recover(path, &[])).contains("b has no buffers in it"));
    fs::write(path.join("b/uid0.buffer"), "short").unwrap();
    assert!(
        error(recover(path, &[])).contains("no buffer in b can be read: uid0.buffer: buffer region smaller")
    );
    fs::write(path.join("b/uid0.buffer"), vec![0; 1 << 20]).unwrap();
    assert!(error(recover(path, &[])).contains("not a tracewing buffer region"));
    assert!(!path.join("b-recovered").exists());

    let mut record = harness::tracewing();
    record.current_dir(path).args(["record", "--no-kernel", "--buffers-in", "b", "-o", "t", "true"]);
    assert!(error(record.ran()).contains("b exists and is not empty"));
    assert!(!path.join("t").exists());
}

/// A file system that is too small: the program runs, is not recorded, and the user gets a message.
#[test]
fn a_disk_without_room_for_the_buffers_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let room = rustix::fs::statvfs(folder.path()).unwrap();
    if room.f_bavail * room.f_frsize > 256 << 30 {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Listed("large disk"),
            "the disk has more than 256 GiB left",
        );
    }
    let options = ["--buffers-in", "b", "--sub-buffers", "256", "--sub-buffer-size", "1G"];
    let output = recorder(folder.path(), &options).arg(program("pilot")).ran();
    let stderr = output.notes();
    assert_eq!(output.status.code(), Some(1), "the program succeeds, its recording does not: {stderr}");
    assert!(
        stderr.contains("is not recorded: cannot allocate b/") && stderr.contains("No space"),
        "{stderr}"
    );
    assert!(!folder.path().join("b").exists());
}

/// The files of a real recording, damaged in many ways within bounded time: any of them gives events or an
/// error.
#[test]
fn damaged_files_give_less_or_an_error() {
    let mut recorded = Recorded::start(&[&SMALL[..], &["--flight-recorder"]].concat(), &[]);
    recorded.numbers("emit 3000");
    recorded.kill(true);
    let files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(recorded.path("b"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    let whole = list_of(recorded.folder.path(), "whole").unwrap().len();
    let (mut state, begin) = (0x9e37_79b9_7f4a_7c15_u64, Instant::now());
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below.max(1)
    };
    let (mut with_events, mut rounds) = (0, 0);
    while rounds < 20 || rounds < 150 && begin.elapsed() < Duration::from_secs(20) {
        rounds += 1;
        for (path, bytes) in &files {
            let mut bytes = bytes.clone();
            for _ in 0..random(20) {
                let at = random(bytes.len() as u64) as usize;
                // Often in the words that steer, sometimes whole stretches.
                let at = if random(2) == 0 { at % 20_000.min(bytes.len()) } else { at };
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = random(256) as u8),
                    2 => bytes[at..].iter_mut().take(4096).for_each(|byte| *byte = 0),
                    _ if random(8) == 0 => bytes.truncate(at),
                    _ => {}
                }
                if bytes.is_empty() {
                    break;
                }
            }
            fs::write(path, bytes).unwrap();
        }
        let Some(events) = list_of(recorded.folder.path(), "damaged") else { continue };
        with_events += 1;
        // Fields may be anything. How many there are is bounded by the bytes, of which one event takes 16.
        assert!(events.len() <= 3 * whole, "events out of nowhere: {} of {whole}", events.len());
    }
    assert!(with_events > rounds / 4, "{with_events} of {rounds}");
}

/// What is recovered from `b`, as long as that is no error; a crash is a failure.
fn list_of(folder: &Path, name: &str) -> Option<Vec<Event>> {
    let trace = folder.join(name);
    let _ = fs::remove_dir_all(&trace);
    let output = recover(folder, &["--all", "-o", name]);
    let stderr = output.notes();
    assert!(matches!(output.status.code(), Some(0 | 1)) && !stderr.contains("panicked"), "{stderr}");
    if !output.status.success() {
        assert!(stderr.contains("error"), "{stderr}");
        return None;
    }
    Some(list(&trace))
}
