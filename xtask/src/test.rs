//! `cargo xtask test`: everything that must hold before a change is good, on a machine that has only a
//! toolchain.

use crate::flaky::{self, Flaky};
use crate::packages;
use crate::piped::{self, Printed};
use crate::steps::{self, Steps, cargo};
use anyhow::{Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

/// What `cargo xtask test` accepts.
#[derive(Args)]
pub struct Options {
    /// Run only the tests whose names contain this, and no other step
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Do only this step; may be given several times
    #[arg(long, value_name = "STEP", conflicts_with = "filter")]
    step: Vec<Step>,
}

/// A step of which CI does several at the same time.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Tests of sessions and of the viewer, with models, lints and conformance in the background
    Sessions,
    /// All other tests, with builds and doc tests in the background
    Others,
    /// Clippy
    Lints,
    /// The quick models
    Models,
    /// The conformance suite for CTF
    Conformance,
    /// Tests that build programs in many ways (`compiled_out`, `linking`, `messages`, `shapes`)
    Builds,
    /// Doc tests
    DocTests,
}

impl Step {
    fn run(self, steps: &mut Steps, flaky: &mut Flaky) {
        match self {
            Self::Sessions => {
                let tests = || Ok([arguments(&[], SESSIONS), arguments(&[], VIEWER)]);
                let background = [Self::Models, Self::Lints, Self::Conformance];
                let apart = Sockets::Apart;
                together("tests of sessions and of the viewer", tests, apart, &background, steps, flaky);
            }
            Self::Others => {
                let tests = || Ok([arguments(&["--lib", "--bins"], &others()?), arguments(&[], LONG)]);
                let background = [Self::Builds, Self::DocTests];
                together("other tests", tests, Sockets::Shared, &background, steps, flaky);
            }
            Self::Lints => steps
                .run("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
            Self::Models => steps.run("models", crate::models::quick),
            Self::Conformance => steps.run("conformance", crate::conformance::shared),
            Self::Builds => steps.run("tests that build programs", || {
                let arguments = arguments(&[], BUILD);
                flaky.again(&flaky::first(&arguments, FOR_TWO_CPUS, None, Printed::AtOnce)?)
            }),
            Self::DocTests => {
                steps.run("doc tests", || cargo(&["test", "--workspace", "--no-fail-fast", "--doc"]));
            }
        }
    }
}

/// Test programs of [`Step::Builds`].
const BUILD: &[&str] = &["compiled_out", "linking", "messages", "shapes"];

/// Test programs with sessions of root, which all instrumented programs of the machine join that start
/// meanwhile, one test at a time.
const SESSIONS: &[&str] = &["pages", "sessions"];

/// Test programs that start no instrumented program, and record nothing of other users.
const VIEWER: &[&str] = &["view"];

/// Where recorders of the second of two runs have their sockets.
#[derive(Clone, Copy)]
enum Sockets {
    /// Where commands of the first run find them.
    Shared,
    /// In a folder that the first run does not look into: tests of sessions expect that no other recording
    /// runs.
    Apart,
}

impl Sockets {
    fn folder(self) -> Result<Option<PathBuf>> {
        let Self::Apart = self else { return Ok(None) };
        let folder = steps::target_folder()?.join("run");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(Some(folder)),
        }
    }
}

/// Test programs that take long with few tests at once, and what they record is their own.
const LONG: &[&str] = &[
    "attached_programs",
    "axum_truth",
    "c_truth",
    "functions",
    "help",
    "matrix",
    "profile",
    "rotation",
    "server_truth",
    "servers",
];

/// How many tests of a program run at once, for each two CPUs: most wait for other processes.
const FOR_TWO_CPUS: usize = 4;

/// The same if two programs run at the same time.
const FOR_EACH_OF_TWO: usize = 3;

