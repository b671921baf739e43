//! `bench families`: what a build costs that is recorded: thousands of short programs, each with buffers of
//! its own.
//!
//! One C program, unmodified, starts short ones under `tracewing record --locks`, one after the other or
//! several at a time; the recorder and the pre-loaded library are the side's own, so an older build can be
//! compared (`--against`). All sides take turns, round by round.

mod page;
mod side;

use crate::compare::figures::Rounds;
use crate::compare::{lttng, machine};
use anyhow::{Context, Result, ensure};
use side::Took;
use std::path::{Path, PathBuf};

/// What `bench families` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often each side is measured, in turn
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// How many programs a round starts
    #[arg(long, default_value_t = 2000)]
    programs: u32,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    page: Option<PathBuf>,
    /// The program `tracewing`, with the pre-loaded library in the same folder
    #[arg(long)]
    tracewing: PathBuf,
    /// Another build of it, likewise
    #[arg(long, value_name = "TRACEWING")]
    against: Option<PathBuf>,
    /// The folder of the C program
    #[arg(long)]
    program: PathBuf,
    /// The folder in which recordings are made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
}

/// What is started, and how many at a time.
struct Load {
    title: &'static str,
    jobs: u32,
    /// Pairs of events of each program; `None` for a program that makes none.
    pairs: Option<u32>,
}

const LOADS: [Load; 3] = [
    Load { title: "100 events each, one at a time", jobs: 1, pairs: Some(50) },
    Load { title: "100 events each, 8 at a time", jobs: 8, pairs: Some(50) },
    Load { title: "/bin/true, one at a time", jobs: 1, pairs: None },
];
const FEW_PROGRAMS: u32 = 100;

/// The recorder of a side, and the time of each round.
struct Side {
    title: &'static str,
    tracewing: Option<PathBuf>,
    rounds: Vec<Took>,
}

impl Side {
    /// One of the figures, round by round.
    fn figures(&self, of: impl Fn(&Took) -> f64) -> Rounds {
        Rounds(self.rounds.iter().map(of).collect())
    }
}

/// Everything that was measured.
struct Results {
    machine: Vec<(&'static str, String)>,
    programs: u32,
    loads: Vec<(&'static Load, Vec<Side>)>,
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.context("cannot make a temporary folder")?;
    let program = scratch.path().join("families");
    lttng::compile(&options.program.join("families.c"), &program, &[])?;
    let programs = if options.quick { FEW_PROGRAMS } else { options.programs };
    let mut results = Results { machine: machine::describe(scratch.path()), programs, loads: Vec::new() };
    for load in &LOADS {
        eprintln!("bench: measuring {programs} programs, {}", load.title);
        results.loads.push((load, measure(options, load, programs, &program, scratch.path())?));
    }
    println!("{}", page::text(&results)?);
    options.page.as_deref().map_or(Ok(()), |folder| page::write(&results, folder))
}

fn measure(
    options: &Options,
    load: &Load,
    programs: u32,
    program: &Path,
    scratch: &Path,
) -> Result<Vec<Side>> {
    let side = |title, tracewing: Option<&PathBuf>| Side {
        title,
        tracewing: tracewing.cloned(),
        rounds: Vec::new(),
    };
    let mut sides = vec![side("not recorded", None), side("recorded", Some(&options.tracewing))];
    sides.extend(options.against.iter().map(|against| side("the other build", Some(against))));
    let command = load.command(programs, program);
    for round in 0..if options.quick { 1 } else { options.rounds } {
        // Each is first as often as last, since what went before can leave work to the kernel.
        let count = sides.len();
        for turn in 0..count {
            let side = &mut sides[(turn + round as usize) % count];
            let folder = scratch.join("recording");
            let took = match &side.tracewing {
                None => side::alone(&command)?,
                Some(tracewing) => side::recorded(tracewing, &options.tracewing, &folder, &command)?,
            };
            let least = u64::from(programs) * u64::from(2 * load.pairs.unwrap_or(0));
            let all = took.contents.all_events + took.contents.lost;
            ensure!(side.tracewing.is_none() || all >= least, "{all} of at least {least} events");
            side.rounds.push(took);
        }
    }
    Ok(sides)
}

impl Load {
    /// The command that starts the programs.
    fn command(&self, programs: u32, program: &Path) -> Vec<String> {
        let path = program.display().to_string();
        let mut command = vec![path.clone(), "load".to_owned(), programs.to_string(), self.jobs.to_string()];
        match self.pairs {
            Some(pairs) => command.extend([path, "short".to_owned(), pairs.to_string()]),
            None => command.push("/bin/true".to_owned()),
        }
        command
    }
}
