//! `tracewing snapshot`: has a running flight recorder write what its buffers hold.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::shown;
use crate::owner::Which;
use crate::screen;
use std::io::Write;
use std::process::ExitCode;
use tracewing_session::running::Kind;

const EXAMPLES: &str = "\
Examples:
  tracewing snapshot
      of the only running flight recorder
  tracewing snapshot server
      of the one that records the command `server`
  tracewing list -n 20 \"$(tracewing snapshot)\"
      take a snapshot and show its first events

`tracewing record --flight-recorder -- CMD` starts a flight recorder. It continues to record after a snapshot, so the \
next one again contains whatever its buffers still hold.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    format: TextFormatOption,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let recorder = args.which.find(Kind::FlightRecorder)?;
    let folder = recorder.snapshot()?;
    let mut out = screen::stdout(args.format.format.into());
    match args.format.format {
        TextFormat::Text => writeln!(out, "{}", shown(&folder.to_string_lossy()))?,
        TextFormat::Json => {
            let line = serde_json::json!({ "folder": folder, "recorder": recorder.pid, "command": recorder.command });
            writeln!(out, "{line}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
