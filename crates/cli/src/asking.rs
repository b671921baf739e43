//! Commands that ask running recorders, and print the folder that each answers: `snapshot`, `rotate` and
//! `clear`.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::{print_error, shown};
use crate::owner::{Which, no_answer};
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
    /// For the recordings of a session of this user.
    pub fn of_session(name: &str) -> Self {
        Self { which: Which::named(name), format: TextFormatOption::default() }
    }

    /// Finds the recorders, asks them, and prints the folder that each answers.
    pub fn print(
        &self,
        kind: Kind,
        ask: fn(&Running) -> Result<PathBuf, AskError>,
    ) -> anyhow::Result<ExitCode> {
        let mut out = screen::stdout(self.format.format.into());
        let mut status = ExitCode::SUCCESS;
        let (found, silent) = self.which.find_all(kind)?;
        for one in silent {
            print_error(&no_answer(&one));
            status = ExitCode::FAILURE;
        }
        for recorder in found {
            let folder = match ask(&recorder) {
                Ok(folder) => folder,
                Err(error) => {
                    print_error(&error.into());
                    status = ExitCode::FAILURE;
                    continue;
                }
            };
            match self.format.format {
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
}