/// Runs all steps; fails if one of them failed.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::default();
    let mut flaky = Flaky::default();
    for step in &options.step {
        step.run(&mut steps, &mut flaky);
    }
    if !options.step.is_empty() {
        flaky.print();
        return steps.finish();
    }
    steps.run("packages", || packages::ensure(packages::FOR_TESTS));
    if let Some(filter) = &options.filter {
        steps.run("tests", || cargo(&["test", "--workspace", "--no-fail-fast", "--", filter]));
        return steps.finish();
    }
    steps.run("toolchain", components);
    steps.run("format", || cargo(&["fmt", "--all", "--check"]));
    steps.run("house rules", crate::tidy::run);
    steps.run("no operating system", without_system);
    steps.run("tests, and programs that they record", || {
        cargo(&["build", "--workspace", "--lib", "--bins", "--examples", "--tests"])
    });
    Step::Sessions.run(&mut steps, &mut flaky);
    Step::Others.run(&mut steps, &mut flaky);
    flaky.print();
    steps.finish()
}

/// Does at the same time what two runs of cargo with these arguments do, and steps in the background; then
/// runs a second time what failed of the tests. The first one's output is printed at once, and all other
/// output in one piece when it is complete.
fn together(
    name: &str,
    tests: impl FnOnce() -> Result<[Vec<String>; 2]>,
    sockets: Sockets,
    background: &[Step],
    steps: &mut Steps,
    flaky: &mut Flaky,
) {
    let begin = Steps::begin(name);
    let ([first, second], folder) = match tests().and_then(|tests| Ok((tests, sockets.folder()?))) {
        Ok(both) => both,
        Err(error) => return steps.end(name, begin, Err(error)),
    };
    let (first, second, others) = thread::scope(|scope| {
        // What it does first needs none of cargo's locks, which the tests need for a moment.
        let others = scope.spawn(|| in_background(background));
        let second =
            scope.spawn(|| flaky::first(&second, FOR_EACH_OF_TWO, folder.as_deref(), Printed::AtTheEnd));
        let first = flaky::first(&first, FOR_EACH_OF_TWO, None, Printed::AtOnce);
        (first, joined(second), joined(others))
    });
    let failed = first.and_then(|mut failed| {
        failed.extend(second?);
        Ok(failed)
    });
    steps.end(name, begin, failed.and_then(|failed| flaky.again(&failed)));
    steps.end("steps in the background", begin, others);
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread has panicked")))
}

/// Does steps in another process of this program, which gets a CPU only while no other process needs it.
fn in_background(background: &[Step]) -> Result<()> {
    let mut command = Command::new("chrt");
    // By this path it is the same program, also if cargo has built another one in its place.
    command.args(["--idle", "0", &format!("/proc/{}/exe", std::process::id()), "test"]);
    for step in background.iter().filter_map(Step::to_possible_value) {
        command.args(["--step", step.get_name()]);
    }
    let (status, _) = piped::run(command, Printed::AtTheEnd)?;
    ensure!(status.success(), "what failed is in the output above");
    Ok(())
}

/// cargo's arguments to run test programs of these names, and `more`.
fn arguments(more: &[&str], names: &[impl AsRef<str>]) -> Vec<String> {
    let first = ["test", "--workspace", "--no-fail-fast"].iter().chain(more).copied();
    let names = names.iter().flat_map(|name| ["--test", name.as_ref()]);
    first.chain(names).map(str::to_owned).collect()
}

/// The names of all test programs that no list names.
fn others() -> Result<Vec<String>> {
    let mut names: BTreeSet<String> = steps::targets("test")?.into_iter().map(|(name, _)| name).collect();
    for name in [BUILD, SESSIONS, VIEWER, LONG].concat() {
        ensure!(names.remove(name), "there is no test program {name}");
    }
    // Nothing runs tests that are in examples.
    for (name, source) in steps::targets("example")? {
        ensure!(!fs::read_to_string(&source)?.contains("#[test]"), "the example {name} has tests");
    }
    Ok(names.into_iter().collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_program_is_run_once() {
        let all: BTreeSet<String> =
            steps::targets("test").unwrap().into_iter().map(|(name, _)| name).collect();
        let mut listed = [BUILD, SESSIONS, VIEWER, LONG].concat();
        let others = others().unwrap();
        listed.extend(others.iter().map(String::as_str));
        assert_eq!(listed.len(), all.len());
        assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), all);
        assert_eq!(arguments(&["--lib"], VIEWER)[3..], ["--lib", "--test", "view"]);
    }
}
