//! `bench read`: reading traces, compared with babeltrace2 and with reading the same files' bytes.
//!
//! | module | does |
//! |---|---|
//! | `trace` | makes the traces |
//! | `reader`, `checksum` | tracewing's side for tasks that its command does not offer: every field, and
//! plain bytes |
//! | `side` | runs a process and measures it |
//! | `report` | the results, for a terminal and as a page |
//!
//! All sides run on one CPU, in turn, round by round; what uses several CPUs runs once more on all of them.

mod checksum;
pub mod reader;
mod report;
pub mod side;
pub mod trace;

use crate::compare::figures::Rounds;
use crate::compare::machine;
use crate::compare::process::{measuring_cpu, pinned};
use anyhow::{Context, Result};
use side::Took;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::Kind;

/// What `bench read` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// How often each side reads each trace
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Events of a trace
    #[arg(long, default_value_t = 5_000_000)]
    events: u64,
    /// A short run, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    page: Option<PathBuf>,
    /// The folder in which traces are made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
}

/// What reads a trace, in the order of the report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    TheirFields,
    Fields,
    Merged,
    TheirText,
    Text,
    TextOnAll,
    TheirCount,
    Count,
    Stats,
    StatsOnAll,
    Convert,
    ConvertOnAll,
    Bytes,
}

impl Task {
    fn uses_all_cpus(self) -> bool {
        matches!(self, Task::TextOnAll | Task::StatsOnAll | Task::ConvertOnAll)
    }

    fn title(self) -> &'static str {
        match self {
            Task::TheirFields => "babeltrace2, every field, to sink.utils.dummy",
            Task::Fields => "tracewing, every field, stream by stream",
            Task::Merged => "tracewing, every field, merged",
            Task::TheirText => "babeltrace2, text",
            Task::Text => "tracewing list",
            Task::TextOnAll => "tracewing list, all CPUs",
            Task::TheirCount => "babeltrace2 | grep -c, events of a name",
            Task::Count => "tracewing stats -e, events of a name",
            Task::Stats => "tracewing stats",
            Task::StatsOnAll => "tracewing stats, all CPUs",
            Task::Convert => "tracewing convert, to CTF 2",
            Task::ConvertOnAll => "tracewing convert, to CTF 2, all CPUs",
            Task::Bytes => "the same files mapped and added up",
        }
    }
}

/// A trace and what reading it took.
struct Measured {
    title: &'static str,
    events: u64,
    bytes: u64,
    tasks: Vec<(Task, Vec<Took>)>,
}

impl Measured {
    fn seconds(&self, task: Task) -> Option<Rounds> {
        let (_, runs) = self.tasks.iter().find(|(other, _)| *other == task)?;
        Some(Rounds(runs.iter().map(|took| took.seconds).collect()))
    }

    /// How many times as long as the second the first takes.
    fn ratio(&self, task: Task, other: Task) -> Option<Rounds> {
        Some(self.seconds(task)?.ratio_to(&self.seconds(other)?))
    }
}

const ALL: [Task; 13] = [
    Task::TheirFields,
    Task::Fields,
    Task::Merged,
    Task::TheirText,
    Task::Text,
    Task::TextOnAll,
    Task::TheirCount,
    Task::Count,
    Task::Stats,
    Task::StatsOnAll,
    Task::Convert,
    Task::ConvertOnAll,
    Task::Bytes,
];
/// babeltrace2 2.0 does not read CTF 2.
const OURS: [Task; 5] = [Task::Fields, Task::Merged, Task::Text, Task::Count, Task::Bytes];

/// Makes the traces, measures, prints.
pub fn run(options: &Options) -> Result<()> {
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the traces")?;
    let events = if options.quick { options.events.min(200_000) } else { options.events };
    let rounds = if options.quick { 2 } else { options.rounds };
    let machine = machine::describe(folder.path());
    let mut measured = Vec::new();
    for (kind, title, name) in [
        (Kind::Mix, "switches, system calls and pairs of numbers, in turn", "sched_switch"),
        (Kind::Pairs, "pairs of numbers", "bench:pair"),
        (Kind::Texts, "strings, sequences and enumerations", "bench:text"),
    ] {
        eprintln!("bench: {title}");
        let path = folder.path().join("ctf1");
        trace::make(&path, kind, events)?;
        measured.push(measure(options, rounds, &ALL, (title, events, name), &path)?);
        if kind == Kind::Mix {
            let path_2 = folder.path().join("ctf2");
            let mut convert = Command::new(&options.tracewing);
            side::run(convert.args(["convert", "--format", "ctf2"]).arg(&path).arg("-o").arg(&path_2))?;
            let title =
                "switches, system calls and pairs of numbers as CTF 2, which babeltrace2 2.0 does not read";
            measured.push(measure(options, rounds, &OURS, (title, events, name), &path_2)?);
            std::fs::remove_dir_all(path_2)?;
        }
        std::fs::remove_dir_all(path)?;
    }
    if let Some(folder) = &options.page {
        report::write(&machine, &measured, rounds, folder)?;
    }
    report::print(&machine, &measured);
    Ok(())
}

fn measure(
    options: &Options,
    rounds: u32,
    tasks: &[Task],
    (title, events, name): (&'static str, u64, &str),
    trace: &Path,
) -> Result<Measured> {
    let cpu = measuring_cpu()?;
    let me = std::env::current_exe().context("cannot determine this program's path")?;
    let converted = trace.with_extension("converted");
    let mut runs: Vec<(Task, Vec<Took>)> = tasks.iter().map(|task| (*task, Vec::new())).collect();
    // The first round brings the files into memory, and is thrown away.
    for round in 0..=rounds {
        for (task, runs) in &mut runs {
            let mut command = command(*task, &options.tracewing, &me, trace, name);
            if matches!(task, Task::Convert | Task::ConvertOnAll) {
                command.arg("-o").arg(&converted);
            }
            let mut measure = || side::run(&mut command);
            let took = if task.uses_all_cpus() { measure()? } else { pinned(cpu, measure)? };
            if round > 0 {
                runs.push(took);
            }
            if converted.exists() {
                std::fs::remove_dir_all(&converted)?;
            }
        }
    }
    let sizes = std::fs::read_dir(trace)?.map(|entry| Ok(entry?.metadata()?.len()));
    Ok(Measured { title, events, bytes: sizes.sum::<Result<u64>>()?, tasks: runs })
}

fn command(task: Task, tracewing: &Path, me: &Path, trace: &Path, name: &str) -> Command {
    let of = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).arg(trace);
        command
    };
    match task {
        Task::TheirFields => of(Path::new("babeltrace2"), &["--output-format=dummy"]),
        Task::TheirText => of(Path::new("babeltrace2"), &[]),
        Task::TheirCount => {
            let mut command = Command::new("sh");
            command.args(["-c", "babeltrace2 \"$1\" | grep -c -F \" $2: \"", "sh"]).arg(trace).arg(name);
            command
        }
        Task::Fields => of(me, &["reader", "fields"]),
        Task::Merged => of(me, &["reader", "merged"]),
        Task::Bytes => of(me, &["reader", "bytes"]),
        Task::Text | Task::TextOnAll => of(tracewing, &["list"]),
        Task::Count => of(tracewing, &["stats", "-e", name]),
        Task::Stats | Task::StatsOnAll => of(tracewing, &["stats"]),
        Task::Convert | Task::ConvertOnAll => of(tracewing, &["convert", "--format", "ctf2"]),
    }
}
