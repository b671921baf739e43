//! `tracewing snapshot`: has a running flight recorder write what its buffers hold.

use crate::asking::Asking;
use std::process::ExitCode;
use tracewing_session::running::{Kind, Running};

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
    asking: Asking,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.asking.print(Kind::FlightRecorder, Running::snapshot)
}
