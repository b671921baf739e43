//! `bench tasks`: what recording tasks costs, measured with the program Sumtime of the multi-level trace
//! paper (3.3), and compared with other tracers of tokio.
//!
//! Every side grows the same trees (`src/tasks/tree.rs`), each in a process of its own, in turn, round by
//! round. A side's overhead is its time divided by that of the same trees without it in the same round. Peers
//! are compared with their own plain trees, since they need another build of tokio.

mod page;
mod report;

use crate::compare::bounds::Bound;
use crate::compare::figures::Rounds;
use crate::compare::machine;
use crate::compare::own::{Contents, How, Recording, contents};
use crate::compare::peers::version;
use crate::compare::process::{Worker, measuring_cpu};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[path = "../tasks/tree.rs"]
#[allow(unused_macros, unused_imports, reason = "only the height is of interest here")]
mod tree;

/// What `bench tasks` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often each side is measured, in turn
    #[arg(long, default_value_t = 60)]
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
    /// The folder with other tracers' programs; those that are missing are left out
    #[arg(long)]
    peers: Option<PathBuf>,
}

/// Tasks of a tree, with the one that sums it up.
const TASKS: u64 = (2 << tree::HEIGHT) - 1;
/// Trees in a measurement.
const TREES: u64 = 40;
/// Trees before the first one, which fill the buffers.
const FIRST_TREES: u64 = 60;
/// Time for the threads of tracers to come to rest.
const REST: Duration = Duration::from_millis(5);

/// Most that scheduling events may cost, %.
const MOST_SCHEDULING: f64 = 12.0;
/// Most that all events may cost, %.
const MOST_ALL: f64 = 40.0;
/// How many times our overhead the cheapest peer's has to be.
const LEAST_RATIO: f64 = 2.0;

/// What is recorded for the degrees, as arguments; without root, the kernel's part is left out.
const SWITCHES: &[&str] =
    &["-e", "user_thread:create", "-e", "user_thread:origin", "-e", "user_thread:switch", "--no-kernel"];
const SCHEDULING: &[&str] = &["-e", "user_thread:*", "-k", "sched_switch", "-k", "sched_wak*"];
const ALL: &[&str] = &["-e", "user_thread:*", "-e", "function:*"];

/// One of the sides.
pub struct Side {
    key: &'static str,
    title: &'static str,
    /// What it is compared with.
    base: Option<&'static str>,
    process: &'static str,
    variant: &'static str,
    /// ns of CPU time for a task.
    cost: Rounds,
}

/// The sides in their order: key, title, base, process, variant.
#[rustfmt::skip]
const SIDES: &[(&str, &str, Option<&str>, &str, &str)] = &[
    ("plain", "tokio alone", None, "bare", "plain"),
    ("told", "instrumented, not recorded", Some("plain"), "bare", "told"),
    ("switches", "creations and switches", Some("plain"), "switches", "told"),
    ("scheduling", "scheduling events", Some("plain"), "scheduling", "told"),
    ("all", "all events", Some("plain"), "all", "traced"),
    ("plain-two", "two workers: tokio alone", None, "bare", "plain-two"),
    ("told-two", "two workers: instrumented, not recorded", Some("plain-two"), "bare", "told-two"),
    ("scheduling-two", "two workers: scheduling events", Some("plain-two"), "scheduling", "told-two"),
    ("all-two", "two workers: all events", Some("plain-two"), "all", "traced-two"),
    ("dial9-plain", "dial9: tokio alone", None, "dial9", "plain"),
    ("dial9", "dial9: tokio's hooks", Some("dial9-plain"), "dial9", "hooked"),
    ("dial9-wakes", "dial9: its own spawn, with wakes", Some("dial9-plain"), "dial9", "told"),
    ("console-plain", "tokio-console: tokio alone", None, "console-plain", "tree"),
    ("console", "tokio-console: its subscriber", Some("console-plain"), "console", "tree"),
];

/// The peers whose overhead is compared with ours at our level of detail; that of dial9's hooks, which do not
/// report wakes, at the same level, too.
const PEERS: &[(&str, &str)] = &[
    ("dial9", "switches"),
    ("dial9", "scheduling"),
    ("dial9-wakes", "scheduling"),
    ("console", "scheduling"),
];

/// What a degree records of a tree's tasks, on one thread.
pub struct Events {
    key: &'static str,
    /// Events, for each task.
    events: f64,
    /// Bytes, for each task.
    bytes: f64,
}

/// Everything that was measured.
pub struct Results {
    machine: Vec<(&'static str, String)>,
    sides: Vec<Side>,
    events: Vec<Events>,
}

impl Results {
    fn side(&self, key: &str) -> Option<&Side> {
        self.sides.iter().find(|side| side.key == key)
    }

    /// What a side costs more than its base, %, round by round.
    fn overhead(&self, key: &str) -> Option<Rounds> {
        let side = self.side(key)?;
        let ratio = side.cost.ratio_to(&self.side(side.base?)?.cost);
        Some(Rounds(ratio.0.iter().map(|ratio| (ratio - 1.0) * 100.0).collect()))
    }

    /// A peer's overhead to that of our degree, both the medians.
    fn ratio(&self, &(peer, degree): &(&str, &str)) -> Option<f64> {
        Some(self.overhead(peer)?.median() / self.overhead(degree)?.median())
    }

