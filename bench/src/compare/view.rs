//! `bench view`: what looking at a large recording takes: its index, the answers of the server, the picture
//! in Chromium, and the memory of both.
//!
//! | module | does |
//! |---|---|
//! | `answers` | how long answers of the server take |
//! | `walk` | how long the page takes to open and to draw, and its memory |
//! | `live` | what a viewer that follows a recording costs the recorder |
//! | `late` | how late the page is that follows it, and how often it is drawn |
//! | `server` | the server that is measured, and a client that asks it as the page does |
//! | `browser` | a page in Chromium |
//! | `random` | windows that look like chance |
//! | `page` | the figures, for a terminal and as a page |
//!
//! The recording is made as for `bench analyse`, with other lives of tasks and threads, and removed
//! afterwards.

mod answers;
mod browser;
mod late;
mod live;
mod page;
mod random;
mod server;
mod walk;

use crate::compare::analyse::trace::{self, Lives};
use crate::compare::machine;
use crate::compare::read::side;
use anyhow::{Context, Result};
use browser::Browser;
use page::Figure;
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Tasks and threads of the recording.
const TASKS: u64 = 100_000;
const THREADS: u64 = 1000;
/// Events for each task, at least, if a number of tasks is given.
const EVENTS: u64 = 20;
/// Size of the page, in pixels.
const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;
/// Parts into which questions and a walk are divided, to see how much figures vary.
const ROUNDS: usize = 10;
/// The number of the row that stands for all CPUs.
const ALL_CPUS: u32 = u32::MAX;

/// What `bench view` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// Fewer events, and a shorter walk
    #[arg(long)]
    small: bool,
    /// A million events, to see that everything works: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only what following a recording costs its recorder, and how late the page is
    #[arg(long, conflicts_with_all = ["small", "recording"])]
    live: bool,
    /// Tasks of the recording that is made, which then has at least 20 events for each [default: 100000]
    #[arg(long, value_name = "N", conflicts_with = "recording")]
    tasks: Option<u64>,
    /// A recording instead of one that is made
    #[arg(long, value_name = "TRACE")]
    recording: Option<PathBuf>,
    /// Write a page into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    page: Option<PathBuf>,
    /// The folder in which the recording and its index are made [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The program `tracewing`
    #[arg(long)]
    tracewing: PathBuf,
}

/// How large everything is.
struct Size {
    events: u64,
    /// How often each question is asked.
    questions: usize,
    walk: Duration,
    /// How often an index is made, and the page opened.
    indexes: usize,
    openings: usize,
    live: live::Size,
}

