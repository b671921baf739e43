//! `bench analyse`: how many events a second each analysis takes on one CPU, and how much memory, of a
//! recording of the kernel and of a program with tasks. The recording is made by `analyse/trace.rs`, and
//! removed afterwards.

mod trace;

use crate::compare::read::side::{self, Took};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// What is required, events a second of CPU time.
const LEAST_RATE: f64 = 5e6;

/// What is measured: each reads the whole recording.
const ANALYSES: [(&str, &[&str]); 7] = [
    ("counting (no state)", &["stats"]),
    ("threads", &["threads"]),
    ("threads --by task", &["threads", "--by", "task"]),
    ("sched latency", &["sched", "latency"]),
    ("tasks", &["tasks"]),
    ("tasks --by name", &["tasks", "--by", "name"]),
    // What all did is read back up to its end, which comes early.
    ("critical-path", &["critical-path", "--tid", trace::FIRST_WORKER]),
];

/// What `bench analyse` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// Millions of events
    #[arg(long, default_value_t = 100)]
    millions: u64,
    /// A million events, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// The folder in which the recording is made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
}

/// Makes the recording, measures, prints.
pub fn run(options: &Options) -> Result<()> {
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the recording")?;
    let path = folder.path().join("recording");
    let made = trace::make(&path, if options.quick { 1 } else { options.millions } * 1_000_000)?;
    println!(
        "{} events, {} of them switches of threads, {} polls of {} tasks by {} threads, {} MiB\n",
        made.events,
        made.switches,
        made.polls,
        made.tasks,
        made.threads,
        made.bytes >> 20
    );
    println!("{:24}{:>10}{:>10}{:>14}{:>12}", "", "s", "CPU s", "M events/s", "peak MiB");
    let mut slowest = f64::INFINITY;
    for (name, arguments) in ANALYSES {
        let Took { seconds, cpu, peak } =
            side::run(Command::new(&options.tracewing).args(arguments).arg(&path))?;
        let rate = made.events as f64 / cpu;
        println!("{name:24}{seconds:10.2}{cpu:10.2}{:14.2}{peak:12.1}", rate / 1e6);
        slowest = slowest.min(rate);
    }
    println!("\nslowest: {:.2} M events/s of CPU time (at least {:.0})", slowest / 1e6, LEAST_RATE / 1e6);
    ensure!(options.quick || slowest >= LEAST_RATE, "an analysis is too slow");
    Ok(())
}
