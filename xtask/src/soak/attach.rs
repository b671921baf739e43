//! Servers under load that are recorded while they run, for ten seconds at a time: no request may fail. The
//! test `servers` of the command does it; here it gets more time, with all servers side by side.

use crate::steps::run as run_command;
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// The tests of the file, each of another server.
const SERVERS: &str = "3";

/// Records each server for `length`.
pub fn run(length: Duration) -> Result<()> {
    let seconds = length.as_secs().to_string();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--package", "tracewing-cli", "--test", "servers", "--"]);
    command.args(["--nocapture", "--test-threads", SERVERS]).env("TRACEWING_SOAK_SECONDS", seconds);
    run_command(&mut command)
}
