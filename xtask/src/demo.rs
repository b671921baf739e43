//! `cargo xtask demo`: records the example server under load and shows what a user would look at first.
//!
//! It runs the commands that a user would type, and prints each of them.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::{Context, Result};
use clap::Args;
use std::path::Path;
use std::process::Command;

/// What `cargo xtask demo` accepts.
#[derive(Args)]
pub struct Options {
    /// How long the server is put under load
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    seconds: u32,
}

/// Builds, records, shows.
pub fn run(options: &Options) -> Result<()> {
    packages::ensure(packages::FOR_DEMO)?;
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "shop"])?;
    let target = target_folder()?;
    let trace = target.join("demo-trace");
    if trace.exists() {
        std::fs::remove_dir_all(&trace).with_context(|| format!("cannot remove {}", trace.display()))?;
    }
    let tracewing = target.join("release/tracewing");
    let shop = target.join("release/shop");
    let seconds = options.seconds.to_string();

    let show = |what: &str, arguments: &[&str]| show(what, &tracewing, arguments);
    let (trace, shop) = (path(&trace)?, path(&shop)?);
    show("Record a server and its clients", &["record", "-o", trace, "--", shop, "--seconds", &seconds])?;
    show("What was recorded, what was lost", &["info", trace])?;
    show("User and kernel events in one order", &["list", "-n", "24", trace])?;
    show("Where the time went, per thread", &["threads", trace])?;
    println!("\nThe recording is in {trace}; `babeltrace2 {trace}` reads it too.");
    Ok(())
}

fn show(what: &str, program: &Path, arguments: &[&str]) -> Result<()> {
    println!("\n# {what}\n$ tracewing {}", arguments.join(" "));
    run_command(Command::new(program).args(arguments))
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
