//! `tracewing record`: records a command and shows how it goes. All of it is printed to standard error, since
//! standard output and input are the command's.
//!
//! | module | what |
//! |---|---|
//! | `args` | the options |
//! | `values` | their values, as users write them |
//! | `help` | what they mean together, examples |
//! | `options` | the recording that they mean |
//! | `log` | the file with what the recorder of a channel says |
//! | `screen` | how it goes |

mod args;
mod help;
mod log;
mod options;
mod screen;
mod values;

pub use args::{Args, OnFull};
pub use values::{LONGEST_NAME, check_name, parse_seconds, parse_size, parse_total_size};

use crate::format::TextFormat;
use crate::output::print_error;
use crate::record_summary::{self, Asked};
use crate::screen::{Form, stderr};
use crate::selection::Requested;
use anyhow::{Context, Result};
use options::options;
pub use options::{NO_BLOCK, default_name};
use screen::Screen;
use std::io::Write;
use std::process::ExitCode;
use tracewing_session::record;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.background {
        // Fails for the leader of a process group, which no shell has started then.
        let _ = rustix::process::setsid();
    }
    let options = options(args)?;
    let format = args.format.format;
    let mut screen = Screen::new(args.quiet, !args.quiet && format == TextFormat::Text);
    if args.session.is_some() && args.background {
        screen = screen.of_log();
    }
    let outcome = match record(&options, &mut screen) {
        Ok(outcome) => outcome,
        Err(error) => {
            screen.end();
            let status = error.exit_status();
            print_error(&error.into());
            return Ok(ExitCode::from(status.clamp(1, 255) as u8));
        }
    };
    screen.end();
    match format {
        TextFormat::Json => {
            let line = serde_json::to_string(&outcome.summary).context("cannot write the summary as JSON")?;
            // The recording is complete, whether its summary can be printed or not.
            let _ = writeln!(stderr(Form::Json), "{line}");
        }
        TextFormat::Text if !args.quiet => {
            let asked = Asked {
                has_rules: !matches!(args.selection.enable(&args.condition), Requested::Nothing),
                has_kernel: !(args.kernel.kernel_events.is_empty() && options.probes.is_empty()),
                readers: readers(args),
            };
            record_summary::print(&outcome.summary, &asked);
        }
        TextFormat::Text => record_summary::print_losses(&outcome.summary),
    }
    Ok(ExitCode::from(outcome.exit_status.clamp(0, 255) as u8))
}

/// The commands that show what the options ask for.
fn readers(args: &Args) -> Vec<&'static str> {
    let readers = [
        ("locks", args.preload.locks),
        ("functions", !args.preload.functions.is_empty()),
        ("profile", args.profile.is_some()),
    ];
    readers.into_iter().filter(|(_, is_asked)| *is_asked).map(|(reader, _)| reader).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, Command};
    use clap::Parser;

    #[test]
    fn options_lead_to_the_commands_that_show_what_they_record() {
        for (options, expected) in [
            ("", &[][..]),
            ("--locks", &["locks"]),
            ("--profile=99 --functions=a --locks", &["locks", "functions", "profile"]),
        ] {
            let words = format!("tracewing record {options} -- true");
            let cli = Cli::try_parse_from(words.split_whitespace()).expect("there are such options");
            let Command::Record(args) = cli.command else { panic!("{words}") };
            assert_eq!(readers(&args), expected, "{words}");
        }
    }
}
