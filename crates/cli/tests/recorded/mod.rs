//! Shared by tests of recordings: building the programs, recording them, and comparing the recordings with
//! what the programs report.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::harness::{Printed, RunExt};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::BufRead;
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// As [`tracewing_testing::build`].
pub fn build(arguments: &[&str]) -> PathBuf {
    tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), arguments)
}

/// The program of `crates/tracewing/tests/programs` with this name.
pub fn program(name: &str) -> PathBuf {
    build(&["-p", "tracewing", "--example", name]).join("examples").join(name)
}

/// `tracewing record` of user events into the folder `t`, in a process group of its own.
pub fn recorder(folder: &Path, options: &[&str]) -> Command {
    let mut command = crate::harness::tracewing();
    command.current_dir(folder).args(["record", "--no-kernel", "--format", "json", "-o", "t"]).args(options);
    command.arg("--").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    tracewing_testing::with_default_signals(&mut command);
    command
}

/// What forked children lose until they have buffers of their own, where they need some: they do not wait for
/// them.
pub const UNREADY: &str = "forked child without buffers yet";

/// A recording that has ended.
pub struct Recording {
    pub folder: tempfile::TempDir,
    pub summary: Value,
    /// What the program printed.
    pub stdout: String,
    pub stderr: String,
}

/// Records a program to its end.
pub fn record<S: AsRef<OsStr>>(options: &[&str], command: &[S]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let child = recorder(folder.path(), options).args(command).spawn().unwrap();
    ended(folder, child)
}

/// Waits for a recorder's end.
pub fn ended(folder: tempfile::TempDir, recorder: Child) -> Recording {
    let output = recorder.wait_with_output().unwrap();
    recording(folder, output)
}

/// The same for one that writes what it says to a file.
pub fn ended_with(folder: tempfile::TempDir, recorder: Child, said: &Path) -> Recording {
    let output = recorder.wait_with_output().unwrap();
    recording(folder, Output { stderr: std::fs::read(said).unwrap(), ..output })
}

fn recording(folder: tempfile::TempDir, Output { status, stdout, stderr }: Output) -> Recording {
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(status.success(), "{status}: {stdout}\n{stderr}");
    let summary = stderr.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
    Recording { summary: summary.unwrap_or_else(|| panic!("no summary: {stderr}")), folder, stdout, stderr }
}

/// An event as `tracewing list` gives it.
pub struct Event {
    pub name: String,
    /// In cycles of the recording's clock.
    pub stamp: u64,
    pub cpu: u64,
    pub tid: i64,
    pub payload: Value,
}

impl Event {
    pub fn number(&self, field: &str) -> u64 {
        self.payload[field].as_u64().unwrap_or_else(|| panic!("{field} of {}", self.payload))
    }
}

