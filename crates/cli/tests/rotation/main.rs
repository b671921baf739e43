//! Rotations: archives that are complete traces at once, and together the recording, to the event.

mod command;
#[path = "../harness/mod.rs"]
mod harness;
mod kernel;
#[path = "../recorded/pilot.rs"]
mod pilot;
#[path = "../recorded/mod.rs"]
mod recorded;
mod rotated;
mod samples;
mod tasks;
mod trouble;

use harness::{Printed, RunExt, run, traceable};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use pilot::Pilot;
use recorded::{Event, Recording, list, program, recorder};
use rotated::*;
use serde_json::Value;

/// Buffers that a program at full speed fills.
const SMALL: [&str; 4] = ["--sub-buffers", "2", "--sub-buffer-size", "4K"];

#[test]
fn each_archive_has_what_was_emitted_since_the_one_before() {
    for options in [&[][..], &["--clock", "mono"], &["--buffers", "user"]] {
        let mut rotated = Rotated::start(options);
        let mut before: Vec<u64> = Vec::new();
        let mut all = Vec::new();
        for round in 1..=4 {
            let emitted = rotated.numbers("emit 3000");
            let archive = rotated.rotate();
            let found = check(&archive);
            before.resize(emitted.len(), 0);
            let expected = before.iter().zip(&emitted).map(|(from, to)| (from + 1..=*to).collect::<Vec<_>>());
            assert!(found.numbers.values().cloned().eq(expected), "round {round}, {options:?}");
            assert_eq!(archives(&rotated.trace()).iter().position(|path| *path == archive), Some(round - 1));
            before = emitted;
            all.push(found);
        }
        let emitted = rotated.numbers("emit 10");
        let recording = rotated.end();
        let paths = archives(&recording.trace());
        assert_eq!(paths.len(), 5, "the end of the recording completes the last archive");
        all.push(check(&paths[4]));
        let (found, lost) = assert_continuous(&all);
        let announced: u64 = all.iter().map(|found| found.announced).sum();
        assert_eq!((found - announced, lost), (emitted.iter().sum(), 0));
        assert_eq!(recording.summary["events"], found, "without those of the state dumps");
        whole_is_the_sum(&recording, &paths);
    }
}

/// The recording as a whole: its description lists the archives, and its listing is theirs, one after the
/// other.
fn whole_is_the_sum(recording: &Recording, archives: &[PathBuf]) {
    let whole = description(&recording.trace());
    assert_eq!(whole["state"], "complete");
    let listed = whole["archives"].as_array().unwrap();
    assert_eq!(listed.len(), archives.len());
    for (at, (listed, path)) in listed.iter().zip(archives).enumerate() {
        let own = description(path);
        assert_eq!((&listed["number"], &own["archive"]["number"]), (&(at + 1).into(), &(at + 1).into()));
        assert_eq!(recording.trace().join(listed["folder"].as_str().unwrap()), *path);
        let sum = |what: &str| {
            let streams = ["user_streams", "kernel_streams", "profile_streams"];
            let streams = streams.iter().flat_map(|all| own[all].as_array().into_iter().flatten());
            streams.map(|stream| stream[what].as_u64().unwrap_or(0)).sum::<u64>()
        };
        for what in ["events", "state_events", "lost_events"] {
            assert_eq!(listed[what], sum(what), "{what} of {}", path.display());
        }
        assert_eq!(listed["begin_cycles"], own["archive"]["begin_cycles"]);
        assert_eq!(listed["end_cycles"], own["clock"]["stopped_cycles"]);
    }
    let stamps = |events: Vec<Event>| {
        let mut stamps: Vec<u64> = events.iter().map(|event| event.stamp).collect();
        stamps.sort_unstable();
        stamps
    };
    let one_by_one = stamps(archives.iter().flat_map(|path| list(path)).collect());
    assert!(stamps(list(&recording.trace())) == one_by_one, "the whole is not what the archives have");
    run(&["threads", recording.trace().to_str().unwrap()]).text();
}

