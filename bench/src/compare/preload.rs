//! `bench preload`: what recording by a pre-loaded library adds to a mutex, compared with LTTng's wrapper.
//!
//! One C program, unmodified, takes turns with itself: alone, under `tracewing record --locks` with and
//! without call chains, and under LTTng's `liblttng-ust-pthread-wrapper.so`. What a side adds is its figure
//! less the bare program's of the same round.

use crate::compare::figures::Rounds;
use crate::compare::lttng::{self, Lttng};
use crate::compare::machine;
use crate::compare::own::{How, Recording};
use crate::compare::process::{Worker, measuring_cpu, pinned};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// LTTng's library, and the events that it makes.
const WRAPPER: &str = "liblttng-ust-pthread-wrapper.so";
const EVENTS: &str = "lttng_ust_pthread:*";

/// The required maximum, as a share of what LTTng's adds.
const LIMIT: f64 = 0.25;

/// What `bench preload` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often each side is measured
    #[arg(long, default_value_t = 25)]
    rounds: u32,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// The program `tracewing`, with the library in the same folder
    #[arg(long)]
    tracewing: PathBuf,
    /// The folder of the C program
    #[arg(long)]
    program: PathBuf,
    /// The folder of LTTng's C program; without it LTTng is left out
    #[arg(long)]
    lttng: Option<PathBuf>,
}

/// What the program does.
struct Workload {
    name: &'static str,
    title: &'static str,
    /// Locks in a turn.
    count: u64,
    /// Whether one thread does it.
    single: bool,
}

const WORKLOADS: [Workload; 2] = [
    Workload { name: "uncontended", title: "uncontended lock and unlock", count: 200_000, single: true },
    Workload { name: "contended", title: "two threads, one mutex", count: 100_000, single: false },
];

/// The recorder of a side, and its results.
struct Side<'a> {
    title: &'static str,
    by: By<'a>,
    rounds: Rounds,
}

enum By<'a> {
    Plain(Worker),
    Tracewing(Recording),
    Lttng(Worker, lttng::Session<'a>),
}

impl Side<'_> {
    fn worker(&mut self) -> &mut Worker {
        match &mut self.by {
            By::Plain(worker) | By::Lttng(worker, _) => worker,
            By::Tracewing(recording) => recording.worker(),
        }
    }

    fn finish(self, scratch: &Path) -> Result<()> {
        match self.by {
            By::Plain(worker) => worker.finish_well(),
            By::Tracewing(recording) => recording.finish().map(drop),
            By::Lttng(worker, session) => {
                session.check(scratch)?;
                worker.finish_well()
            }
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let scratch = scratch.path();
    let program = scratch.join("locks");
    lttng::compile(&options.program.join("locks.c"), &program, &[])?;
    let lttng = options.lttng.as_deref().map(|sources| Lttng::prepare(sources, scratch)).transpose()?;
    for (word, text) in machine::describe(scratch) {
        println!("{word}: {text}");
    }
    for workload in &WORKLOADS {
        let sides = measure(options, workload, &program, lttng.as_ref(), scratch)?;
        print(workload, &sides);
    }
    Ok(())
}

fn measure(
    options: &Options,
    workload: &Workload,
    program: &Path,
    lttng: Option<&Lttng>,
    scratch: &Path,
) -> Result<Vec<(&'static str, Rounds)>> {
    let cpu = workload.single.then(measuring_cpu).transpose()?;
    let start = |name: &str, command: &mut Command| match cpu {
        Some(cpu) => pinned(cpu, || Worker::start(name, command)),
        None => Worker::start(name, command),
    };
    let mut sides = Vec::new();
    let mut side = |title, by| sides.push(Side { title, by, rounds: Rounds::default() });
    side("bare", By::Plain(start("bare", &mut Command::new(program))?));
    for (title, chains) in [
        ("tracewing", "contended"),
        ("tracewing, no call chains", "none"),
        ("tracewing, call chains of all", "all"),
    ] {
        let folder = scratch.join(format!("{}-{chains}", workload.name));
        let selection = Some(["--no-kernel", "--locks", "--lock-chains", chains].map(str::to_owned).to_vec());
        let how = How { cpu, selection, ..How::default() };
        let recording = Recording::start_program(&options.tracewing, &folder, how, &[program.as_os_str()])?;
        side(title, By::Tracewing(recording));
    }
    if let Some(lttng) = lttng {
        let session = lttng.session_of(None, EVENTS)?;
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", WRAPPER).env("LTTNG_UST_REGISTER_TIMEOUT", "-1");
        side("LTTng-UST", By::Lttng(start("lttng", &mut command)?, session));
    }
    // The first round touches every page of the buffers and is not counted.
    for round in 0..=if options.quick { 3 } else { options.rounds } {
        for side in &mut sides {
            let ns = side.worker().measure(workload.name, workload.count)?;
            if round > 0 {
                side.rounds.0.push(ns);
            }
        }
    }
    let mut figures = Vec::new();
    for side in sides {
        figures.push((side.title, side.rounds.clone()));
        side.finish(&scratch.join(format!("{}-lttng", workload.name)))?;
    }
    Ok(figures)
}

fn print(workload: &Workload, sides: &[(&'static str, Rounds)]) {
    println!("\n{}: ns of CPU time for one, {} rounds", workload.title, sides[0].1.0.len());
    println!("{:32} {:>9} {:>9} {:>9} {:>9}", "", "median", "min", "max", "added");
    let added = |rounds: &Rounds| {
        let bare = &sides[0].1;
        Rounds(rounds.0.iter().zip(&bare.0).map(|(ns, bare)| ns - bare).collect())
    };
    for (title, rounds) in sides {
        let (least, most) = rounds.range();
        println!("{title:32} {:9.2} {least:9.2} {most:9.2} {:9.2}", rounds.median(), added(rounds).median());
    }
    let find =
        |wanted: &str| sides.iter().find(|(title, _)| *title == wanted).map(|(_, rounds)| added(rounds));
    if let (Some(own), Some(peer)) = (find("tracewing"), find("LTTng-UST")) {
        let share = own.ratio_to(&peer).median();
        if workload.single {
            let verdict = if share <= LIMIT { "holds" } else { "FAILS" };
            println!("{verdict}  added to LTTng-UST's, at most {LIMIT}: {share:.3}");
        }
        println!("ratio lttng/tracewing added: {:.2}", peer.ratio_to(&own).median());
    }
}