    fn bounds(&self) -> Vec<Bound> {
        let at_most = |what, limit, most: f64, key| {
            let overhead = self.overhead(key)?;
            let (least, greatest) = overhead.interval();
            let measured = format!("{:+.1} % ({least:+.1} to {greatest:+.1})", overhead.median());
            Some(Bound { what, limit, measured, holds: overhead.median() <= most })
        };
        let whole = PEERS.iter().filter(|(_, degree)| *degree == "scheduling");
        let cheapest = whole.filter_map(|pair| self.ratio(pair)).reduce(f64::min);
        let half = cheapest.map(|ratio| Bound {
            what: "the cheapest peer's overhead",
            limit: "at least twice tracewing's",
            measured: format!("{ratio:.2} times"),
            holds: ratio >= LEAST_RATIO,
        });
        let scheduling = at_most("scheduling events", "at most +12 %", MOST_SCHEDULING, "scheduling");
        scheduling
            .into_iter()
            .chain(at_most("all events", "at most +40 %", MOST_ALL, "all"))
            .chain(half)
            .collect()
    }
}

/// The processes, by their names.
struct Processes {
    recorded: BTreeMap<&'static str, Recording>,
    others: BTreeMap<&'static str, Worker>,
}

impl Processes {
    fn start(options: &Options, scratch: &Path) -> Result<Self> {
        let own = own_worker()?;
        let mut others = BTreeMap::from([("bare", Worker::start("bench-tasks", &mut Command::new(&own))?)]);
        let cpu = measuring_cpu()?.to_string();
        let peers = [
            ("dial9", "peer-dial9", "told"),
            ("console", "peer-console", "told"),
            ("console-plain", "peer-console", "plain"),
        ];
        for (name, program, how) in peers {
            let program = options.peers.as_deref().map(|folder| folder.join(program));
            if let Some(program) = program.filter(|program| program.is_file()) {
                others.insert(name, Worker::start(name, Command::new(program).arg(&cpu).arg(how))?);
            }
        }
        let mut recorded = BTreeMap::new();
        for (name, selection) in [("switches", SWITCHES), ("scheduling", SCHEDULING), ("all", ALL)] {
            let how = How { selection: Some(allowed(selection)), ..How::default() };
            let folder = scratch.join(name);
            recorded.insert(
                name,
                Recording::start_program(&options.tracewing, &folder, how, &[own.as_os_str()])?,
            );
        }
        Ok(Self { recorded, others })
    }

    fn get(&mut self, name: &str) -> Option<&mut Worker> {
        let recorded = self.recorded.get_mut(name).map(Recording::worker);
        recorded.or_else(|| self.others.get_mut(name))
    }

    fn finish(self) -> Result<()> {
        self.recorded.into_values().try_for_each(|recording| recording.finish().map(drop))?;
        self.others.into_values().try_for_each(Worker::finish_well)
    }
}

fn own_worker() -> Result<PathBuf> {
    let me = std::env::current_exe().context("cannot determine this program's path")?;
    Ok(me.with_file_name("bench-tasks"))
}

/// What of a degree can be recorded: for the kernel's events one has to be root.
fn allowed(selection: &[&str]) -> Vec<String> {
    let words: Vec<&str> = if rustix::process::geteuid().is_root() {
        selection.to_vec()
    } else {
        let user = selection.chunks(2).filter(|option| option[0] == "-e").flatten().copied();
        user.chain(["--no-kernel"]).collect()
    };
    words.into_iter().map(str::to_owned).collect()
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut results = Results {
        machine: machine::describe(scratch.path()),
        sides: measure(options, scratch.path())?,
        events: Vec::new(),
    };
    let peers = [("dial9", "dial9-tokio-telemetry"), ("tokio-console", "console-subscriber")];
    results.machine.extend(peers.map(|(name, package)| (name, format!("{package} {}", version(package)))));
    let degrees =
        [("switches", "told", SWITCHES), ("scheduling", "told", SCHEDULING), ("all", "traced", ALL)];
    for (key, variant, selection) in degrees {
        results.events.push(count(options, scratch.path(), (key, variant), selection)?);
    }
    let bounds = results.bounds();
    if let Some(folder) = &options.page {
        page::write(&results, &bounds, folder)?;
    }
    report::print(&results, &bounds);
    Ok(())
}

fn measure(options: &Options, scratch: &Path) -> Result<Vec<Side>> {
    let mut processes = Processes::start(options, scratch)?;
    let mut sides = Vec::new();
    for &(key, title, base, process, variant) in SIDES {
        match processes.get(process) {
            Some(worker) => {
                worker.measure(variant, if options.quick { TREES } else { FIRST_TREES })?;
                sides.push(Side { key, title, base, process, variant, cost: Rounds::default() });
            }
            None => eprintln!("bench: `{title}` is left out, since its program was not built"),
        }
    }
    for _ in 0..if options.quick { 3 } else { options.rounds } {
        for side in &mut sides {
            let worker = processes.get(side.process).context("a process that was there is gone")?;
            side.cost.0.push(worker.measure(side.variant, TREES)? / TASKS as f64);
            std::thread::sleep(REST);
        }
    }
    processes.finish()?;
    Ok(sides)
}

/// Counts what a degree records of some trees, to disk, so that nothing is overwritten.
fn count(
    options: &Options,
    scratch: &Path,
    (key, variant): (&'static str, &str),
    selection: &'static [&'static str],
) -> Result<Events> {
    let how = How { to_disk: true, selection: Some(allowed(selection)), ..How::default() };
    let folder = scratch.join(format!("count-{key}"));
    let mut recording =
        Recording::start_program(&options.tracewing, &folder, how, &[own_worker()?.as_os_str()])?;
    recording.worker().measure(variant, TREES)?;
    let Contents { all_events, lost, bytes, .. } =
        contents(&options.tracewing, &recording.finish()?, "user_thread:switch")?;
    ensure!(all_events > 0, "nothing was recorded");
    let tasks = (TREES * TASKS) as f64;
    Ok(Events { key, events: (all_events + lost) as f64 / tasks, bytes: bytes as f64 / tasks })
}
