//! `bench attach`: what it costs to be able to be recorded while running, and to be recorded so.
//!
//! One C program, built three times ([`side`]): plain, with tracewing and with LTTng-UST. All take turns,
//! round by round. First each is started and ended with nothing that records: what the ability costs. Then
//! the first two are recorded while they run: when the first event comes, and what memory that takes
//! ([`recording`]). A server under load is recorded again and again ([`server`]). What tasks and spans cost
//! while nothing records is in [`paths`].

mod page;
mod paths;
mod recording;
mod server;
mod side;

use crate::compare::bounds::Bound;
use crate::compare::figures::Rounds;
use crate::compare::lttng::Lttng;
use crate::compare::machine;
use anyhow::{Context, Result};
use paths::Cost;
use recording::{Attached, Memory, Recorder};
use server::Served;
use side::{Census, Side};
use std::path::PathBuf;
use std::time::Instant;

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
    /// Another build of `bench-tasks`
    #[arg(long, value_name = "BENCH-TASKS")]
    against: Option<PathBuf>,
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

/// Recordings of the server.
const ATTACHES: usize = 1000;
/// The same in a short run.
const QUICK_ATTACHES: usize = 25;
/// Longest stop that 99 of 100 recordings may have, ms.
const MOST_STOP: f64 = 1.0;

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
    starts: Vec<Start>,
    recorded: Vec<Recorded>,
    served: Served,
    costs: Vec<Cost>,
}

impl Results {
    fn start(&self, title: &str) -> Option<&Start> {
        self.starts.iter().find(|start| start.title == title)
    }

    fn cost(&self, title: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.title == title)
    }

    /// The last lines: what is compared, and how many times the first is the second, round by round.
    fn ratios(&self) -> Vec<(String, Rounds)> {
        let pairs = [
            (side::TRACEWING, side::PLAIN),
            (side::GONE, side::TRACEWING),
            (side::LTTNG, side::TRACEWING),
            (side::LTTNG_DAEMON, side::TRACEWING),
        ];
        let starts = pairs.iter().filter_map(|(one, other)| {
            let ratio = self.start(one)?.time.ratio_to(&self.start(other)?.time);
            Some((format!("start to exit, {one} / {other}"), ratio))
        });
        let polls = self
            .cost(paths::TOLD)
            .zip(self.cost(paths::ALONE))
            .map(|(told, alone)| (format!("{} / tokio alone", paths::TOLD), told.cost.ratio_to(&alone.cost)));
        let builds = self.costs.iter().filter_map(|cost| {
            let other = cost.other.as_ref()?;
            Some((format!("{}, this build / the other", cost.title), cost.cost.ratio_to(other)))
        });
        starts.chain(polls).chain(builds).collect()
    }

    fn bounds(&self) -> Vec<Bound> {
        let Served { failed, answered, belongings: [before, early, after], .. } = &self.served;
        let stop = self.served.stop(0.99);
        let is_left = after.threads > before.threads
            || after.descriptors > before.descriptors
            || after.mappings > early.mappings;
        vec![
            Bound {
                what: "longest stop of a thread, p99",
                limit: "below 1 ms",
                measured: format!("{stop:.3} ms"),
                holds: stop < MOST_STOP,
            },
            Bound {
                what: "requests that fail",
                limit: "none",
                measured: format!("{failed} of {}", answered + failed),
                holds: *failed == 0,
            },
            Bound {
                what: "left in the server: threads, descriptors; mappings after the first recordings",
                limit: "none",
                measured: format!(
                    "{:+}, {:+}; {:+}",
                    after.threads as i64 - before.threads as i64,
                    after.descriptors as i64 - before.descriptors as i64,
                    after.mappings as i64 - early.mappings as i64,
                ),
                holds: !is_left,
            },
        ]
    }
}

pub fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let scratch = scratch.path();
    let rounds = if options.quick { 2 } else { options.rounds };
    let mut machine = machine::describe(scratch);
    let sides = side::build(options, scratch)?;
    let own = sides.iter().filter(|side| side.title != side::LTTNG);
    let starts = starts(options, &sides, rounds, scratch, &mut machine)?;
    let mut recorded: Vec<_> = own
        .clone()
        .map(|side| Recorded { title: side.title, rounds: Vec::new(), memory: Memory::default() })
        .collect();
    let folder = scratch.join("t");
    for _ in 0..rounds {
        for (side, recorded) in own.clone().zip(&mut recorded) {
            recorded.rounds.push(recording::attach(&options.tracewing, side, &folder)?);
        }
    }
    for (side, recorded) in own.zip(&mut recorded) {
        recorded.memory = recording::memory(&options.tracewing, side, &folder)?;
    }
    let me = std::env::current_exe().context("cannot tell this program's path")?;
    let worker = me.with_file_name("bench-tasks");
    let attaches = if options.quick { QUICK_ATTACHES } else { ATTACHES };
    let served = server::measure(&options.tracewing, &worker, &folder, attaches)?;
    let costs = paths::measure(&worker, options.against.as_deref(), rounds)?;
    machine.push(("all of this took", format!("{:.0} s", begin.elapsed().as_secs_f64())));
    let results = Results { machine, starts, recorded, served, costs };
    println!("{}", page::text(&results)?);
    options.page.as_deref().map_or(Ok(()), |folder| page::write(&results, folder))
}

/// Starts programs, in all situations in which one can be while nothing attaches to it.
fn starts(
    options: &Options,
    sides: &[Side],
    rounds: u32,
    scratch: &std::path::Path,
    machine: &mut Vec<(&'static str, String)>,
) -> Result<Vec<Start>> {
    let recorder = Recorder::start(&options.tracewing, &scratch.join("from-start"))?;
    let mut all = sides.to_vec();
    if let Some(own) = sides.iter().find(|side| side.title == side::TRACEWING) {
        let gone = scratch.join("gone").display().to_string();
        all.insert(2, own.with_socket(side::GONE, gone));
        all.insert(3, own.with_socket(side::JOINED, recorder.socket.clone()));
    }
    let mut starts = in_turn(&all, rounds)?;
    recorder.end()?;
    if let Some(sources) = &options.lttng {
        // Dropped, it ends the daemon.
        let daemon = Lttng::prepare(sources, scratch)?;
        machine.push(("LTTng", daemon.version.clone()));
        let with_daemon = sides.iter().filter(|side| side.title == side::LTTNG);
        let with_daemon: Vec<Side> =
            with_daemon.map(|side| Side { title: side::LTTNG_DAEMON, ..side.clone() }).collect();
        starts.extend(in_turn(&with_daemon, rounds)?);
    }
    Ok(starts)
}

/// Starts programs in turn.
fn in_turn(sides: &[Side], rounds: u32) -> Result<Vec<Start>> {
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
