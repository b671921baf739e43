//! `tracewing sched`: what the scheduler decided, in the columns of `perf sched timehist` and
//! `perf sched latency`.

mod latency;
mod timehist;

use crate::table::Cell;
use crate::table::reference::View;
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;
use tracewing_trace::super_trace::Waker;
use tracewing_units::Tid;

/// What `tracewing sched` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing sched timehist my-trace --cpu 1
  tracewing sched latency my-trace --sort max -n 10")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a line each time a thread leaves a CPU: how long it waited, and how long it ran
    Timehist(timehist::Args),
    /// Print a line for each thread: its average and longest wait for a CPU
    Latency(latency::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Timehist(args) => timehist::run(args),
        What::Latency(args) => latency::run(args),
    }
}

/// A CPU's idle thread has a name of its own, as in the kernel.
fn waker_name(waker: &Waker) -> String {
    match (waker.tid, waker.cpu) {
        (Some(Tid(0)), Some(cpu)) => format!("swapper/{cpu}"),
        _ => waker.name.as_str().to_owned(),
    }
}

/// Nothing where that is not known.
fn name_of_waker(waker: &Waker) -> Cell {
    let name = waker_name(waker);
    if name.is_empty() { Cell::None } else { Cell::Text(name) }
}

pub fn views() -> Vec<View> {
    vec![timehist::view(), latency::view()]
}
