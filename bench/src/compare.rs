//! The command line, and which file does what.
//!
//! `bench record` measures in four sections: what one event costs ([`events`]), what it costs several threads
//! ([`threads`]), what reaches the disk ([`disk`]), and how long single events take ([`latency`]). Worker
//! processes do the work ([`process`]): this program itself, started again under `tracewing record` ([`own`],
//! [`worker`]), a C program under LTTng ([`lttng`]), and programs with other Rust tracers ([`peers`]). The
//! results are printed ([`report`]), compared with the requirements ([`bounds`]), and made into a page
//! ([`page`], [`plot`]).
//!
//! `bench seek` is in [`seek`], `bench tasks` in [`tasks`], `bench analyse` in [`analyse`], `bench preload`
//! in [`preload`], `bench functions` in [`functions`], `bench families` in [`families`], `bench attach` in
//! [`attach`], `bench view` in [`view`]. `bench trigger` is in [`trigger`]; its worker is a program of its
//! own (`src/trigger`).

mod analyse;
mod attach;
mod bounds;
mod disk;
mod events;
mod families;
mod figures;
mod functions;
mod latency;
mod layout;
mod lttng;
mod machine;
mod own;
mod page;
mod peers;
mod plot;
mod preload;
mod process;
mod read;
mod record;
mod report;
mod seek;
mod tasks;
mod threads;
mod trigger;
mod view;
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
    /// Measure the price of events
    Record(record::Options),
    /// Measure sites that are off, and what switches them
    Trigger(trigger::Options),
    /// Measure the time to the first line of a slice of a large trace
    Seek(seek::Options),
    /// Measure reading
    Read(read::Options),
    /// Measure what recording locks adds to them
    Preload(preload::Options),
    /// Measure what recording functions adds to them
    Functions(functions::Options),
    /// Measure what recording a build costs
    Families(families::Options),
    /// Measure what recording a running program costs
    Attach(attach::Options),
    /// Measure what recording tasks costs
    Tasks(tasks::Options),
    /// Measure analyses
    Analyse(analyse::Options),
    /// Measure the viewer
    View(view::Options),
    /// Make a trace that `read` reads
    #[command(hide = true)]
    Make(read::trace::Options),
    /// Read a trace (started by `read`)
    #[command(hide = true)]
    Reader(read::reader::Options),
    /// Obey the orders on standard input (started by `record`)
    #[command(hide = true)]
    Worker,
}

pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().what {
        What::Record(options) => record::run(&options),
        What::Trigger(options) => trigger::run(&options),
        What::Seek(options) => seek::run(&options),
        What::Read(options) => read::run(&options),
        What::Preload(options) => preload::run(&options),
        What::Functions(options) => functions::run(&options),
        What::Families(options) => families::run(&options),
        What::Attach(options) => attach::run(&options),
        What::Tasks(options) => tasks::run(&options),
        What::Analyse(options) => analyse::run(&options),
        What::View(options) => view::run(&options),
        What::Make(options) => read::trace::run(&options),
        What::Reader(options) => read::reader::run(&options),
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
