//! `bench attach`: what it costs to be able to be recorded while running, and to be recorded so.
//!
//! One C program, built three times ([`side`]): plain, with tracewing and with LTTng-UST. All take turns,
//! round by round. First each is started and ended with nothing that records: what the ability costs. Then
//! the first two are recorded while they run: when the first event comes, and what memory that takes.

mod page;
mod recording;
mod side;

use crate::compare::figures::Rounds;
use crate::compare::lttng::Lttng;
use crate::compare::machine;
use anyhow::{Context, Result};
use recording::{Attached, Memory};
use side::{Census, Side};
use std::path::PathBuf;

/// What `bench attach` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often each program is started and recorded, in turn
    #[arg(long, default_value_t = 25)]
    rounds: u32,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    page: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
    /// The folder of the C program
    #[arg(long)]
    program: PathBuf,
    /// The folder of the C library's header
    #[arg(long)]
    include: PathBuf,
    /// The C library, to be linked statically
    #[arg(long)]
    library: PathBuf,
    /// The folder of LTTng's C program; without it LTTng is left out
    #[arg(long)]
    lttng: Option<PathBuf>,
}

/// A program that nothing records.
struct Start {
    title: &'static str,
    /// From start to exit, ms.
    time: Rounds,
    census: Census,
}

/// A program that is recorded while it runs.
struct Recorded {
    title: &'static str,
    rounds: Vec<Attached>,
    memory: Memory,
}

/// Everything that was measured.
struct Results {
    machine: Vec<(&'static str, String)>,
    lttng: Option<String>,
    starts: Vec<Start>,
    recorded: Vec<Recorded>,
}

impl Results {
    fn start(&self, title: &str) -> Option<&Start> {
        self.starts.iter().find(|start| start.title == title)
    }

    /// What LTTng-UST adds to the plain program, to what tracewing adds.
    fn ratio(&self, lttng: &str) -> Option<Rounds> {
        let added = |title| {
            let (with, without) = (&self.start(title)?.time, &self.start(side::PLAIN)?.time);
            Some(Rounds(with.0.iter().zip(&without.0).map(|(with, without)| with - without).collect()))
        };
        Some(added(lttng)?.ratio_to(&added(side::TRACEWING)?))
    }
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let scratch = scratch.path();
    let rounds = if options.quick { 2 } else { options.rounds };
    let sides = side::build(options, scratch)?;
    let mut starts = without_daemon(&sides, rounds)?;
    let mut lttng = None;
    if let Some(sources) = &options.lttng {
        // Dropped, it ends the daemon.
        let daemon = Lttng::prepare(sources, scratch)?;
        lttng = Some(daemon.version.clone());
        let with_daemon = sides.iter().filter(|side| side.title == side::LTTNG);
        let with_daemon: Vec<Side> = with_daemon
            .map(|side| Side { title: side::LTTNG_DAEMON, program: side.program.clone() })
            .collect();
        starts.extend(without_daemon(&with_daemon, rounds)?);
    }
    let mut recorded = Vec::new();
    for side in sides.iter().filter(|side| side.title != side::LTTNG) {
        recorded.push(Recorded { title: side.title, rounds: Vec::new(), memory: Memory::default() });
    }
    for _ in 0..rounds {
        for (side, recorded) in sides.iter().zip(&mut recorded) {
            recorded.rounds.push(recording::attach(&options.tracewing, side, &scratch.join("t"))?);
        }
    }
    for (side, recorded) in sides.iter().zip(&mut recorded) {
        recorded.memory = recording::memory(&options.tracewing, side, &scratch.join("t"))?;
    }
    let results = Results { machine: machine::describe(scratch), lttng, starts, recorded };
    println!("{}", page::text(&results)?);
    options.page.as_deref().map_or(Ok(()), |folder| page::write(&results, folder))
}

/// Starts programs in turn, which nothing records.
fn without_daemon(sides: &[Side], rounds: u32) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    for side in sides {
        starts.push(Start { title: side.title, time: Rounds::default(), census: side.census()? });
    }
    // The first round reads the files from the disk and is not counted.
    for round in 0..=rounds {
        for (side, start) in sides.iter().zip(&mut starts) {
            let time = side.start_to_exit()?;
            if round > 0 {
                start.time.0.push(time);
            }
        }
    }
    Ok(starts)
}
