//! A server under load that is attached to and left again and again: the longest stop of each recording,
//! whether requests fail, and whether anything is left in the server.

use super::recording::record;
use crate::compare::figures::percentile;
use crate::compare::process::Worker;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Length of a recording.
const SECONDS: &str = "0.02";
/// Recordings after which the server has what stays in it: pages, the allocator's memory.
const FIRST: usize = 20;
/// How long an agent's thread may take to end after its recorder.
const ENDING: Duration = Duration::from_secs(10);
/// Longest that all recordings may take.
const MOST: Duration = Duration::from_secs(600);

/// What a process has.
#[derive(Clone, Copy, Debug)]
pub struct Belongings {
    pub threads: usize,
    pub descriptors: usize,
    pub mappings: usize,
    /// Resident memory, KiB.
    pub resident: u64,
}

pub struct Served {
    /// Longest stops, ns, in ascending order.
    pub stops: Vec<u32>,
    /// Recordings in which no thread was stopped, since none slept.
    pub unstopped: usize,
    /// Events of the server's own, all recordings together.
    pub events: u64,
    pub lost: u64,
    pub answered: u64,
    pub failed: u64,
    /// Before the first recording, after some, and after all.
    pub belongings: [Belongings; 3],
    pub seconds: f64,
}

impl Served {
    /// A share of the stops is no longer, ms.
    pub fn stop(&self, share: f64) -> f64 {
        f64::from(percentile(&self.stops, share)) / 1e6
    }
}

impl Belongings {
    fn of(pid: u32) -> Result<Self> {
        let process = format!("/proc/{pid}");
        let count = |folder: &str| fs::read_dir(format!("{process}/{folder}")).map(|entries| entries.count());
        let status = fs::read_to_string(format!("{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Ok(Self {
            threads: count("task")?,
            descriptors: count("fd")?,
            mappings: fs::read_to_string(format!("{process}/maps"))?.lines().count(),
            resident: line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0),
        })
    }
}

/// Records a server so many times.
pub fn measure(tracewing: &Path, worker: &Path, folder: &Path, count: usize) -> Result<Served> {
    let mut server = Worker::start("server", &mut Command::new(worker))?;
    let [pid] = server.order::<u32, 1>("serve 0")?;
    // The load begins.
    std::thread::sleep(Duration::from_secs(1));
    let before = Belongings::of(pid)?;
    let (mut stops, mut unstopped, mut events, mut lost) = (Vec::new(), 0, 0, 0);
    let mut early = before;
    let begin = Instant::now();
    for nth in 0..count {
        let output = record(tracewing, &[pid], folder).args(["--no-kernel", "--for", SECONDS]).output();
        let output = output.context("cannot start tracewing")?;
        let notes = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tracewing record failed: {}", notes.trim());
        let summary: Value = serde_json::from_str(notes.lines().next_back().unwrap_or_default())?;
        match summary["longest_stop_ns"].as_u64() {
            Some(stop) => stops.push(u32::try_from(stop).unwrap_or(u32::MAX)),
            None => unstopped += 1,
        }
        events += summary["events"].as_u64().unwrap_or(0);
        lost += summary["lost_events"].as_u64().unwrap_or(0);
        fs::remove_dir_all(folder)?;
        if nth + 1 == FIRST.min(count) {
            early = settled(pid, before)?;
        }
        if begin.elapsed() > MOST {
            eprintln!("bench: {} recordings of {count}, since they take longer than planned", nth + 1);
            break;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let after = settled(pid, before)?;
    let [answered, failed] = server.order("served 0")?;
    server.finish_well()?;
    stops.sort_unstable();
    Ok(Served {
        stops,
        unstopped,
        events,
        lost,
        answered,
        failed,
        belongings: [before, early, after],
        seconds,
    })
}

/// What it has once the agent's thread has ended.
fn settled(pid: u32, before: Belongings) -> Result<Belongings> {
    let begin = Instant::now();
    loop {
        let now = Belongings::of(pid)?;
        let is_left = now.threads > before.threads || now.descriptors > before.descriptors;
        if !is_left || begin.elapsed() > ENDING {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
