//! `bench record`: what it costs a program to record one event, beside the same event with LTTng-UST and beside one
//! `rdtsc`.
//!
//! Everything runs on one CPU, in turn, burst by burst: a burst of `rdtsc`, one of tracewing, one of LTTng-UST, and so
//! on. A burst fits into the buffers, and its recorder has drained them before the next, so that what is measured is a
//! recorded event and never a lost one; the trace is counted afterwards. A round's figure is the median of its bursts,
//! of the thread's CPU time, so that other programs on the machine do not count. Ratios are taken round by round.

use crate::figures::{Rounds, median};
use crate::lttng::Lttng;
use crate::process::{Worker, measuring_cpu};
use crate::report::{self, Row};
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What `bench record` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often everything is measured
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
    /// The folder of LTTng's C program; without it LTTng is left out
    #[arg(long)]
    lttng: Option<PathBuf>,
}

/// What is measured: the protocol's name, what a reader is told, and the size of an event in tracewing's buffer, in
/// bytes (0 where nothing is recorded).
const VARIANTS: &[(&str, &str, u64)] = &[
    ("rdtsc", "rdtsc", 0),
    ("two_u64", "tracewing, two u64", 28),
    ("ordered", "tracewing, two u64, ordered", 28),
    ("bytes16", "tracewing, 16 bytes", 28),
    ("bytes64", "tracewing, 64 bytes", 76),
    ("bytes256", "tracewing, 256 bytes", 268),
    ("string", "tracewing, string of 20 bytes", 33),
];

/// LTTng's name in the table.
const LTTNG: &str = "LTTng-UST, two u64";

/// Bytes that a burst may write: a quarter of the buffer's 4 sub-buffers of 1 MiB, which is also what LTTng gets. It
/// leaves room where the recorder comes late.
const BURST_BYTES: u64 = 1 << 20;

/// Bursts in a round: 48 bursts of 37,449 events are 1.8 million.
const BURSTS: u32 = 48;

/// How often the recorder drains, and how long to wait after a burst for it to have done so.
const FLUSH_MS: u64 = 10;
const DRAIN: Duration = Duration::from_millis(5 * FLUSH_MS);

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let cpu = measuring_cpu()?;
    let lttng =
        options.lttng.as_deref().map(|sources| Lttng::prepare(sources, scratch.path())).transpose()?;
    let mut peer = lttng.as_ref().map(|lttng| lttng.worker(cpu)).transpose()?;
    let trace = scratch.path().join("trace");
    let mut own = start_own(&options.tracewing, &trace, cpu)?;

    let mut rounds: HashMap<&str, Rounds> = HashMap::new();
    let mut emitted = 0;
    // The first round touches every page of the buffers and is not counted.
    for round in 0..=options.rounds {
        let (figures, events) = measure_round(&mut own, peer.as_mut())?;
        emitted += events;
        if round > 0 {
            for (name, figure) in figures {
                rounds.entry(name).or_default().0.push(figure);
            }
        }
    }
    let status = own.finish()?;
    ensure!(status.success(), "tracewing record ended with {status}");
    if let (Some(lttng), Some(peer)) = (&lttng, peer) {
        ensure!(lttng.has_recorded(&scratch.path().join("snapshot"))?, "LTTng-UST has recorded nothing");
        let status = peer.finish()?;
        ensure!(status.success(), "LTTng's program ended with {status}");
    }
    let (recorded, lost) = report::recorded(&trace)?;
    let mut names: Vec<&str> = VARIANTS.iter().map(|(_, name, _)| *name).collect();
    if lttng.is_some() {
        names.insert(2, LTTNG);
    }
    let rows: Vec<Row> =
        names.into_iter().map(|name| Row { name, rounds: rounds.remove(name).unwrap_or_default() }).collect();
    report::print(&rows, cpu, BURSTS, emitted, recorded, lost);
    // Each thread introduces itself with one event more.
    ensure!(
        lost == 0 && recorded >= emitted,
        "{emitted} events emitted, {recorded} recorded, {lost} lost: these figures are not those of recorded events"
    );
    report::print_ratios(&rows, VARIANTS[0].1, VARIANTS[1].1, LTTNG);
    Ok(())
}

/// Starts this program again as a worker under `tracewing record`, the worker on one CPU, the recorder on any.
fn start_own(tracewing: &Path, trace: &Path, cpu: usize) -> Result<Worker> {
    let me = std::env::current_exe().context("cannot tell this program's path")?;
    let mut command = Command::new(tracewing);
    command.args(["record", "--no-kernel", "--sub-buffer-size", "1M", "--sub-buffers", "4"]);
    command.args(["--flush", &FLUSH_MS.to_string(), "-o"]).arg(trace).arg("--");
    command.args(["taskset", "--cpu-list", &cpu.to_string()]).arg(me).arg("worker");
    Worker::start("tracewing", &mut command)
}

/// One round: for each variant the median of its bursts, and how many events tracewing emitted.
fn measure_round(own: &mut Worker, mut peer: Option<&mut Worker>) -> Result<(Vec<(&'static str, f64)>, u64)> {
    let mut bursts: HashMap<&'static str, Vec<f64>> = HashMap::new();
    let mut emitted = 0;
    for burst in 0..BURSTS {
        for (variant, name, bytes) in VARIANTS {
            // The two events that are compared, and the floor, get all bursts; the others are for orientation.
            if burst % 6 != 0 && !["rdtsc", "two_u64"].contains(variant) {
                continue;
            }
            let count = BURST_BYTES / (*bytes).max(28);
            bursts.entry(name).or_default().push(own.measure(variant, count)?);
            // Both sides of the comparison run directly behind another burst, with no pause in which the CPU cools down.
            if *variant == "two_u64"
                && let Some(peer) = peer.as_deref_mut()
            {
                bursts.entry(LTTNG).or_default().push(peer.measure(variant, count)?);
            }
            if *bytes > 0 {
                emitted += count;
                std::thread::sleep(DRAIN);
            }
        }
    }
    Ok((bursts.into_iter().map(|(name, bursts)| (name, median(&bursts))).collect(), emitted))
}
