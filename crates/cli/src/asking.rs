//! Commands that ask running recorders, and print the folder that each answers: `snapshot`, `rotate` and
//! `clear`.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::{print_error, shown};
use crate::owner::Which;
use crate::screen;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_session::running::{AskError, Kind, Running};

/// What these commands accept.
#[derive(Debug, clap::Args)]
pub struct Asking {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    format: TextFormatOption,
}

impl Asking {
    /// Finds the recorders, asks them, and prints the folder that each answers.
    pub fn print(
        &self,
        kind: Kind,
        ask: fn(&Running) -> Result<PathBuf, AskError>,
    ) -> anyhow::Result<ExitCode> {
        let (found, absent) = self.which.find_all(kind)?;
        print_answers(&found, &absent, self.format.format, ask)
    }
}

/// Asks recorders, and prints the folder that each answers, and why others cannot be asked.
pub fn print_answers(
    found: &[Running],
    absent: &[anyhow::Error],
    format: TextFormat,
    ask: fn(&Running) -> Result<PathBuf, AskError>,
) -> anyhow::Result<ExitCode> {
    let mut out = screen::stdout(format.into());
    let mut status = ExitCode::SUCCESS;
    for why in absent {
        print_error(why);
        status = ExitCode::FAILURE;
    }
    for recorder in found {
        let folder = match ask(recorder) {
            Ok(folder) => folder,
            Err(error) => {
                print_error(&error.into());
                status = ExitCode::FAILURE;
                continue;
            }
        };
        match format {
            TextFormat::Text => writeln!(out, "{}", shown(&folder.to_string_lossy()))?,
            TextFormat::Json => {
                let line = serde_json::json!({
                    "folder": folder,
                    "recorder": recorder.pid,
                    "command": recorder.command,
                });
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(status)
}
