//! `cargo xtask fuzz`: feeds unexpected bytes to the readers of traces.
//!
//! The targets are in the folder `fuzz`, which is not part of the workspace: cargo-fuzz builds them with a
//! nightly compiler. This chore runs one target after the other, each for the given time, with limits on time
//! and memory. Findings are stored in `fuzz/findings`, where the tests of the crates replay them.

#[path = "../../fuzz/src/inputs.rs"]
#[allow(dead_code, reason = "what is in an input is the targets' concern")]
mod inputs;

use crate::steps::{Steps, run as run_command, target_folder};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a target may take for one input: seconds, MiB for one allocation, and MiB in all (AddressSanitizer's
/// own included).
const BOUNDS: [&str; 3] = ["-timeout=10", "-malloc_limit_mb=64", "-rss_limit_mb=1024"];
/// Threads that have done their part may still be on their way out when an input is over, which looks like a
/// leak.
const NO_LEAKS: &str = "-detect_leaks=0";

/// What `cargo xtask fuzz` accepts.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask fuzz                       every target for 20 minutes\n  \
    cargo xtask fuzz packets --minutes 60  packets and the metadata that describes them, for an hour")]
pub struct Options {
    /// tsdl, ctf2 (metadata), packets, index, trace (a whole one, listed), or convert [default: all of them]
    #[arg(value_parser = inputs::TARGETS)]
    target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
}

/// Runs the targets; fails if one of them has found something.
pub fn run(options: &Options) -> Result<()> {
    let has = |mut command: Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    let mut version = Command::new("cargo");
    version.args(["+nightly", "fuzz", "--version"]);
    if !has(version) {
        run_command(Command::new("rustup").args([
            "toolchain",
            "install",
            "nightly",
            "--profile",
            "minimal",
        ]))?;
        run_command(Command::new("cargo").args(["+nightly", "install", "--locked", "cargo-fuzz"]))?;
    }
    let mut steps = Steps::default();
    for target in inputs::TARGETS {
        if options.target.as_deref().is_none_or(|only| only == target) {
            steps.run(target, || fuzz(target, options.minutes));
        }
    }
    steps.finish()
}

fn fuzz(target: &str, minutes: u32) -> Result<()> {
    let (root, built) = (crate::root()?, target_folder()?.join("fuzz"));
    let (corpus, findings) = (built.join("corpus").join(target), root.join("fuzz/findings").join(target));
    for folder in [&corpus, &findings] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for (number, seed) in inputs::of(target, &root).iter().enumerate() {
        fs::write(corpus.join(format!("seed-{number}")), seed).context("cannot write a seed")?;
    }
    let before = count(&findings);
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", "--target-dir"])
        .arg(&built)
        .arg(target)
        .arg(&corpus)
        .arg("--")
        .args(BOUNDS)
        .arg(NO_LEAKS);
    command.arg(format!("-artifact_prefix={}/", findings.display()));
    command.arg(format!("-max_len={}", inputs::MOST_BYTES)).arg(format!("-max_total_time={}", minutes * 60));
    let outcome = run_command(&mut command);
    if count(&findings) > before {
        bail!("what was found is in {}: mend it, and keep it there for the tests", findings.display());
    }
    // Nothing stays of a folder that nothing was found for.
    let _ = fs::remove_dir(&findings);
    outcome
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
