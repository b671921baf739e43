//! `bench analyse`: how many events a second each analysis takes on one CPU and on all, and how much memory,
//! of a recording of the kernel and of a program with tasks. The recording is made by `analyse/trace.rs`, and
//! removed afterwards.

pub mod trace;

use crate::compare::figures::Rounds;
use crate::compare::process::{measuring_cpu, pinned};
use crate::compare::read::side::{self, Took};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;

/// What is required of one CPU, events a second.
const LEAST_RATE: f64 = 5e6;

/// How often each analysis is measured, on one CPU and on all in turn.
const ROUNDS: usize = 5;

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
    let made = trace::make(
        &path,
        if options.quick { 1 } else { options.millions } * 1_000_000,
        trace::Lives::SHORT,
    )?;
    println!(
        "{} events, {} of them switches of threads, {} polls of {} tasks by {} threads, {} MiB\n",
        made.events,
        made.switches,
        made.polls,
        made.tasks,
        made.threads,
        made.bytes >> 20
    );
    let rounds = if options.quick { 1 } else { ROUNDS };
    println!(
        "{:24}{:>22}{:>22}{:>28}{:>12}",
        "M events/s of the clock", "one CPU", "all CPUs", "all CPUs/one CPU", "peak MiB"
    );
    let mut slowest = f64::INFINITY;
    for (name, arguments) in ANALYSES {
        let (mut one, mut all, mut most) = (Rounds::default(), Rounds::default(), 0_f64);
        for _ in 0..rounds {
            let measure = || side::run(Command::new(&options.tracewing).args(arguments).arg(&path));
            let rate = |took: Took| made.events as f64 / took.seconds / 1e6;
            let single = pinned(measuring_cpu()?, measure)?;
            let free = measure()?;
            most = most.max(single.peak).max(free.peak);
            one.0.push(rate(single));
            all.0.push(rate(free));
        }
        let ratio = all.ratio_to(&one);
        println!("{name:24}{:>22}{:>22}{:>28}{most:12.1}", spread(&one), spread(&all), spread(&ratio));
        slowest = slowest.min(one.median());
    }
    println!("\nslowest on one CPU: {slowest:.2} M events/s (at least {:.0})", LEAST_RATE / 1e6);
    ensure!(options.quick || slowest >= LEAST_RATE / 1e6, "an analysis is too slow");
    Ok(())
}

/// The median, the least and the most.
fn spread(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:.2} ({least:.2} to {most:.2})", rounds.median())
}
