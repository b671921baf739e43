//! Commands that ask running recorders, and print the folder that each answers: `snapshot`, `rotate` and
//! `clear`.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::{print_error, shown};
use crate::owner::{Which, no_answer};
use crate::screen;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_session::running::{AskError, Kind, Running, Silent};

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
        let (found, silent) = self.which.find_all(kind)?;
        print_answers(&found, &silent, self.format.format, ask)
    }
}

/// Asks recorders, and prints the folder that each answers, and which do not.
pub fn print_answers(
    found: &[Running],
    silent: &[Silent],
    format: TextFormat,
    ask: fn(&Running) -> Result<PathBuf, AskError>,
) -> anyhow::Result<ExitCode> {
    let mut out = screen::stdout(format.into());
    let mut status = ExitCode::SUCCESS;
    for one in silent {
        print_error(&no_answer(one));
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