/// Everything that was found.
struct Results {
    machine: Vec<(&'static str, String)>,
    recording: String,
    parts: Vec<Part>,
}

/// What was found about one thing.
struct Part {
    title: &'static str,
    /// How it was found.
    about: String,
    figures: Vec<Figure>,
}

/// What the server says of the recording.
struct Facts {
    length: f64,
    events: f64,
    /// CPUs, threads and tasks, and those with members.
    rows: Vec<u64>,
    groups: Vec<u64>,
}

/// Makes the recording, measures, prints.
pub fn run(options: &Options) -> Result<()> {
    let size = |events, questions, seconds, indexes, openings| Size {
        events,
        questions,
        walk: Duration::from_secs(seconds),
        indexes,
        openings,
        live: match options.quick {
            true => live::Size { seconds: 6, rounds: 1 },
            false => live::Size { seconds: 20, rounds: 5 },
        },
    };
    let size = match (options.quick, options.small) {
        (true, _) => size(1_000_000, 20, 3, 1, 1),
        (false, true) => size(10_000_000, 500, 30, 3, 3),
        (false, false) => size(100_000_000, 1000, 600, 3, 5),
    };
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the recording")?;
    if options.live {
        let part = live::measure(&options.tracewing, folder.path(), &size.live)?;
        print!("{}", page::section(&part)?);
        return options.page.as_deref().map_or(Ok(()), |folder| page::replace(&part, folder));
    }
    let machine = machine::describe(folder.path());
    let recording = match &options.recording {
        Some(recording) => recording.clone(),
        None => {
            let recording = folder.path().join("recording");
            let events = size.events.max(options.tasks.unwrap_or(0).saturating_mul(EVENTS));
            trace::make(&recording, events, Lives::of(events, options.tasks.unwrap_or(TASKS), THREADS))?;
            recording
        }
    };
    let (facts, parts) = measure(options, &recording, folder.path(), &size)?;
    let about = format!(
        "{} of {:.1} million events ({}, {:.1} s, {} tracks)",
        match options.recording {
            Some(_) => "a recording",
            None => "a synthetic recording of kernel events and of a program with tasks,",
        },
        facts.events / 1e6,
        page::bytes(bytes(&recording)?),
        facts.length / 1e9,
        facts.rows.len() + facts.groups.len()
    );
    let results = Results { machine, recording: about, parts };
    print!("{}", page::text(&results)?);
    if let Some(folder) = &options.page {
        page::write(&results, folder)?;
    }
    Ok(())
}

fn measure(options: &Options, recording: &Path, home: &Path, size: &Size) -> Result<(Facts, Vec<Part>)> {
    let Options { tracewing, .. } = options;
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for round in 0..size.indexes {
        let place = server::indexes(home);
        if round > 0 {
            std::fs::remove_dir_all(&place)?;
        }
        let mut index = Command::new(tracewing);
        index.arg("index").arg(recording).arg("--index").arg(&place);
        let made = side::run(&mut index)?;
        seconds.push(made.seconds);
        memory.push(made.peak);
    }
    let mut server = Server::start(tracewing, recording, home, &[])?;
    let facts = facts(&mut server)?;
    let rates = seconds.iter().map(|seconds| facts.events / 1e6 / seconds).collect();
    let share = bytes(&server::indexes(home))? as f64 * 100.0 / bytes(recording)? as f64;
    let index = Part {
        title: "Index",
        about: format!("`tracewing index`, {} times; figures are medians.", size.indexes),
        figures: vec![
            Figure::median("million events/s", rates).at_least(4.0),
            Figure::median("s", seconds),
            Figure::median("size, % of the trace", vec![share]).at_most(33.3),
            Figure::median("memory, MiB", memory),
        ],
    };
    let answers = answers::measure(&mut server, &facts, size)?;
    drop(server);
    let end = of_the_end(tracewing, recording, home, &facts)?;
    let mut browser = Browser::start(WIDTH, HEIGHT)?;
    let (openings, server) = walk::openings(&mut browser, tracewing, recording, home, size)?;
    let walk = walk::walk(&mut browser, &server, size)?;
    drop((browser, server));
    let live = live::measure(tracewing, home, &size.live)?;
    Ok((facts, vec![index, answers, end, openings, walk, live]))
}

/// How long an analysis of the last percent takes, with the index and without one.
fn of_the_end(tracewing: &Path, recording: &Path, home: &Path, facts: &Facts) -> Result<Part> {
    let from = format!("+{}ns", (facts.length * 0.99) as u64);
    let seconds = |cache: &str| -> Result<Vec<f64>> {
        let run = || {
            let mut command = Command::new(tracewing);
            command.arg("threads").arg(recording).args(["--from", &from]);
            Ok(side::run(command.env("XDG_CACHE_HOME", home.join(cache)))?.seconds)
        };
        (0..3).map(|_| run()).collect()
    };
    Ok(Part {
        title: "An analysis of the last percent",
        about: "`tracewing threads --from`, 3 times each; figures are medians. With the index, it continues from a \
                checkpoint before that time; without one, it reads the recording from its beginning."
            .to_owned(),
        figures: vec![
            Figure::median("with the index, s", seconds("XDG_CACHE_HOME")?),
            Figure::median("without, s", seconds("nowhere")?),
        ],
    })
}

fn facts(server: &mut Server) -> Result<Facts> {
    let state = server.wait()?;
    let tracks = server.ask("tracks", "{}")?;
    let (mut rows, mut groups) = (Vec::new(), vec![u64::from(ALL_CPUS)]);
    for track in tracks["rows"].as_array().into_iter().flatten() {
        let Some(id) = track["id"].as_u64() else { continue };
        let is_group = ["process", "all"].iter().any(|kind| track["kind"] == *kind);
        if is_group { groups.push(id) } else { rows.push(id) }
    }
    let number = |name: &str| state[name].as_f64().with_context(|| format!("no {name}"));
    Ok(Facts { length: number("length")?, events: number("events")?, rows, groups })
}

/// The share of a process in the memory that is used, in MiB; 0 if it has ended.
fn pss(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Bytes of all files in a folder.
fn bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() { bytes(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(sum)
}
