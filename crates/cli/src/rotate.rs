//! `tracewing rotate`: has a running recording complete its present archive and begin the next one.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::shown;
use crate::owner::Which;
use crate::screen;
use std::io::Write;
use std::process::ExitCode;
use tracewing_session::running::Kind;

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
    which: Which,

    #[command(flatten)]
    format: TextFormatOption,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let recorder = args.which.find(Kind::Any)?;
    let folder = recorder.rotate()?;
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
