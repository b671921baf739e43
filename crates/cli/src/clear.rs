//! `tracewing clear`: removes what a running recording has recorded.

use crate::asking::Asking;
use std::process::ExitCode;
use tracewing_session::running::{Kind, Running};

const EXAMPLES: &str = "\
Examples:
  tracewing clear
      the only running recording
  tracewing clear web
      all channels of the session web

Removes what was recorded since the last rotation, or since the beginning, and prints the folder in which the recording \
continues. Archives of earlier rotations stay, and so do the totals: the summary says how many events were removed. \
Programs notice nothing.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    asking: Asking,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.asking.print(Kind::Any, Running::clear)
}
