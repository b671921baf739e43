//! `cargo xtask soak`: runs the ring and whole recordings under random loads, for any length of time.
//!
//! Half of the time goes to the ring's own loads (`crates/ring/tests/ring/soak.rs`): threads, nested signal
//! handlers, killed and stopped writers and readers, CPUs that go offline and online, every protocol and
//! mode. The rest goes to recordings of the example server that are cut short by `kill -9` (`programs.rs`),
//! of a program that counts its own events, with stopped recorders, full disks and a hostile user
//! (`account.rs`), of servers under load that are recorded while they run (`attach.rs`), and sessions in the
//! background (`sessions.rs`). With `--tsan` the loads of threads run under ThreadSanitizer instead.

mod account;
mod attach;
mod matrix;
mod neighbour;
mod programs;
mod sanitizer;
mod sessions;

use crate::packages;
use crate::steps::{Steps, run as run_command};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::process::Command;
use std::time::Duration;

/// What `cargo xtask soak` accepts.
#[derive(Args)]
pub struct Options {
    /// How long to try
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    minutes: u32,
    /// Where the random numbers start, to repeat the rounds of an earlier run [default: the time]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Spend all of the time on one part
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Run the loads of threads under ThreadSanitizer; needs a nightly toolchain with rust-src
    #[arg(long)]
    tsan: bool,
}

/// What can be soaked.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The ring's own loads
    Ring,
    /// Recordings of programs that are killed
    Programs,
    /// Events read, lost and emitted, with stopped recorders, full disks and a hostile user
    Account,
    /// Servers under load (a tokio server, and nginx and PostgreSQL if they are installed) that are recorded
    /// again and again while they run
    Attach,
    /// A session in the background, with programs of two users that start, end and are killed
    Sessions,
    /// What a session does in a week: 500 archives within 1 GiB, and 50 snapshots. Only where it is asked
    /// for; `--minutes 60`
    Week,
    /// Programs that keep their own logs, each recorded once with every set of options. Only where it is
    /// asked for; the time is ignored
    Matrix,
}

/// Runs everything; fails if an invariant did not hold.
pub fn run(options: &Options) -> Result<()> {
    let length = Duration::from_secs(u64::from(options.minutes) * 60);
    let mut steps = Steps::default();
    if options.tsan {
        steps.run("ring under ThreadSanitizer", || sanitizer::run(length));
        return steps.finish();
    }
    steps.run("packages", || packages::ensure(packages::FOR_DEMO));
    // Shares of the time, in tenths.
    let share = |part, tenths| match options.only {
        None => Some(length * tenths / 10),
        Some(only) => (only == part).then_some(length),
    };
    if let Some(length) = share(Part::Ring, 5) {
        steps.run("ring", || run_command(ring(length, options.seed).arg("--release").args(RING)));
    }
    if let Some(length) = share(Part::Programs, 1) {
        steps.run("programs", || programs::run(length));
    }
    if let Some(length) = share(Part::Account, 2) {
        steps.run("account", || account::run(length));
    }
    if let Some(length) = share(Part::Attach, 1) {
        steps.run("attach", || attach::run(length));
    }
    if let Some(length) = share(Part::Sessions, 1) {
        steps.run("sessions", || sessions::run(length));
    }
    if options.only == Some(Part::Week) {
        steps.run("week", || sessions::week(length));
    }
    if options.only == Some(Part::Matrix) {
        steps.run("matrix", matrix::run);
    }
    steps.finish()
}

/// What follows cargo's own arguments.
const RING: [&str; 8] =
    ["--package", "tracewing-ring", "--test", "ring", "--", "--ignored", "--nocapture", "soak::soak"];

fn ring(length: Duration, seed: Option<u64>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg("test").env("TRACEWING_SOAK_SECONDS", length.as_secs().to_string());
    if let Some(seed) = seed {
        command.env("TRACEWING_SOAK_SEED", seed.to_string());
    }
    command
}
