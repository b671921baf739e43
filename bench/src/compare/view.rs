//! `bench view`: what looking at a large recording takes: its index, the answers of the server, the picture
//! in Chromium, and the memory of both.
//!
//! | module | does |
//! |---|---|
//! | `server` | the server that is measured, and a client that asks it as the page does |
//! | `browser` | a page in Chromium |
//! | `random` | windows that look like chance |
//! | `page` | the figures, for a terminal and as a page |
//!
//! The recording is made as for `bench analyse`, with other lives of tasks and threads, and removed
//! afterwards.

mod browser;
mod page;
mod random;
mod server;

use crate::compare::analyse::trace::{self, Lives};
use crate::compare::machine;
use crate::compare::read::side;
use anyhow::{Context, Result, ensure};
use browser::Browser;
use page::Figure;
use random::Random;
use serde_json::{Value, json};
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Tasks and threads of the recording.
const TASKS: u64 = 100_000;
const THREADS: u64 = 1000;
/// Rows of a picture, and its width in pixels.
const ROWS: usize = 60;
const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;
/// Narrowest window that is asked for, in nanoseconds.
const NARROW: f64 = 10_000.0;
/// Steps of a walk between two looks at memory.
const STEPS: u32 = 50;
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
}

/// Everything that was found.
struct Results {
    machine: Vec<(&'static str, String)>,
    recording: String,
    walk: Duration,
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
    let size = |events, questions, seconds| Size { events, questions, walk: Duration::from_secs(seconds) };
    let size = match (options.quick, options.small) {
        (true, _) => size(1_000_000, 20, 3),
        (false, true) => size(10_000_000, 500, 30),
        (false, false) => size(100_000_000, 1000, 600),
    };
    let folder = match &options.disk {
        Some(disk) => tempfile::tempdir_in(disk),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("cannot make a folder for the recording")?;
    let machine = machine::describe(folder.path());
    let recording = match &options.recording {
        Some(recording) => recording.clone(),
        None => {
            let recording = folder.path().join("recording");
            trace::make(&recording, size.events, Lives::of(size.events, TASKS, THREADS))?;
            recording
        }
    };
    let mut figures = Vec::new();
    let facts = measure(options, &recording, folder.path(), &size, &mut figures)?;
    let about = format!(
        "{:.1} million events, {} in {:.1} s; {} tracks",
        facts.events / 1e6,
        page::bytes(bytes(&recording)?),
        facts.length / 1e9,
        facts.rows.len() + facts.groups.len()
    );
    let results = Results { machine, recording: about, walk: size.walk, figures };
    print!("{}", page::text(&results)?);
    if let Some(folder) = &options.page {
        page::write(&results, folder)?;
    }
    Ok(())
}

fn measure(
    options: &Options,
    recording: &Path,
    home: &Path,
    size: &Size,
    figures: &mut Vec<Figure>,
) -> Result<Facts> {
    let mut index = Command::new(&options.tracewing);
    index.arg("index").arg(recording).arg("--index").arg(home.join("index"));
    let made = side::run(&mut index)?;
    let index_bytes = bytes(&home.join("index"))?;
    let mut server = Server::start(&options.tracewing, recording, home)?;
    let facts = facts(&mut server)?;
    figures.push(Figure::at_least("index, million events/s", facts.events / 1e6 / made.seconds, 4.0));
    let share = index_bytes as f64 * 100.0 / bytes(recording)? as f64;
    figures.push(Figure::at_most("size of the index, % of the trace", share, 33.3));
    figures.push(Figure::only("memory while the index is made, MiB", made.peak));
    let mut random = Random(1);
    statistics(&mut server, &facts, size, &mut random, figures)?;
    data(&mut server, &facts, size, &mut random, figures)?;
    groups(&mut server, &facts, size, &mut random, figures)?;
    drop(server);

    let mut browser = Browser::start(WIDTH, HEIGHT)?;
    let begin = Instant::now();
    let server = Server::start(&options.tracewing, recording, home)?;
    browser.navigate(&server.address)?;
    let is_drawn = "!!window.tracewing && document.querySelector('#cover').hidden && tracewing.isIdle() \
                    && Object.keys(tracewing.drawn()).length > 0";
    while browser.value(is_drawn)? != true {
        ensure!(begin.elapsed() < Duration::from_secs(300), "the page does not show the recording");
        std::thread::sleep(Duration::from_millis(5));
    }
    figures.push(Figure::at_most("opened again: first picture, s", begin.elapsed().as_secs_f64(), 1.0));
    walk(&mut browser, &server, size, figures)?;
    Ok(facts)
}

fn facts(server: &mut Server) -> Result<Facts> {
    let state = server.wait()?;
    let tracks = server.ask("tracks", "{}")?;
    let (mut rows, mut groups) = (Vec::new(), vec![u64::from(ALL_CPUS)]);
    for track in tracks["rows"].as_array().into_iter().flatten() {
        let Some(id) = track["id"].as_u64() else { continue };
        if track["kind"] == "process" { groups.push(id) } else { rows.push(id) }
    }
    let number = |name: &str| state[name].as_f64().with_context(|| format!("no {name}"));
    Ok(Facts { length: number("length")?, events: number("events")?, rows, groups })
}

/// How long each of some questions takes, in milliseconds.
fn time(server: &mut Server, path: &str, questions: impl Iterator<Item = Value>) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for question in questions {
        let question = question.to_string();
        let begin = Instant::now();
        server.post(path, &question)?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The smallest of sorted times that is not below a share of them.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// How long all rows were in each state, in any window.
fn statistics(
    server: &mut Server,
    facts: &Facts,
    size: &Size,
    random: &mut Random,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let questions = (0..size.questions / 10).map(|_| {
        let (from, to) = random.window(facts.length, NARROW);
        json!({ "from": from as u64, "to": to as u64 })
    });
    let times = time(server, "statistics", questions)?;
    figures.push(Figure::only("statistics of all tracks in an area, ms (p50)", percentile(&times, 0.5)));
    figures.push(Figure::at_most("the same (slowest)", percentile(&times, 1.0), 500.0));
    Ok(())
}

/// What the picture of some rows in any window needs, as many buckets as pixels.
fn data(
    server: &mut Server,
    facts: &Facts,
    size: &Size,
    random: &mut Random,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let questions: Vec<_> = (0..size.questions)
        .map(|_| {
            let start = random.next() as usize % facts.rows.len().max(1);
            let rows: Vec<_> = facts.rows.iter().cycle().skip(start).take(ROWS).collect();
            rows_question(random, facts, &rows)
        })
        .collect();
    let times = time(server, "rows", questions.into_iter())?;
    figures.push(Figure::only("data of a picture of 60 tracks, ms (p50)", percentile(&times, 0.5)));
    figures.push(Figure::at_most("the same (p99)", percentile(&times, 0.99), 20.0));
    Ok(())
}

fn rows_question(random: &mut Random, facts: &Facts, rows: &[&u64]) -> Value {
    let (from, to) = random.window(facts.length, NARROW);
    let shift = ((to - from) / f64::from(WIDTH)).log2().ceil().max(0.0) as u32;
    json!({ "shift": shift, "first": from as u64 >> shift, "count": WIDTH, "rows": rows })
}

/// The same of rows that stand for others: all CPUs, processes.
fn groups(
    server: &mut Server,
    facts: &Facts,
    size: &Size,
    random: &mut Random,
    figures: &mut Vec<Figure>,
) -> Result<()> {
    let rows: Vec<_> = facts.groups.iter().take(ROWS).collect();
    let questions: Vec<_> = (0..size.questions / 2).map(|_| rows_question(random, facts, &rows)).collect();
    let what = "data of a picture of groups, ms (p50)";
    match time(server, "rows", questions.into_iter()) {
        Ok(times) => {
            figures.push(Figure::only(what, percentile(&times, 0.5)));
            figures.push(Figure::at_most("the same (p95)", percentile(&times, 0.95), 20.0));
        }
        Err(refused) => figures.push(Figure::missed(what, refused.to_string())),
    }
    Ok(())
}

/// Zooms and pans at random in the page; meanwhile looks at the memory of server and page.
fn walk(browser: &mut Browser, server: &Server, size: &Size, figures: &mut Vec<Figure>) -> Result<()> {
    // Threads of one process: more than are unfolded at first.
    browser.value("document.querySelectorAll('#labels .track.group[aria-expanded=false]')[0]?.click()")?;
    let begin = Instant::now();
    let (mut times, mut of_server, mut of_page, mut seed) = (Vec::new(), 0_f64, 0_f64, 1);
    while begin.elapsed() < size.walk {
        let steps = browser.value(&format!("({WALK})({STEPS}, {seed})"))?;
        times.extend(steps.as_array().into_iter().flatten().filter_map(Value::as_f64));
        of_server = of_server.max(pss(server.pid()));
        of_page = of_page.max(pss(browser.renderer()?));
        seed += 1;
    }
    times.sort_by(f64::total_cmp);
    ensure!(!times.is_empty(), "the walk has no steps");
    figures.push(Figure::only("from a zoom or pan to its picture, ms (p50)", percentile(&times, 0.5)));
    figures.push(Figure::at_most("the same (p95)", percentile(&times, 0.95), 50.0));
    figures.push(Figure::at_most("memory of the server, MiB", of_server, 300.0));
    figures.push(Figure::at_most("memory of the page, MiB", of_page, 300.0));
    Ok(())
}

/// Steps of a walk: from the view that is seen to another one, and how long each takes until all of its data
/// has come and is drawn, in milliseconds.
const WALK: &str = "async (steps, seed) => {
    const random = () => (seed = (seed * 1664525 + 1013904223) % 4294967296) / 4294967296;
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    const { view } = tracewing, scroll = document.querySelector('#scroll'), times = [];
    random();
    for (let step = 0; step < steps; step++) {
        const begin = performance.now(), kind = random();
        if (kind < 0.05) {
            const width = view.length * 10 ** (-6 * random()), from = (view.length - width) * random();
            view.set(from, from + width);
        } else if (kind < 0.15) scroll.scrollTop = (scroll.scrollHeight - scroll.clientHeight) * random();
        else if (kind < 0.55) view.pan(2 * random() - 1);
        else view.zoom(2 ** (4 * random() - 2), view.from + (view.to - view.from) * random());
        await pause(0);
        while (!tracewing.isIdle()) await pause(1);
        times.push(performance.now() - begin);
        await pause(30);
    }
    return times;
}";

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
