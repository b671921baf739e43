//! `bench seek`: how long `tracewing list --from … --to …` takes to its first line in a trace of gigabytes,
//! and to its end, by where the index comes from. The trace is made by `seek/trace.rs`, and removed
//! afterwards.

mod trace;

use crate::compare::figures::Rounds;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is required of the first line, milliseconds.
const MOST_MS: f64 = 100.0;

/// What `bench seek` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// Size of the trace, GiB
    #[arg(long, default_value_t = 10.0)]
    gib: f64,
    /// How many streams it has
    #[arg(long, default_value_t = 8)]
    streams: u32,
    /// KiB of a packet
    #[arg(long, default_value_t = 256)]
    packet_kib: u32,
    /// How many times are looked for
    #[arg(long, default_value_t = 30)]
    rounds: u32,
    /// A trace of 100 MiB, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// The folder in which the trace is made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
}

/// Milliseconds to the first line and to the end, and MiB that were read.
struct Slice {
    first: f64,
    end: f64,
    read: f64,
}

/// Makes the trace, measures, prints.
pub fn run(options: &Options) -> Result<()> {
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the trace")?;
    let (path, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    let gib = if options.quick { 0.1 } else { options.gib };
    let begin = Instant::now();
    let made =
        trace::make(&path, (gib * f64::from(1 << 30)) as u64, options.streams, options.packet_kib << 10)?;
    println!(
        "{gib} GiB, {} streams, {} packets, {} events, made in {:.1} s",
        options.streams,
        made.packets,
        made.events,
        begin.elapsed().as_secs_f64()
    );
    println!(
        "\n{:52}{:>9}{:>9}{:>9}{:>12}{:>12}",
        "ms to the first line", "median", "min", "max", "to the end", "MiB read"
    );
    let list = |round: u32| {
        // Somewhere, and never twice the same: times by the golden ratio.
        let share = (f64::from(round + 1) * 0.618_033_988_749_895).fract();
        let from = (share * made.nanoseconds as f64) as u64;
        slice(&options.tracewing, &path, &cache, from, from + 100_000)
    };
    let rounds = |forget: bool, base: u32| -> Result<Vec<Slice>> {
        (0..options.rounds)
            .map(|round| {
                if forget {
                    trace::forget(&path)?;
                }
                list(base + round)
            })
            .collect()
    };
    let with_files = rounds(false, 0)?;
    report("index files in the trace folder", &with_files);
    let cold = rounds(true, 1000)?;
    report("the same, nothing of the trace in memory", &cold);
    std::fs::remove_dir_all(path.join("index"))?;
    trace::forget(&path)?;
    report("no index: headers are read once, from the disk", &[list(2000)?]);
    let kept = rounds(false, 3000)?;
    report("index from the cache", &kept);
    let kept_cold = rounds(true, 4000)?;
    report("the same, nothing of the trace in memory", &kept_cold);

    let worst = firsts(&with_files).median().max(firsts(&kept).median());
    println!("\nfirst line once indexed: {worst:.1} ms (at most {MOST_MS} ms)");
    ensure!(options.quick || worst <= MOST_MS, "the first line takes too long");
    Ok(())
}

/// Lists from `from` to `to`, nanoseconds after the beginning.
fn slice(tracewing: &Path, trace: &Path, cache: &Path, from: u64, to: u64) -> Result<Slice> {
    let mut command = Command::new(tracewing);
    command.env("XDG_CACHE_HOME", cache).stdin(Stdio::null()).stdout(Stdio::piped());
    command.args(["list", "--from", &format!("+{from}ns"), "--to", &format!("+{to}ns")]).arg(trace);
    let begin = Instant::now();
    let elapsed = || begin.elapsed().as_secs_f64() * 1000.0;
    let mut child = command.spawn().context("cannot start tracewing list")?;
    let mut output = child.stdout.take().context("a child with a pipe has one")?;
    let mut text = vec![0];
    output.read_exact(&mut text).context("nothing was printed")?;
    let first = elapsed();
    output.read_to_end(&mut text)?;
    // The counts of a process's reads are available until it has been waited for.
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let end = elapsed();
    let counters = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    ensure!(child.wait()?.success(), "tracewing list failed");
    let read = counters.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
    Ok(Slice { first, end, read: read.unwrap_or(f64::NAN) / f64::from(1 << 20) })
}

fn report(what: &str, slices: &[Slice]) {
    let rounds = firsts(slices);
    let (least, most) = rounds.range();
    let end = Rounds(slices.iter().map(|slice| slice.end).collect()).median();
    let read = Rounds(slices.iter().map(|slice| slice.read).collect()).median();
    println!("{what:52}{:9.1}{least:9.1}{most:9.1}{end:12.1}{read:12.1}", rounds.median());
}

fn firsts(slices: &[Slice]) -> Rounds {
    Rounds(slices.iter().map(|slice| slice.first).collect())
}
