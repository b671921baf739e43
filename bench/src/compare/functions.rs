//! `bench functions`: what recording its beginning and its end adds to the call of a function, compared with
//! uftrace, a uprobe, a system call and a `printf` of the same (paper 001's Table 1; 002, 5.8: a breakpoint
//! against a static site).
//!
//! One C program, built in three ways, takes turns with itself: bare; with `-finstrument-functions` and with
//! `-pg -mfentry`, each under `tracewing record --functions` and `uftrace record`, both of which write to the
//! disk. What a side adds is its figure less the bare program's of the same round.

use crate::compare::figures::Rounds;
use crate::compare::own::{How, Recording, contents};
use crate::compare::process::{Worker, measuring_cpu};
use crate::compare::{lttng, machine};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is required: how many times cheaper than uftrace.
const LIMIT: f64 = 3.0;

/// Calls in a turn. The events of two fit into the buffers, where they wait for the disk, and those of one
/// begin a new sub-buffer.
const COUNT: u64 = 30_000;

/// How the program is built.
const BUILDS: [(&str, &[&str]); 2] =
    [("-finstrument-functions", &["-finstrument-functions"]), ("-pg -mfentry", &["-pg", "-mfentry"])];

/// What `bench functions` accepts.
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
    /// Whether uftrace is left out
    #[arg(long)]
    no_uftrace: bool,
}

/// The recorder of a side, what is measured, and its results.
struct Side {
    title: String,
    by: By,
    /// What the worker is to do.
    order: &'static str,
    rounds: Rounds,
}

enum By {
    /// No recorder, or uftrace.
    Worker(Worker),
    Tracewing(Recording),
}

impl Side {
    fn measure(&mut self) -> Result<f64> {
        match &mut self.by {
            By::Worker(worker) => worker.measure(self.order, COUNT),
            By::Tracewing(recording) => recording.worker().measure(self.order, COUNT),
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let scratch = scratch.path();
    for (word, text) in machine::describe(scratch) {
        println!("{word}: {text}");
    }
    let mut sides = start(options, scratch)?;
    // The first round touches every page of the buffers and is not counted.
    for round in 0..=if options.quick { 3 } else { options.rounds } {
        for side in &mut sides {
            let ns = side.measure()?;
            if round > 0 {
                side.rounds.0.push(ns);
            }
        }
    }
    let mut figures = Vec::new();
    for side in sides {
        figures.push((side.title, side.rounds));
        match side.by {
            By::Worker(worker) => worker.finish_well()?,
            By::Tracewing(recording) => {
                let found = contents(&options.tracewing, &recording.finish()?, "function:entry")?;
                ensure!(found.lost == 0, "{} events were lost: the figures would be too good", found.lost);
            }
        }
    }
    print(&figures);
    Ok(())
}

fn start(options: &Options, scratch: &Path) -> Result<Vec<Side>> {
    let source = options.program.join("functions.c");
    let cpu = measuring_cpu()?.to_string();
    let cpu = cpu.as_str();
    let bare = scratch.join("functions");
    lttng::compile(&source, &bare, &[])?;
    let mut sides = Vec::new();
    let mut side = |title: &str, by, order| {
        sides.push(Side { title: title.to_owned(), by, order, rounds: Rounds::default() });
    };
    let alone = || Worker::start("bare", Command::new(&bare).arg(cpu));
    side("bare", By::Worker(alone()?), "function");
    for (number, (title, flags)) in BUILDS.into_iter().enumerate() {
        let program = scratch.join(format!("functions-{number}"));
        lttng::compile(&source, &program, flags)?;
        let how = How {
            to_disk: true,
            selection: Some(words(&["--no-kernel", "--functions=*"])),
            ..How::default()
        };
        let folder = scratch.join(format!("trace-{number}"));
        let command: [&OsStr; 2] = [program.as_os_str(), cpu.as_ref()];
        let recording = Recording::start_program(&options.tracewing, &folder, how, &command)?;
        side(&format!("tracewing, {title}"), By::Tracewing(recording), "function");
        if !options.no_uftrace {
            let mut command = Command::new("uftrace");
            command.args(["record", "--no-libcall", "-d"]).arg(scratch.join(format!("uftrace-{number}")));
            command.arg(&program).arg(cpu).stderr(Stdio::null());
            side(
                &format!("uftrace, {title}"),
                By::Worker(Worker::start("uftrace", &mut command)?),
                "function",
            );
        }
    }
    if rustix::process::geteuid().is_root() {
        // A file of its own: the kernel puts the breakpoint into all processes that execute it.
        let probed = scratch.join("functions-probed");
        fs::copy(&bare, &probed)?;
        let probe = |what: &str| format!("{}:function{what}", probed.display());
        let selection = ["--no-kernel", "--probe", &probe(""), "--probe", &probe("%return")];
        let how = How { to_disk: true, selection: Some(words(&selection)), ..How::default() };
        let command: [&OsStr; 2] = [probed.as_os_str(), cpu.as_ref()];
        let recording =
            Recording::start_program(&options.tracewing, &scratch.join("trace-probe"), how, &command)?;
        side("uprobes at begin and return", By::Tracewing(recording), "function");
    } else {
        println!("uprobes are left out: they need root");
    }
    side("a system call (getppid)", By::Worker(alone()?), "getppid");
    side("fprintf of two lines to /dev/null", By::Worker(alone()?), "printf");
    Ok(sides)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn print(sides: &[(String, Rounds)]) {
    println!("\na call of a function that does nothing: ns of CPU time, {} rounds", sides[0].1.0.len());
    println!("{:36} {:>9} {:>9} {:>9} {:>9}", "", "median", "min", "max", "added");
    let added = |rounds: &Rounds| {
        let bare = &sides[0].1;
        Rounds(rounds.0.iter().zip(&bare.0).map(|(ns, bare)| ns - bare).collect())
    };
    for (title, rounds) in sides {
        let (least, most) = rounds.range();
        println!("{title:36} {:9.2} {least:9.2} {most:9.2} {:9.2}", rounds.median(), added(rounds).median());
    }
    let find = |subject: &str, how: &str| {
        let side = sides.iter().find(|(title, _)| *title == format!("{subject}, {how}"));
        side.map(|(_, rounds)| added(rounds))
    };
    for (how, _) in BUILDS {
        if let (Some(own), Some(peer)) = (find("tracewing", how), find("uftrace", how)) {
            let ratio = peer.ratio_to(&own).median();
            let verdict = if ratio >= LIMIT { "holds" } else { "FAILS" };
            println!("{verdict}  uftrace's to tracewing's, {how}, at least {LIMIT}: {ratio:.2}");
        }
    }
    let cheaper = |subject: &str| {
        let sides = BUILDS.iter().filter_map(|(how, _)| find(subject, how));
        sides.min_by(|one, other| one.median().total_cmp(&other.median()))
    };
    if let (Some(own), Some(peer)) = (cheaper("tracewing"), cheaper("uftrace")) {
        println!("each in its cheaper way:");
        println!("ratio uftrace/tracewing: {:.2}", peer.ratio_to(&own).median());
    }
}
