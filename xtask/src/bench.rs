//! `cargo xtask bench`: installs the peers, builds the measuring program and runs it. The package `bench`
//! describes what is measured, and how.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the reports, relative to the project's root.
const PAGES: &str = "docs/reports";

/// What can be compared.
#[derive(Subcommand)]
pub enum Comparison {
    /// What recording costs, compared with LTTng-UST, other tracers, the papers' schemes, `rdtsc` and plain
    /// writes
    #[command(after_help = "Examples:\n  \
        cargo xtask bench record                   everything: five minutes, and as many to build the peers once\n  \
        cargo xtask bench record --page            the same, and writes docs/reports/performance.md and its plots\n  \
        cargo xtask bench record --only events     what one event costs, and the two ratios\n  \
        cargo xtask bench record --quick           to see that everything works")]
    Record(Record),
    /// What disabled sites cost, and switching them, compared with LTTng-UST, `tracing` and other forms of
    /// sites
    #[command(after_help = "Examples:\n  \
        cargo xtask bench trigger                  everything: two minutes, and as many to build the peers once\n  \
        cargo xtask bench trigger --page           the same, and writes docs/reports/performance-trigger.md\n  \
        cargo xtask bench trigger --only shapes    a site that is off against none\n  \
        cargo xtask bench trigger --quick          to see that everything works")]
    Trigger(Trigger),
    /// How long the first line of a slice of a large trace takes
    #[command(after_help = "Examples:\n  \
        cargo xtask bench seek                     a trace of 10 GiB, made in the target folder: a minute\n  \
        cargo xtask bench seek --streams 100       the same bytes in a hundred streams\n  \
        cargo xtask bench seek --quick             to see that everything works")]
    Seek(Seek),
    /// Reading traces, compared with babeltrace2 and with reading the same files' bytes
    #[command(after_help = "Examples:\n  \
        cargo xtask bench read            everything: ten minutes\n  \
        cargo xtask bench read --page     the same, and writes docs/reports/performance-read.md\n  \
        cargo xtask bench read --quick    to see that everything works")]
    Read(Read),
    /// What recording tasks costs, compared with dial9 and tokio-console
    #[command(after_help = "Examples:\n  \
        cargo xtask bench tasks           everything: a minute, and some to build the peers once\n  \
        cargo xtask bench tasks --page    the same, and writes docs/reports/performance-tasks.md\n  \
        cargo xtask bench tasks --quick   to see that everything works")]
    Tasks(Tasks),
    /// Analysing a recording: events a second of one CPU, and memory
    #[command(after_help = "Examples:\n  \
        cargo xtask bench analyse                  a recording of 100 million events, made in the target folder: 15 minutes\n  \
        cargo xtask bench analyse --page           the same, and writes docs/reports/performance-analyse.md\n  \
        cargo xtask bench analyse --millions 10    a smaller one\n  \
        cargo xtask bench analyse --quick          to see that everything works")]
    Analyse(Analyse),
    /// What recording locks with a pre-loaded library adds to them, compared with LTTng-UST's
    #[command(after_help = "Examples:\n  \
        cargo xtask bench preload            a minute\n  \
        cargo xtask bench preload --quick    to see that everything works")]
    Preload(Preload),
    /// What recording functions adds to them, compared with uftrace, uprobes, a system call and a printf
    #[command(after_help = "Examples:\n  \
        cargo xtask bench functions            a minute\n  \
        cargo xtask bench functions --quick    to see that everything works")]
    Functions(Functions),
    /// What recording a build costs: thousands of short programs
    #[command(after_help = "Examples:\n  \
        cargo xtask bench families                      three minutes\n  \
        cargo xtask bench families --page               the same, and writes docs/reports/performance-families.md\n  \
        cargo xtask bench families --against TRACEWING  compared with another build and its library\n  \
        cargo xtask bench families --quick              to see that everything works")]
    Families(Families),
    /// What recording a running program costs, and being able to, compared with LTTng-UST
    #[command(after_help = "Examples:\n  \
        cargo xtask bench attach            four minutes\n  \
        cargo xtask bench attach --page     the same, and writes docs/reports/performance-attach.md\n  \
        cargo xtask bench attach --quick    to see that everything works")]
    Attach(Attach),
    /// The viewer: its index, its answers, its picture in Chromium, and memory
    #[command(after_help = "Examples:\n  \
        cargo xtask bench view            a recording of 100 million events, made in the target folder: 20 minutes\n  \
        cargo xtask bench view --page     the same, and writes docs/reports/performance-view.md\n  \
        cargo xtask bench view --small    one of 10 million events: a minute\n  \
        cargo xtask bench view --live     only what following a recording costs, and how late the page is: 4 minutes\n  \
        cargo xtask bench view --quick    to see that everything works")]
    View(View),
}

