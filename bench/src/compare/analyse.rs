//! `bench analyse`: how many events a second each analysis takes on one CPU and on all, and how much memory,
//! of a recording of the kernel and of a program with tasks. The recording is made by `analyse/trace.rs`, and
//! removed afterwards.

mod report;
pub mod trace;

use crate::compare::figures::Rounds;
use crate::compare::machine;
use crate::compare::process::{measuring_cpu, pinned};
use crate::compare::read::side::{self, Took};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// How often each analysis is measured, on one CPU and on all in turn.
const ROUNDS: usize = 5;

/// What is measured: each reads the whole recording.
const ANALYSES: [(&str, &[&str]); 9] = [
    ("counting (no state)", &["stats"]),
    ("threads", &["threads"]),
    ("threads --by task", &["threads", "--by", "task"]),
    ("sched latency", &["sched", "latency"]),
    ("tasks", &["tasks"]),
    ("tasks --by name", &["tasks", "--by", "name"]),
    ("breakdown", &["breakdown"]),
    ("latency of a system call", &["latency", "--begin", "syscall_entry_read", "--end", "syscall_exit_read"]),
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
    /// Write a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    page: Option<PathBuf>,
    /// The folder in which the recording is made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
}

/// What an analysis took: millions of events a second of the clock, and the largest resident memory in MiB.
struct Measured {
    name: &'static str,
    one: Rounds,
    all: Rounds,
    peak_one: f64,
    peak_all: f64,
}

/// Makes the recording, measures, prints.
pub fn run(options: &Options) -> Result<()> {
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the recording")?;
    let machine = machine::describe(folder.path());
    let path = folder.path().join("recording");
    let events = if options.quick { 1 } else { options.millions } * 1_000_000;
    let made = trace::make(&path, events, trace::Lives::SHORT)?;
    let rounds = if options.quick { 1 } else { ROUNDS };
    let mut measured = Vec::new();
    for (name, arguments) in ANALYSES {
        eprintln!("bench: {name}");
        let mut of =
            Measured { name, one: Rounds::default(), all: Rounds::default(), peak_one: 0.0, peak_all: 0.0 };
        for _ in 0..rounds {
            let measure = || side::run(Command::new(&options.tracewing).args(arguments).arg(&path));
            let rate = |took: Took| made.events as f64 / took.seconds / 1e6;
            let (one, all) = (pinned(measuring_cpu()?, measure)?, measure()?);
            of.one.0.push(rate(one));
            of.all.0.push(rate(all));
            (of.peak_one, of.peak_all) = (of.peak_one.max(one.peak), of.peak_all.max(all.peak));
        }
        measured.push(of);
    }
    let page = report::page(&machine, &made, &measured, rounds);
    print!("{page}");
    let Some(folder) = &options.page else { return Ok(()) };
    let path = folder.join("performance-analyse.md");
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
