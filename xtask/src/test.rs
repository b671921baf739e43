//! `cargo xtask test`: everything that must hold before a change is good, on a machine that has only a
//! toolchain.

use crate::flaky;
use crate::packages;
use crate::steps::{self, Steps, cargo};
use anyhow::Result;
use clap::Args;
use std::process::Command;

/// What `cargo xtask test` accepts.
#[derive(Args)]
pub struct Options {
    /// Run only the tests whose names contain this, and no other step
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// Runs all steps; fails if one of them failed.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::default();
    steps.run("packages", || packages::ensure(packages::FOR_TESTS));
    if let Some(filter) = &options.filter {
        steps.run("tests", || cargo(&["test", "--workspace", "--no-fail-fast", "--", filter]));
        return steps.finish();
    }
    steps.run("toolchain", components);
    steps.run("format", || cargo(&["fmt", "--all", "--check"]));
    steps.run("house rules", crate::tidy::run);
    steps.run("no operating system", without_system);
    steps.run("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    steps.run("programs that tests record", || {
        cargo(&["build", "--workspace", "--lib", "--bins", "--examples"])
    });
    let mut flaky_tests = Vec::new();
    steps.run("tests", || {
        const WHAT: [&str; 7] =
            ["test", "--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"];
        flaky_tests = flaky::test(&WHAT)?;
        Ok(())
    });
    steps.run("doc tests", || cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]));
    steps.run("conformance", crate::conformance::shared);
    steps.run("models", crate::models::quick);
    for test in flaky_tests {
        println!("== flaky, passed when it ran alone: {test}");
    }
    steps.finish()
}

/// Builds the ring where there is no operating system, as a kernel or firmware would.
fn without_system() -> Result<()> {
    const TARGET: &str = "x86_64-unknown-none";
    let Ok(installed) = Command::new("rustup").args(["target", "list", "--installed"]).output() else {
        eprintln!("skipped: only rustup can add {TARGET}");
        return Ok(());
    };
    if !String::from_utf8_lossy(&installed.stdout).lines().any(|line| line == TARGET) {
        println!("toolchain: adding {TARGET}");
        steps::run(Command::new("rustup").args(["target", "add", TARGET]))?;
    }
    cargo(&["build", "--package", "tracewing-ring", "--target", TARGET])
}

/// Adds rustfmt and clippy if rustup's profile is minimal.
fn components() -> Result<()> {
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        let works =
            Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
        if !works {
            println!("toolchain: adding {component}");
            steps::run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}
