//! `bench trigger`: the costs of a disabled and of an enabled site, how long switching takes, and what the
//! `tracing` layer costs. Measures, prints, and compares with the requirements.
//!
//! | module | measures |
//! |---|---|
//! | `shapes` | functions with a disabled site compared with the same without, in many layouts |
//! | `forms` | passing a site, by how it is made and which tracer made it |
//! | `switching` | switching ten thousand sites |
//! | `layer` | events and spans of `tracing` |
//! | `report`, `page` | the results, for a terminal and as a page |

mod forms;
mod layer;
mod page;
mod report;
mod shapes;
mod switching;

use crate::compare::bounds::Bound;
use crate::compare::process::{Worker, measuring_cpu, pinned};
use crate::compare::{lttng, machine};
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `bench trigger` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// In how many layouts functions are measured; the other parts are repeated less often
    #[arg(long, default_value_t = 400)]
    rounds: u32,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Write a page into this folder, from a complete run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "only"])]
    page: Option<PathBuf>,
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
    /// A site that is off against no site
    Shapes,
    /// Passing a site, by how it is made
    Forms,
    /// Switching sites
    Switching,
    /// An event of `tracing`
    Layer,
}

/// Where everything is, and how much of it to measure.
struct Setting {
    worker: PathBuf,
    tracewing: PathBuf,
    /// LTTng's program, if it could be built.
    lttng: Option<PathBuf>,
    peers: Option<PathBuf>,
    scratch: PathBuf,
    /// Where everything is measured.
    cpu: usize,
    /// Layouts of each function.
    layouts: u32,
    /// Rounds of everything else.
    rounds: u32,
}

impl Setting {
    fn worker(&self) -> Result<Worker> {
        pinned(self.cpu, || Worker::start("bench-trigger", &mut Command::new(&self.worker)))
    }

    /// Starts the program with `tracing` in it, if it was built.
    fn tracing(&self, mode: &str) -> Result<Option<Worker>> {
        let Some(program) = self.peers.as_deref().map(tracing_program) else { return Ok(None) };
        if !program.is_file() {
            return Ok(None);
        }
        Worker::start(mode, Command::new(program).arg(self.cpu.to_string()).arg(mode)).map(Some)
    }
}

fn tracing_program(peers: &Path) -> PathBuf {
    peers.join("peer-tracing")
}

/// Everything that was measured.
#[derive(Default)]
struct Results {
    machine: Vec<(&'static str, String)>,
    shapes: Option<shapes::Shapes>,
    forms: Option<forms::Forms>,
    switching: Option<switching::Switching>,
    layer: Option<layer::Layer>,
}

impl Results {
    fn bounds(&self) -> Vec<Bound> {
        let shapes = self.shapes.iter().flat_map(shapes::Shapes::bounds);
        shapes.chain(self.layer.iter().flat_map(layer::Layer::bounds)).collect()
    }
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let me = std::env::current_exe().context("cannot determine this program's path")?;
    let mut results = Results { machine: machine::describe(scratch.path()), ..Results::default() };
    let lttng = match &options.lttng {
        None => None,
        Some(sources) => {
            let program = scratch.path().join("lttng-peer");
            lttng::build(sources, &program)?;
            results.machine.push(("LTTng-UST", lttng::version()?));
            Some(program)
        }
    };
    let setting = Setting {
        worker: me.with_file_name("bench-trigger"),
        tracewing: options.tracewing.clone(),
        lttng,
        peers: options.peers.clone(),
        scratch: scratch.path().to_owned(),
        cpu: measuring_cpu()?,
        layouts: if options.quick { 20 } else { options.rounds },
        rounds: if options.quick { 3 } else { 25 },
    };
    let wanted = |part, name: &str| {
        let wanted = options.only.is_empty() || options.only.contains(&part);
        if wanted {
            eprintln!("bench: measuring {name}");
        }
        wanted
    };
    if wanted(Part::Shapes, "functions with and without a site") {
        results.shapes = Some(shapes::measure(&setting)?);
    }
    if wanted(Part::Forms, "what passing a site costs") {
        results.forms = Some(forms::measure(&setting)?);
    }
    if wanted(Part::Switching, "switching") {
        results.switching = Some(switching::measure(&setting)?);
    }
    if wanted(Part::Layer, "the layer for `tracing`") {
        results.layer = layer::measure(&setting)?;
    }
    let bounds = results.bounds();
    if let Some(folder) = &options.page {
        page::write(&results, &bounds, folder)?;
    }
    report::print(&results, &bounds);
    Ok(())
}