/// What `bench view` accepts.
#[derive(Args)]
pub struct View {
    /// 10 million events instead of 100 million, and a walk of half a minute instead of ten
    #[arg(long, conflicts_with = "quick")]
    small: bool,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only what following a recording costs its recorder, and how late the page is
    #[arg(long, conflicts_with_all = ["small", "recording"])]
    live: bool,
    /// Tasks of the recording that is made, which then has at least 20 events for each [default: 100000]
    #[arg(long, value_name = "N", conflicts_with_all = ["recording", "live"])]
    tasks: Option<u64>,
    /// A recording instead of one that is made
    #[arg(long, value_name = "TRACE")]
    recording: Option<PathBuf>,
    /// Write docs/reports/performance-view.md; with --live, its section
    #[arg(long, conflicts_with = "quick")]
    page: bool,
}

/// What `bench attach` accepts.
#[derive(Args)]
pub struct Attach {
    /// How often each side is measured, in turn (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write docs/reports/performance-attach.md
    #[arg(long, conflicts_with = "quick")]
    page: bool,
    /// Another build of the worker `bench-tasks`, for what runs while nothing records
    #[arg(long, value_name = "BENCH-TASKS")]
    against: Option<PathBuf>,
    /// Leave LTTng-UST out
    #[arg(long)]
    no_lttng: bool,
}

/// What `bench families` accepts.
#[derive(Args)]
pub struct Families {
    /// How often each side is measured, in turn (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write docs/reports/performance-families.md
    #[arg(long, conflicts_with = "quick")]
    page: bool,
    /// Another build of `tracewing`, with its pre-loaded library in the same folder
    #[arg(long, value_name = "TRACEWING")]
    against: Option<PathBuf>,
}

/// What `bench functions` accepts.
#[derive(Args)]
pub struct Functions {
    /// How often each side is measured (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Leave uftrace out
    #[arg(long)]
    no_uftrace: bool,
}

/// What `bench analyse` accepts.
#[derive(Args)]
pub struct Analyse {
    /// Millions of events
    #[arg(long, default_value_t = 100)]
    millions: u64,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write docs/reports/performance-analyse.md
    #[arg(long, conflicts_with = "quick")]
    page: bool,
}

/// What `bench preload` accepts.
#[derive(Args)]
pub struct Preload {
    /// How often each side is measured (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Leave LTTng-UST out
    #[arg(long)]
    no_lttng: bool,
}

/// What `bench tasks` accepts.
#[derive(Args)]
pub struct Tasks {
    /// How often each side is measured, in turn (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write docs/reports/performance-tasks.md
    #[arg(long, conflicts_with = "quick")]
    page: bool,
    /// Leave dial9 and tokio-console out
    #[arg(long)]
    no_peers: bool,
}

/// What `bench read` accepts.
#[derive(Args)]
pub struct Read {
    /// How often each side reads each trace
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Write docs/reports/performance-read.md
    #[arg(long, conflicts_with = "quick")]
    page: bool,
}

/// What `bench seek` accepts.
#[derive(Args)]
pub struct Seek {
    /// Size of the trace, GiB
    #[arg(long, default_value_t = 10.0)]
    gib: f64,
    /// How many streams it has
    #[arg(long, default_value_t = 8)]
    streams: u32,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
}

/// What `bench trigger` accepts.
#[derive(Args)]
pub struct Trigger {
    /// In how many layouts functions with and without a site are compared (at least 20)
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only these parts: shapes, forms, switching, layer (with commas between them)
    #[arg(long, value_name = "PART,…")]
    only: Option<String>,
    /// Write docs/reports/performance-trigger.md, from a complete run
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    page: bool,
    /// Leave LTTng-UST out
    #[arg(long)]
    no_lttng: bool,
    /// Leave `tracing` and tracing-chrome out
    #[arg(long)]
    no_peers: bool,
}

