//! `cargo xtask bench`: installs the peers, builds the measuring program and runs it. What is measured, and how, stands
//! in the package `bench`.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::Result;
use clap::Subcommand;
use std::process::Command;

/// What can be compared.
#[derive(Subcommand)]
pub enum Comparison {
    /// The price of recording one event, beside LTTng-UST and one `rdtsc`
    #[command(after_help = "Examples:\n  \
        cargo xtask bench record\n  \
        cargo xtask bench record --rounds 11     more rounds, where the machine is busy\n  \
        cargo xtask bench record --no-lttng      without the peer and its packages")]
    Record {
        /// How often everything is measured, in turn (at least 5)
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..))]
        rounds: u32,
        /// Leave LTTng-UST out
        #[arg(long)]
        no_lttng: bool,
    },
}

/// Builds in release and measures.
pub fn run(comparison: &Comparison) -> Result<()> {
    let Comparison::Record { rounds, no_lttng } = comparison;
    if !no_lttng {
        packages::ensure(packages::FOR_BENCH)?;
    }
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "bench"])?;
    let release = target_folder()?.join("release");
    let mut bench = Command::new(release.join("bench"));
    bench.arg("record").args(["--rounds", &rounds.to_string()]);
    bench.arg("--tracewing").arg(release.join("tracewing"));
    if !no_lttng {
        bench.arg("--lttng").arg(crate::root()?.join("bench/peers/lttng"));
    }
    run_command(&mut bench)
}
