//! What `tracewing locks` accepts.

use crate::input::Input;
use crate::table::TableOptions;
use crate::table::reference;
use std::path::PathBuf;
use tracewing_analysis::{Bins, Group};

const HELP: &str = "\
Examples:
  tracewing record --locks -o my-trace -- ./server
  tracewing locks my-trace
  tracewing locks my-trace --by chain --sort wait-max -n 10
  tracewing locks my-trace --histogram=linear --svg sections.svg
  tracewing locks my-snapshot --graph
  tracewing locks my-trace --graph=dot | dot -Tsvg > waits.svg
  tracewing locks my-trace --process 4711 --format csv > locks.csv

Times are in ns in JSON and CSV. The kernel's locks (contention_begin) are recorded only if a thread waits for them, \
and their hold times are unknown. A futex row is a wait in the kernel that no other event explains, shown by its \
address; locks of Rust's standard library and of parking_lot are among these (those of tracewing::sync have owners, \
holds and places). If a wait lasts until its thread or the \
recording ends, the time until then is included, and the wait is counted neither as acquired nor as refused. A task \
that is not instrumented is shown by the place of its request. An unknown time is -, with the reason below the table.

A warning names each lock that a task held across an .await for 1 ms or longer while others waited for it.

--histogram prints how long critical sections were, and how many other locks a thread held when it acquired one \
(depth). Critical sections whose beginning or end is missing are left out and counted.

--graph prints which threads and tasks waited for which others, and deadlocks: threads and tasks that wait for each \
other at the end of the recording or snapshot.
";

/// What `tracewing locks` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&super::views()[..3])))]
pub struct Args {
    /// What each row describes
    #[arg(long, value_enum, default_value_t)]
    pub by: By,

    /// Instead of the table, print the lengths of critical sections and the depth of nesting
    #[arg(long, value_name = "BINS", num_args = 0..=1, default_missing_value = "log", require_equals = true)]
    pub histogram: Option<BinsArg>,

    /// Also draw the histogram into FILE
    #[arg(long, value_name = "FILE", requires = "histogram")]
    pub svg: Option<PathBuf>,

    /// Instead of the table, print which threads and tasks wait for which, and deadlocks
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        default_missing_value = "table",
        require_equals = true,
        conflicts_with = "histogram"
    )]
    pub graph: Option<GraphForm>,

    #[command(flatten)]
    pub table: TableOptions,

    #[command(flatten)]
    pub input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum By {
    /// A lock
    #[default]
    Lock,
    /// A thread
    Thread,
    /// A task of an async runtime, or another user thread; one row for threads outside of tasks
    Task,
    /// A place in the program that acquires locks; for the kernel's locks, the system call
    Caller,
    /// A call chain; one row for acquisitions without one
    Chain,
}

/// How wide bins are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BinsArg {
    /// Each twice as wide as the one before, from 0.1 µs
    Log,
    /// Of 0.1 µs each
    Linear,
}

/// How a graph is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphForm {
    /// As --format says
    Table,
    /// For graphviz
    Dot,
}

impl From<By> for Group {
    fn from(by: By) -> Self {
        match by {
            By::Lock => Group::Lock,
            By::Thread => Group::Thread,
            By::Task => Group::Task,
            By::Caller => Group::Caller,
            By::Chain => Group::Chain,
        }
    }
}

impl From<BinsArg> for Bins {
    fn from(bins: BinsArg) -> Self {
        match bins {
            BinsArg::Linear => Bins::Linear,
            BinsArg::Log => Bins::Log,
        }
    }
}