/// What `bench record` accepts.
#[derive(Args)]
pub struct Record {
    /// How often the price of an event is measured, in turn (at least 5)
    #[arg(long, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: Option<u32>,
    /// A short run: its figures mean little
    #[arg(long)]
    quick: bool,
    /// Only these parts: events, threads, disk, latency (with commas between them)
    #[arg(long, value_name = "PART,…")]
    only: Option<String>,
    /// Write docs/reports/performance.md and its plots, from a complete run
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    page: bool,
    /// Folder to write to where the disk is measured [default: next to what cargo builds]
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Leave LTTng-UST out
    #[arg(long)]
    no_lttng: bool,
    /// Leave Perfetto, fastrace and tracing-chrome out
    #[arg(long)]
    no_peers: bool,
}

/// Builds in release and measures.
pub fn run(comparison: &Comparison) -> Result<()> {
    match comparison {
        Comparison::Seek(_) | Comparison::Tasks(_) | Comparison::Analyse(_) | Comparison::Families(_) => {}
        Comparison::Read(_) => packages::ensure(packages::FOR_BENCH_READ)?,
        Comparison::Functions(_) => packages::ensure(packages::FOR_BENCH_FUNCTIONS)?,
        Comparison::Attach(_) => packages::ensure(packages::FOR_BENCH_ATTACH)?,
        Comparison::View(_) => packages::ensure(packages::FOR_BENCH_VIEW)?,
        _ => packages::ensure(packages::FOR_BENCH)?,
    }
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "bench", "--package", "shop"])?;
    if let Comparison::Preload(_) | Comparison::Functions(_) | Comparison::Families(_) = comparison {
        cargo(&["build", "--release", "--package", "tracewing-preload"])?;
    }
    if let Comparison::Attach(_) = comparison {
        cargo(&["build", "--release", "--package", "tracewing-capi"])?;
    }
    match comparison {
        Comparison::Record(options) => record(options),
        Comparison::Trigger(options) => trigger(options),
        Comparison::Seek(options) => seek(options),
        Comparison::Read(options) => read(options),
        Comparison::Tasks(options) => tasks(options),
        Comparison::Analyse(options) => analyse(options),
        Comparison::Preload(options) => preload(options),
        Comparison::Functions(options) => functions(options),
        Comparison::Families(options) => families(options),
        Comparison::Attach(options) => attach(options),
        Comparison::View(options) => view(options),
    }
}

