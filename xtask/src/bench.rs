//! `cargo xtask bench`: installs the peers, builds the measuring program and runs it. What is measured, and how, stands
//! in the package `bench`.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What can be compared.
#[derive(Subcommand)]
pub enum Comparison {
    /// What recording costs, beside LTTng-UST, other tracers, the papers' schemes, `rdtsc` and plain writes
    #[command(after_help = "Examples:\n  \
        cargo xtask bench record                   everything: five minutes, and as many to build the peers once\n  \
        cargo xtask bench record --page            the same, and writes docs/performance.md and its plots\n  \
        cargo xtask bench record --only events     what one event costs, and the two ratios\n  \
        cargo xtask bench record --quick           to see that everything works")]
    Record(Record),
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
    /// Write docs/performance.md and its plots, from a complete run
    #[arg(long, conflicts_with_all = ["quick", "only"])]
    page: bool,
    /// Folder to write to where the disk is measured [default: beside what cargo builds]
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
    let Comparison::Record(options) = comparison;
    packages::ensure(packages::FOR_BENCH)?;
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "bench"])?;
    let (root, target) = (crate::root()?, target_folder()?);
    let release = target.join("release");
    let mut bench = Command::new(release.join("bench"));
    bench.arg("record").arg("--tracewing").arg(release.join("tracewing"));
    if !options.no_lttng {
        bench.arg("--lttng").arg(root.join("bench/peers/lttng"));
    }
    if !options.no_peers {
        bench.arg("--peers").arg(build_peers(&root, &target)?);
    }
    if let Some(rounds) = options.rounds {
        bench.args(["--rounds", &rounds.to_string()]);
    }
    if options.quick {
        bench.arg("--quick");
    }
    if let Some(parts) = &options.only {
        bench.args(["--only", parts]);
    }
    if let Some(folder) = &options.disk {
        bench.arg("--disk").arg(folder);
    }
    if options.page {
        bench.arg("--page").arg(root.join("docs"));
    }
    run_command(&mut bench)
}

/// Builds the other Rust tracers' programs, which are no part of the workspace; gives the folder where they are. Whatever
/// does not build is left out of the comparison, and said.
fn build_peers(root: &Path, target: &Path) -> Result<PathBuf> {
    let manifest = root.join("bench/peers/rust/Cargo.toml").display().to_string();
    let target = target.join("bench-peers");
    let folder = target.display().to_string();
    for peer in ["fastrace", "tracing-chrome", "perfetto"] {
        #[rustfmt::skip]
        let built = cargo(&[
            "build", "--release", "--locked", "--manifest-path", &manifest, "--target-dir", &folder,
            "--features", peer, "--bin", &format!("peer-{peer}"),
        ]);
        if let Err(error) = built {
            println!("bench: {peer} is left out, since it could not be built: {error:#}");
        }
    }
    Ok(target.join("release"))
}
