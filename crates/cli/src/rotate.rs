//! `tracewing rotate`: has a running recording complete its present archive and begin the next one.

use crate::asking::Asking;
use std::process::ExitCode;
use tracewing_session::running::{Kind, Running};

const EXAMPLES: &str = "\
Examples:
  tracewing rotate
      the only running recording
  tracewing rotate server
      the one that records the command `server`
  tracewing threads \"$(tracewing rotate)\"
      complete an archive and analyse it, while the recording continues

The archive is the folder that is printed: a complete trace with everything that was recorded since the last rotation, \
or since the beginning. Programs notice nothing. `tracewing record --rotate-size` and `--rotate-every` rotate a recording \
by themselves. For a flight recorder, use `tracewing snapshot`.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    asking: Asking,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.asking.print(Kind::Any, Running::rotate)
}
