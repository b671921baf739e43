//! `bench record`: measures, prints, and compares with what is required.

use crate::compare::bounds;
use crate::compare::disk::{self, Disk};
use crate::compare::events::{self, Events};
use crate::compare::latency::{self, Latency};
use crate::compare::lttng::Lttng;
use crate::compare::process::{Worker, measuring_cpu, pinned};
use crate::compare::threads::{self, Threads};
use crate::compare::{machine, page, report};
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::Command;

/// What `bench record` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often the price of an event is measured; the other parts are repeated less often
    #[arg(long, default_value_t = 25)]
    rounds: u32,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Write a page with plots into this folder, from a complete run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "only"])]
    page: Option<PathBuf>,
    /// Where to write data for the disk [default: next to this program]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
    /// The folder of LTTng's C program; without it LTTng is left out
    #[arg(long)]
    lttng: Option<PathBuf>,
    /// The folder with other tracers' programs; those that are missing are left out
    #[arg(long)]
    peers: Option<PathBuf>,
}

/// A part of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What one event costs one thread
    Events,
    /// What it costs 1 to 16 threads
    Threads,
    /// What reaches the disk
    Disk,
    /// How long single events take
    Latency,
}

/// Where everything is, and how much of it to measure.
pub struct Setting {
    pub tracewing: PathBuf,
    pub peers: Option<PathBuf>,
    pub scratch: PathBuf,
    /// Where to write what goes to disk.
    pub disk: PathBuf,
    /// Where single threads are measured.
    pub cpu: usize,
    pub rounds: u32,
    /// Bursts in a round.
    pub bursts: u32,
    pub thread_rounds: u32,
    /// Events of all threads together.
    pub thread_events: u64,
    pub disk_rounds: u32,
    /// For how long to write to disk.
    pub flood_ms: u64,
    pub latency_rounds: u32,
    pub latency_events: u64,
}

impl Setting {
    fn new(options: &Options, scratch: PathBuf) -> Result<Self> {
        let me = std::env::current_exe().context("cannot determine this program's path")?;
        let folder = me.parent().context("this program has no folder")?;
        let full = Self {
            tracewing: options.tracewing.clone(),
            peers: options.peers.clone(),
            scratch,
            disk: options.disk.clone().unwrap_or_else(|| folder.to_owned()),
            cpu: measuring_cpu()?,
            rounds: options.rounds,
            bursts: 48,
            thread_rounds: 15,
            thread_events: 8 << 20,
            disk_rounds: 7,
            flood_ms: 1000,
            latency_rounds: 5,
            latency_events: 1_000_000,
        };
        Ok(if options.quick {
            Self {
                rounds: 3,
                bursts: 6,
                thread_rounds: 3,
                thread_events: 1 << 20,
                disk_rounds: 3,
                flood_ms: 200,
                latency_rounds: 1,
                ..full
            }
        } else {
            full
        })
    }

    /// Starts this program as a worker that is not recorded.
    pub fn plain_worker(&self, cpu: Option<usize>) -> Result<Worker> {
        let me = std::env::current_exe().context("cannot determine this program's path")?;
        let start = || Worker::start("plain", Command::new(&me).arg("worker"));
        cpu.map_or_else(start, |cpu| pinned(cpu, start))
    }
}

/// Everything that was measured.
#[derive(Default)]
pub struct Results {
    pub machine: Vec<(&'static str, String)>,
    /// Cycles in a nanosecond.
    pub frequency: f64,
    pub events: Option<Events>,
    pub threads: Option<Threads>,
    pub disk: Option<Disk>,
    pub latency: Option<Latency>,
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let setting = Setting::new(options, scratch.path().to_owned())?;
    let lttng =
        options.lttng.as_deref().map(|sources| Lttng::prepare(sources, scratch.path())).transpose()?;
    let lttng = lttng.as_ref();
    let mut results = Results {
        machine: machine::describe(&setting.disk),
        frequency: machine::cycles_per_nanosecond(),
        ..Results::default()
    };
    if let Some(lttng) = lttng {
        results.machine.push(("LTTng-UST", lttng.version.clone()));
    }
    let wanted = |part, name: &str| {
        let wanted = options.only.is_empty() || options.only.contains(&part);
        if wanted {
            eprintln!("bench: measuring {name}");
        }
        wanted
    };
    if wanted(Part::Events, "what one event costs") {
        results.events = Some(events::measure(&setting, lttng)?);
    }
    if wanted(Part::Threads, "what it costs 1 to 16 threads") {
        results.threads = Some(threads::measure(&setting, lttng)?);
    }
    if wanted(Part::Disk, "what reaches the disk") {
        results.disk = Some(disk::measure(&setting, lttng)?);
    }
    if wanted(Part::Latency, "how long single events take") {
        results.latency = Some(latency::measure(&setting, lttng)?);
    }
    let bounds = bounds::check(&results);
    if let Some(folder) = &options.page {
        page::write(&results, &bounds, folder)?;
    }
    report::print(&results, &bounds);
    Ok(())
}
