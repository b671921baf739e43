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
pub use values::{check_name, parse_seconds, parse_total_size};

use crate::format::TextFormat;
use crate::output::print_error;
use crate::record_summary;
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
            let has_rules = !matches!(args.selection.enable(&args.condition), Requested::Nothing);
            let has_kernel = !(args.kernel.kernel_events.is_empty() && options.probes.is_empty());
            record_summary::print(&outcome.summary, has_rules, has_kernel);
        }
        TextFormat::Text => record_summary::print_losses(&outcome.summary),
    }
    Ok(ExitCode::from(outcome.exit_status.clamp(0, 255) as u8))
}
