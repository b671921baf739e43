//! Sessions in the background under load: archives, snapshots and a trigger; programs, a recorder and the
//! service are killed; a disk that is bounded. The test `sessions` of the command does it for a moment; here
//! it gets more time.

use crate::steps::run as run_command;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// Programs, recorders and services that are killed, for `length`.
pub fn run(length: Duration) -> Result<()> {
    test("soak::", "TRACEWING_SOAK_SECONDS", length)
}

/// A week in `length`, or more if that does not suffice for its archives.
pub fn week(length: Duration) -> Result<()> {
    test("week::", "TRACEWING_WEEK_SECONDS", length)
}

fn test(name: &str, variable: &str, length: Duration) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--package", "tracewing-cli", "--test", "sessions", "--"]);
    command.args(["--nocapture", name]).env(variable, length.as_secs().to_string());
    run_command(&mut command)
}