fn record(options: &Record) -> Result<()> {
    let peers: &[_] = if options.no_peers { &[] } else { &["fastrace", "tracing-chrome", "perfetto"] };
    let mut bench = bench("record", !options.no_lttng, peers, options.rounds, options.quick)?;
    if let Some(parts) = &options.only {
        bench.args(["--only", parts]);
    }
    if let Some(folder) = &options.disk {
        bench.arg("--disk").arg(folder);
    }
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn trigger(options: &Trigger) -> Result<()> {
    let peers: &[_] = if options.no_peers { &[] } else { &["tracing"] };
    let mut bench = bench("trigger", !options.no_lttng, peers, options.rounds, options.quick)?;
    if let Some(parts) = &options.only {
        bench.args(["--only", parts]);
    }
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn read(options: &Read) -> Result<()> {
    let mut bench = bench("read", false, &[], options.rounds, options.quick)?;
    bench.arg("--disk").arg(target_folder()?);
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn preload(options: &Preload) -> Result<()> {
    let mut bench = bench("preload", !options.no_lttng, &[], options.rounds, options.quick)?;
    bench.arg("--program").arg(crate::root()?.join("bench/peers/preload"));
    run_command(&mut bench)
}

fn functions(options: &Functions) -> Result<()> {
    let mut bench = bench("functions", false, &[], options.rounds, options.quick)?;
    bench.arg("--program").arg(crate::root()?.join("bench/peers/functions"));
    if options.no_uftrace {
        bench.arg("--no-uftrace");
    }
    run_command(&mut bench)
}

fn families(options: &Families) -> Result<()> {
    let root = crate::root()?;
    let mut bench = bench("families", false, &[], options.rounds, options.quick)?;
    bench.arg("--program").arg(root.join("bench/peers/families")).arg("--disk").arg(target_folder()?);
    if let Some(against) = &options.against {
        bench.arg("--against").arg(against);
    }
    if options.page {
        bench.arg("--page").arg(root.join(PAGES));
    }
    run_command(&mut bench)
}

fn attach(options: &Attach) -> Result<()> {
    let root = crate::root()?;
    let mut bench = bench("attach", !options.no_lttng, &[], options.rounds, options.quick)?;
    bench.arg("--program").arg(root.join("bench/peers/attach"));
    bench.arg("--include").arg(root.join("crates/capi/include"));
    bench.arg("--library").arg(target_folder()?.join("release/libtracewing_capi.a"));
    if let Some(against) = &options.against {
        bench.arg("--against").arg(against);
    }
    if options.page {
        bench.arg("--page").arg(root.join(PAGES));
    }
    run_command(&mut bench)
}

fn tasks(options: &Tasks) -> Result<()> {
    let mut bench = bench("tasks", false, &[], options.rounds, options.quick)?;
    if !options.no_peers {
        let target = target_folder()?;
        bench.arg("--peers").arg(build_peers(
            &crate::root()?,
            &target,
            Build::Unstable,
            &["dial9", "console"],
        )?);
    }
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn analyse(options: &Analyse) -> Result<()> {
    let mut bench = bench("analyse", false, &[], None, options.quick)?;
    bench.args(["--millions", &options.millions.to_string()]);
    bench.arg("--disk").arg(target_folder()?);
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn view(options: &View) -> Result<()> {
    let mut bench = bench("view", false, &[], None, options.quick)?;
    bench.arg("--disk").arg(target_folder()?);
    if options.small {
        bench.arg("--small");
    }
    if options.live {
        bench.arg("--live");
    }
    if let Some(tasks) = options.tasks {
        bench.args(["--tasks", &tasks.to_string()]);
    }
    if let Some(recording) = &options.recording {
        bench.arg("--recording").arg(recording);
    }
    if options.page {
        bench.arg("--page").arg(crate::root()?.join(PAGES));
    }
    run_command(&mut bench)
}

fn seek(options: &Seek) -> Result<()> {
    let mut bench = bench("seek", false, &[], None, options.quick)?;
    bench.args(["--gib", &options.gib.to_string(), "--streams", &options.streams.to_string()]);
    bench.arg("--disk").arg(target_folder()?);
    run_command(&mut bench)
}

/// The measuring program with the options that both comparisons share.
fn bench(what: &str, lttng: bool, peers: &[&str], rounds: Option<u32>, quick: bool) -> Result<Command> {
    let (root, target) = (crate::root()?, target_folder()?);
    let release = target.join("release");
    let mut bench = Command::new(release.join("bench"));
    bench.arg(what).arg("--tracewing").arg(release.join("tracewing"));
    if lttng {
        bench.arg("--lttng").arg(root.join("bench/peers/lttng"));
    }
    if !peers.is_empty() {
        bench.arg("--peers").arg(build_peers(&root, &target, Build::Stable, peers)?);
    }
    if let Some(rounds) = rounds {
        bench.args(["--rounds", &rounds.to_string()]);
    }
    if quick {
        bench.arg("--quick");
    }
    Ok(bench)
}

/// How peers want their dependencies.
#[derive(Clone, Copy)]
enum Build {
    Stable,
    /// With tokio's unstable interface, which is another build of everything.
    Unstable,
}

/// Builds the other Rust tracers' programs, which are no part of the workspace; gives the folder where they
/// are. Whatever does not build is left out of the comparison, and said.
fn build_peers(root: &Path, target: &Path, build: Build, peers: &[&str]) -> Result<PathBuf> {
    let manifest = root.join("bench/peers/rust/Cargo.toml").display().to_string();
    let (target, settings): (_, &[&str]) = match build {
        Build::Stable => (target.join("bench-peers"), &[]),
        Build::Unstable => (
            target.join("bench-peers/unstable"),
            &["--config", "build.rustflags=[\"--cfg\", \"tokio_unstable\"]"],
        ),
    };
    let folder = target.display().to_string();
    for peer in peers {
        #[rustfmt::skip]
        let build = [
            "build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir", &folder,
            "--features", peer, "--bin", &format!("peer-{peer}"),
        ];
        if let Err(error) = cargo(&[settings, &build].concat()) {
            println!("bench: {peer} is left out, since it could not be built: {error:#}");
        }
    }
    Ok(target.join("release"))
}
