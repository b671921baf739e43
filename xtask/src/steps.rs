//! Runs the steps of a chore one after the other, with a line and a duration for each.
//!
//! A failed step does not stop the later ones: after a long run all failures should be known, not just the
//! first.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Those that failed of the steps done so far, each with its error, and those that were left out.
#[derive(Default)]
pub struct Steps {
    failed: Vec<(String, String)>,
    left_out: Vec<String>,
}

impl Steps {
    /// Does one step, says how it ended and how long it took.
    pub fn run(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        println!("== {name}");
        let begin = Instant::now();
        let outcome = step();
        let seconds = begin.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("== {name}: passed in {seconds:.1} s"),
            Err(error) => {
                let error = format!("{error:#}");
                println!("== {name}: FAILED in {seconds:.1} s: {}", error.lines().next().unwrap_or_default());
                self.failed.push((name.to_owned(), error));
            }
        }
    }

    /// Does not do a step, and says why.
    pub fn leave_out(&mut self, name: &str, reason: &str) {
        println!("== {name}: left out: {reason}");
        self.left_out.push(format!("{name} ({reason})"));
    }

    /// An error that names the failed steps, if there are any. Their errors are printed once more: much may
    /// have been printed since.
    pub fn finish(self) -> Result<()> {
        if !self.left_out.is_empty() {
            println!("== left out: {}", self.left_out.join(", "));
        }
        for (name, error) in &self.failed {
            println!("== {name} failed: {error}");
        }
        let names: Vec<String> = self.failed.into_iter().map(|(name, _)| name).collect();
        if !names.is_empty() {
            bail!("failed: {}", names.join(", "));
        }
        Ok(())
    }
}

/// Runs cargo in the project's root; its output passes through.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    run(&mut cargo_command(arguments)?)
}

/// cargo in the project's root, to be run with these arguments.
pub fn cargo_command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root()?);
    Ok(command)
}

/// Runs a command in the project's root; its output passes through.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .current_dir(crate::root()?)
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub fn target_folder() -> Result<PathBuf> {
    let output = cargo_command(&["metadata", "--format-version", "1", "--no-deps"])?
        .output()
        .context("cannot start cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    Ok(PathBuf::from(folder))
}
