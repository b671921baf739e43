//! Recordings of the example server in which the server is killed at a random moment: the trace must be one
//! that babeltrace2 reads without complaint, and in which it finds what `tracewing list` finds.

use crate::steps::{cargo, target_folder};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Options of the recorder, used in turn.
const WAYS: [&[&str]; 5] = [
    &[],
    &["--buffers", "process"],
    &["--sub-buffer-size", "4K", "--sub-buffers", "2"],
    &["--on-full", "overwrite", "--sub-buffer-size", "4K", "--sub-buffers", "4"],
    &["--on-full", "overwrite", "--buffers", "process", "--sub-buffer-size", "16K", "--sub-buffers", "2"],
];

/// Records and kills for `length`.
pub fn run(length: Duration) -> Result<()> {
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "shop"])?;
    let target = target_folder()?;
    let (tracewing, shop) = (target.join("release/tracewing"), target.join("release/shop"));
    let trace = target.join("soak-trace");
    let (begin, mut rounds, mut events) = (Instant::now(), 0, 0);
    while begin.elapsed() < length {
        if trace.exists() {
            fs::remove_dir_all(&trace).with_context(|| format!("cannot remove {}", trace.display()))?;
        }
        let way = WAYS[rounds % WAYS.len()];
        let recorder = Command::new(&tracewing)
            .args(["record", "--no-kernel", "-o"])
            .arg(&trace)
            .args(way)
            .arg("--")
            .arg(&shop)
            .args(["--seconds", "60"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start tracewing")?;
        // Not at the same moment each time.
        let moment = Duration::from_micros(100_000 + (begin.elapsed().as_nanos() as u64 * 7919) % 900_000);
        let killed = kill_child(recorder, moment);
        let count = killed.and_then(|()| compare(&tracewing, &trace));
        events += count.with_context(|| format!("round {rounds}, record {}", way.join(" ")))?;
        rounds += 1;
    }
    println!("{rounds} servers killed, {events} events, every trace read by babeltrace2");
    Ok(())
}

/// Kills what the recorder has started, that long after it did, and waits for the recorder.
fn kill_child(mut recorder: Child, moment: Duration) -> Result<()> {
    let killed = child_of(recorder.id()).and_then(|_| {
        std::thread::sleep(moment);
        // The first one may have been a short process of the recorder's own.
        let child = child_of(recorder.id())?;
        let status = Command::new("kill").args(["-9", &child]).status().context("cannot start kill")?;
        ensure!(status.success(), "cannot kill process {child}");
        Ok(())
    });
    if killed.is_err() {
        let _ = recorder.kill();
    }
    recorder.wait().context("cannot wait for tracewing")?;
    killed
}

/// The id of the recorder's child, once there is one.
fn child_of(recorder: u32) -> Result<String> {
    let path = format!("/proc/{recorder}/task/{recorder}/children");
    for _ in 0..1000 {
        let children = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("the recorder has started nothing")
}

/// Compares what the two readers find; gives the number of events.
fn compare(tracewing: &Path, trace: &Path) -> Result<usize> {
    let babeltrace = Command::new("babeltrace2").arg(trace).output().context("cannot start babeltrace2")?;
    let complaints = String::from_utf8_lossy(&babeltrace.stderr);
    // Losses are among its warnings.
    let complaint = complaints.lines().find(|line| !line.contains("discarded"));
    if let (false, _) | (_, Some(_)) = (babeltrace.status.success(), complaint) {
        bail!("babeltrace2 complains about {}: {complaints}", trace.display());
    }
    let own = Command::new(tracewing).arg("list").arg(trace).output().context("cannot start tracewing")?;
    let complaint = String::from_utf8_lossy(&own.stderr);
    ensure!(own.status.success(), "tracewing list fails: {complaint}");
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let (theirs, ours) = (lines(&babeltrace.stdout), lines(&own.stdout));
    ensure!(theirs == ours, "babeltrace2 finds {theirs} events in {}, tracewing {ours}", trace.display());
    Ok(ours)
}