#[test]
fn writers_at_full_speed_lose_nothing_uncounted_between_archives() {
    for options in [&SMALL[..], &[&SMALL[..], &["--clock", "mono"]].concat()] {
        let mut rotated = Rotated::start(options);
        rotated.order("fly");
        let rotations: Vec<PathBuf> = (0..6).map(|_| rotated.rotate()).collect();
        let emitted: u64 = rotated.numbers("land").iter().sum();
        // While the last one is written.
        let mut all: Vec<Found> = rotations.iter().map(|path| check(path)).collect();
        let recording = rotated.end();
        let paths = archives(&recording.trace());
        all.push(check(paths.last().unwrap()));
        assert_eq!(all.len(), paths.len());
        let (found, lost) = assert_continuous(&all);
        let threads = recording.summary["user_streams"].as_array().unwrap().len() as u64 - 1;
        assert_eq!(
            found + lost,
            emitted + threads,
            "{options:?}: read + lost = emitted, and one announcement each"
        );
        assert_eq!((&recording.summary["events"], recording.lost()), (&found.into(), lost));
        assert!(lost > 0, "{options:?}: nothing was lost");
    }
}

#[test]
fn archives_end_at_a_size() {
    let mut rotated = Rotated::start(&["--rotate-size", "64K"]);
    for round in 1..=3 {
        // 28 bytes each, so that every round fills an archive.
        rotated.numbers("emit 5000");
        wait_for("no rotation by size", || complete(&rotated.trace()) >= round);
    }
    let recording = rotated.end();
    let all: Vec<Found> = archives(&recording.trace()).iter().map(|path| check(path)).collect();
    assert!(all.len() >= 4, "{}", all.len());
    assert_continuous(&all);
    let reasons = description(&recording.trace())["archives"].as_array().unwrap().clone();
    assert!(reasons.iter().rev().skip(1).all(|archive| archive["reason"] == "--rotate-size"), "{reasons:?}");
    assert_eq!(reasons.last().unwrap()["reason"], "end of the recording");
}

#[test]
fn archives_end_after_a_time_even_when_nothing_happens() {
    let rotated = Rotated::start(&["--rotate-every", "1"]);
    wait_for("no rotation by time", || complete(&rotated.trace()) >= 2);
    let recording = rotated.end();
    let all: Vec<Found> = archives(&recording.trace()).iter().map(|path| check(path)).collect();
    let (found, lost) = assert_continuous(&all);
    assert_eq!((&recording.summary["events"], recording.lost()), (&found.into(), lost));
}

/// Each request gets an archive that is complete, with all that was emitted before.
#[test]
fn rotations_at_the_same_time_are_all_answered() {
    let mut rotated = Rotated::start(&[]);
    let emitted = rotated.numbers("emit 20000");
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..4).map(|_| scope.spawn(|| rotated.rotate())).collect();
        askers.into_iter().map(|asker| asker.join().unwrap()).collect()
    });
    let all: Vec<Found> = archives(&rotated.trace())
        .iter()
        .filter(|path| paths.contains(path))
        .map(|path| check(path))
        .collect();
    let (found, lost) = assert_continuous(&all);
    let announced: u64 = all.iter().map(|found| found.announced).sum();
    assert_eq!((found - announced, lost), (emitted.iter().sum(), 0));
    rotated.end();
}

/// A listing that follows the recording has each event once, though the first archive is moved under it.
#[test]
fn a_recording_is_followed_from_archive_to_archive() {
    let mut rotated = Rotated::start(&["--flush", "1"]);
    rotated.numbers("emit 10");
    wait_for("nothing is written", || complete_events(&rotated.trace()) > 0);
    let mut follow = harness::tracewing();
    follow.args(["list", "--follow"]).arg(rotated.trace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut follow = follow.spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut listed = 0;
    for _ in 0..3 {
        let emitted = rotated.numbers("emit 10");
        // Each round is listed before its archive is complete.
        while listed < emitted.iter().sum::<u64>() {
            listed += u64::from(lines.next().unwrap().unwrap().contains("pilot:count"));
        }
        rotated.rotate();
    }
    let emitted = rotated.numbers("emit 10");
    let _recording = rotated.end();
    listed += lines.filter(|line| line.as_ref().unwrap().contains("pilot:count")).count() as u64;
    let ended = follow.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", ended.notes());
    assert_eq!(listed, emitted.iter().sum::<u64>(), "{}", ended.notes());
}

/// How many events are in the files of a recording that was not rotated, as far as they can be read.
fn complete_events(trace: &Path) -> usize {
    let output = harness::of(trace, &["list"]).ran();
    output.text().lines().filter(|line| line.contains("pilot:count")).count()
}

/// How many archives the recording lists by now, if it has begun.
pub fn complete(trace: &Path) -> usize {
    let begun = trace.join("tracewing.json").exists();
    if begun { description(trace)["archives"].as_array().map_or(0, Vec::len) } else { 0 }
}

/// Waits until a condition holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