impl Recording {
    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    /// The events of a flight recorder's only snapshot.
    pub fn snapshot(&self) -> Vec<Event> {
        let snapshots: Vec<PathBuf> =
            std::fs::read_dir(self.trace()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [snapshot] = &snapshots[..] else { panic!("{snapshots:?}") };
        list(snapshot)
    }

    pub fn lost(&self) -> u64 {
        self.summary["lost_events"].as_u64().unwrap()
    }

    pub fn reasons(&self) -> BTreeMap<&str, u64> {
        let mut reasons = BTreeMap::new();
        for loss in self.summary["losses"].as_array().unwrap() {
            *reasons.entry(loss["reason"].as_str().unwrap()).or_default() += loss["events"].as_u64().unwrap();
        }
        reasons
    }

    /// All events, after checking that the summary, stream by stream, agrees with them.
    pub fn events(&self) -> Vec<Event> {
        let events = list(&self.trace());
        let mut by_cpu = BTreeMap::new();
        events.iter().for_each(|event| *by_cpu.entry(event.cpu).or_default() += 1);
        let mut reported = BTreeMap::new();
        let mut lost = 0;
        for stream in self.summary["user_streams"].as_array().unwrap() {
            let number = |name: &str| stream[name].as_u64().unwrap();
            let state = stream["state_events"].as_u64().unwrap_or(0);
            *reported.entry(number("cpu")).or_default() += number("events") + state;
            lost += number("lost_events");
        }
        reported.retain(|_, events: &mut u64| *events > 0);
        assert_eq!(reported, by_cpu, "the summary's events by CPU, and those listed");
        assert_eq!(lost, self.lost());
        assert_eq!(self.reasons().into_values().sum::<u64>(), lost);
        events
    }

    /// Compares `tracewing list` with babeltrace2, which may warn of nothing but losses, and of those where
    /// there are any.
    pub fn compare_with_babeltrace2(&self) {
        let Ok(peer) = Command::new("babeltrace2").arg(self.trace()).output() else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Program("babeltrace2"),
                "babeltrace2 is not installed",
            );
        };
        let warnings = peer.notes();
        assert!(peer.status.success(), "{warnings}");
        let other = warnings.lines().find(|line| !line.contains("WARNING: Tracer discarded"));
        assert_eq!(other, None, "babeltrace2 warns");
        assert_eq!(warnings.is_empty(), self.lost() == 0, "{warnings}");
        let ours = tracewing_list(&self.trace(), &[]);
        assert!(ours.status.success());
        assert!(ours.stdout == peer.stdout, "tracewing list and babeltrace2 differ");
    }

    /// Counts, by place, of a program of `crates/tracewing/tests/programs` that prints them.
    pub fn counts(&self) -> BTreeMap<u64, RangeInclusive<u64>> {
        counts(&self.stdout)
    }

    /// Checks that the events that the program says it emitted are all listed or counted lost, no event twice
    /// and each task's in order. `tasks` is the number of tasks that emit, each of which is announced by one
    /// event more; `None` where that depends on chance.
    pub fn account(&self, tasks: Option<u64>) {
        let events = self.events();
        let mut listed: BTreeMap<u64, u64> = BTreeMap::new();
        let mut last = BTreeMap::new();
        for event in events.iter().filter(|event| event.name != "tracewing:thread") {
            let place = event.number("place");
            *listed.entry(place).or_default() += 1;
            let sequence = event.number("sequence");
            let before = last.insert((event.tid, place), sequence);
            assert!(
                before.is_none_or(|before| before < sequence),
                "thread {}, place {place}: {sequence}",
                event.tid
            );
        }
        let counts = self.counts();
        assert!(!counts.is_empty(), "{}", self.stdout);
        for (place, count) in &counts {
            let found = listed.remove(place).unwrap_or(0);
            let least = if self.lost() == 0 { *count.start() } else { 0 };
            assert!((least..=*count.end()).contains(&found), "place {place}: {found} listed of {count:?}");
        }
        assert!(listed.is_empty(), "events from nowhere: {listed:?}");
        let begun: u64 = counts.values().map(RangeInclusive::end).sum();
        let emitted: u64 = counts.values().map(RangeInclusive::start).sum();
        if let Some(tasks) = tasks {
            let found = events.len() as u64 + self.lost();
            let expected = emitted + tasks..=begun + tasks;
            assert!(
                expected.contains(&found),
                "{found} listed or lost, {expected:?} emitted: {}",
                self.summary
            );
        }
    }
}

/// Counts of `crates/tracewing/tests/programs`, by place: from what was emitted for sure to what was begun.
pub fn counts(stdout: &str) -> BTreeMap<u64, RangeInclusive<u64>> {
    let count = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse::<u64>());
        let mut next = || numbers.next()?.ok();
        let (place, begun, emitted) = (next()?, next()?, next()?);
        Some((place, emitted..=begun))
    };
    stdout.lines().filter_map(count).collect()
}

fn tracewing_list(trace: &Path, options: &[&str]) -> Output {
    crate::harness::tracewing().arg("list").args(options).arg(trace).ran()
}

/// All events of a trace.
pub fn list(trace: &Path) -> Vec<Event> {
    let output = tracewing_list(trace, &["--format", "json"]);
    assert!(output.status.success(), "{}", output.notes());
    let event = |line: std::io::Result<String>| {
        let mut event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        Event {
            name: event["event"].as_str().unwrap().to_owned(),
            stamp: event["cycles"].as_u64().unwrap(),
            cpu: event["packet_context"]["cpu_id"].as_u64().unwrap(),
            tid: event["common_context"]["tid"].as_i64().unwrap(),
            payload: event["payload"].take(),
        }
    };
    output.stdout.lines().map(event).collect()
}

/// What a subcommand prints that changes a recording, or asks for its state, once all programs have
/// confirmed: on a busy machine perhaps later than it waits.
pub fn confirmed(command: &str, recording: &str, options: &[&str]) -> Vec<u8> {
    let begin = Instant::now();
    loop {
        let mut tracewing = crate::harness::tracewing();
        let output = tracewing.args([command, recording]).args(options).ran();
        if output.status.success() {
            return output.stdout;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{command} {options:?}: {output:?}");
    }
}
