//! A session in the background under load: archives, snapshots and a trigger; programs, a recorder and the
//! service are killed. The test `sessions` of the command does it for a moment; here it gets more time.

use crate::steps::run as run_command;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// Runs it for `length`.
pub fn run(length: Duration) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--package", "tracewing-cli", "--test", "sessions", "--"]);
    command.args(["--nocapture", "soak::"]).env("TRACEWING_SOAK_SECONDS", length.as_secs().to_string());
    run_command(&mut command)
}
