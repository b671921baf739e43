//! Comparisons with other tracers on this machine; `cargo xtask bench` builds and starts it.
//!
//! `bench record` measures, in turn and round by round, what one event costs (`record.rs`), with the help of worker
//! processes: itself, started again under `tracewing record` (`worker.rs`), and a C program under LTTng (`lttng.rs`).

mod figures;
mod lttng;
mod machine;
mod process;
mod record;
mod report;
mod worker;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Compares tracewing with other tracers on this machine.
#[derive(Parser)]
#[command(disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure the price of an event
    Record(record::Options),
    /// Emit events on demand (started by `record`)
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().what {
        What::Record(options) => record::run(&options),
        What::Worker => worker::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
