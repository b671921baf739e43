//! `tracewing locks`: who waited for which lock, who had it, and how long locks were held.
//!
//! | module | prints |
//! |---|---|
//! | `rows` | the table itself |
//! | `histogram` | how long critical sections were, and how deep they were nested |
//! | `graph` | who waits for whom |

mod graph;
mod histogram;
mod rows;

use crate::across::warning;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{How, Needed, say};
use crate::output::{count_of, print_warning, shown};
use crate::parts::{Part, has_all, tell_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, TableOptions, heads, milliseconds};
use anyhow::{Result, ensure};
use rows::Known;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_analysis::{Bins, Group, Locks, LocksTable, Row, Unpaired, total};
use tracewing_programs::symbols::Symbols;
use tracewing_vocabulary::{kernel, lock, user_thread};

const HELP: &str = "\
Examples:
  tracewing record --locks -o my-trace -- ./server
  tracewing locks my-trace
  tracewing locks my-trace --by chain --sort wait-max -n 10
  tracewing locks my-trace --histogram=linear --svg sections.svg
  tracewing locks my-snapshot --graph
  tracewing locks my-trace --graph=dot | dot -Tsvg > waits.svg
  tracewing locks my-trace --process 4711 --format csv > locks.csv

Times are in ns in JSON and CSV. The kernel's locks (contention_begin) are in the recording only where somebody waits, and have no holds. \
futex is a wait in the kernel of which no other event tells what for: \
locks of Rust's standard library and parking_lot among them, by the address that the kernel was given. A wait that lasts at the end of the recording counts up to there, as refused. \
A task that is not instrumented is known by the place of its request only. A time that cannot be known is -, with the reason below the table.

A warning names each lock of tasks that was held across an .await, for 1 ms or longer, while others waited for it.

--histogram prints how long critical sections were, and how many other locks a thread had when it acquired one (depth). \
Sequences that lack their begin or their end are left out and counted.

--graph prints who waited for whom, and deadlocks: those that wait for each other when the recording, or the snapshot of a flight \
recorder, ends.
";

/// What `tracewing locks` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views()[..3])))]
pub struct Args {
    /// What a line stands for
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print the lengths of critical sections and the depth of nesting instead
    #[arg(long, value_name = "BINS", num_args = 0..=1, default_missing_value = "log", require_equals = true)]
    histogram: Option<BinsArg>,

    /// Draw the histogram into FILE as well
    #[arg(long, value_name = "FILE", requires = "histogram")]
    svg: Option<PathBuf>,

    /// Print who waits for whom instead, and deadlocks
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        default_missing_value = "table",
        require_equals = true,
        conflicts_with = "histogram"
    )]
    graph: Option<GraphForm>,

    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum By {
    /// A lock
    #[default]
    Lock,
    /// A thread
    Thread,
    /// A user thread, such as a task of an async runtime; what threads do for none is a line together
    Task,
    /// A place in the program that acquires locks; for the kernel's locks, the system call
    Caller,
    /// A call chain; acquisitions without one are a line together
    Chain,
}

/// How wide bins are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BinsArg {
    /// Each twice as wide as the one before, from 0.1 µs
    Log,
    /// Of 0.1 µs each
    Linear,
}

/// How a graph is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GraphForm {
    /// As --format says
    Table,
    /// For graphviz
    Dot,
}

/// Those by which there is a line; futex system calls are in every recording of the kernel's.
const NEEDED: Needed = Needed {
    what: "about locks",
    names: &[
        lock::Acquired::NAME,
        lock::Requested::NAME,
        lock::Refused::NAME,
        lock::Released::NAME,
        lock::ConditionWait::NAME,
        lock::ConditionWoken::NAME,
        lock::BarrierWait::NAME,
        lock::BarrierPassed::NAME,
        user_thread::Acquired::NAME,
        user_thread::Wait::NAME,
        kernel::ContentionBegin::NAME,
        kernel::ContentionEnd::NAME,
    ],
    how: How::Option("--locks", "no program used one that can be seen (docs/reference/locks.md)"),
};

/// How there would be all of [`PARTS`].
const RECORD_ALL: &str =
    "`tracewing record` without -e and --exclude records all that a program tells of its locks.";

/// What is recorded by events that a recording of locks may be without.
const PARTS: [Part; 3] = [
    Part {
        what: "acquisitions (lock:acquired, user_thread:acquired)",
        names: &[lock::Acquired::NAME, user_thread::Acquired::NAME],
        without: "no acquisition is known, nor any critical section",
    },
    Part {
        what: "requests (lock:requested, user_thread:wait)",
        names: &[lock::Requested::NAME, user_thread::Wait::NAME],
        without: "how long acquisitions waited is not known, nor who had the lock meanwhile",
    },
    Part {
        what: "releases (lock:released, user_thread:released)",
        names: &[lock::Released::NAME, user_thread::Released::NAME],
        without: "how long locks were held is not known",
    },
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let group = match args.by {
        By::Lock => Group::Lock,
        By::Thread => Group::Thread,
        By::Task => Group::Task,
        By::Caller => Group::Caller,
        By::Chain => Group::Chain,
    };
    let bins = match args.histogram {
        Some(BinsArg::Linear) => Bins::Linear,
        _ => Bins::Log,
    };
    let mut locks = Locks::new(group, bins);
    let ran = args.input.analyse(&mut locks)?;
    let found = locks.finish(&ran);
    let members =
        [("duration_ns", Cell::Ns(found.duration_ns)), ("incomplete", Cell::Count(found.incomplete))];
    let format = args.table.format();
    let mut out = screen::stdout(format.into());
    if let Some(file) = &args.svg {
        ensure!(!found.rows.is_empty(), NEEDED.why_nothing(&args.input, &ran)?);
        histogram::draw(&found.histogram, file)?;
    }
    if args.graph == Some(GraphForm::Dot) {
        graph::write_dot(&mut out, &found.graph)?;
        if found.rows.is_empty() {
            print_warning(&NEEDED.why_nothing(&args.input, &ran)?);
        } else if found.graph.edges.is_empty() {
            print_warning("No thread or task waited for another one.");
        }
        out.flush()?;
        return Ok(conclude(ran));
    }
    let mut symbols = Symbols::new();
    let (table, name) = match (args.histogram, args.graph) {
        (Some(_), _) => (histogram::table(&found.histogram, &args.table)?, "histogram"),
        (None, Some(_)) => (graph::table(&found.graph, &args.table, &mut symbols)?, "graph"),
        (None, None) => {
            let is_torn = found.unpaired == Some(Unpaired::Events);
            let [acquisitions, requests, releases] = has_all(&PARTS, &args.input, is_torn)?;
            let known = Known { acquisitions, requests, releases };
            let lines = rows::lines(&found.rows, known, &mut symbols);
            (args.table.layout(&rows::columns(args.by))?.table(&lines), "locks")
        }
    };
    table.write(&mut out, format, (name, &members), |out| {
        if args.graph.is_some() {
            graph::print_deadlocks(out, &found.graph, &mut symbols)?;
        }
        print_totals(out, &found)
    })?;
    if found.strangers > 0 {
        print_warning(&format!(
            "No event tells the process of {}: locks of several processes at one address can be one in lines without a \
             process. Larger buffers have more of what threads tell; so do the kernel's events, where they were left out.",
            count_of(found.strangers, "thread")
        ));
    }
    if found.rows.is_empty() {
        NEEDED.tell(&mut out, format, &args.input, &ran)?;
    } else {
        tell_unknown(&found, args, &mut out)?;
    }
    for across in &found.across_awaits {
        print_warning(&warning(across, &mut symbols));
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

pub fn views() -> Vec<View> {
    vec![
        View::new("locks", heads(rows::columns(By::Lock))),
        View::new("locks --by thread", heads(rows::columns(By::Thread))),
        View::new("locks --by task", heads(rows::columns(By::Task))),
        View::new("locks --by caller, locks --by chain", heads(rows::columns(By::Chain))),
        View::new("locks --graph", heads(graph::columns())),
        View::new("locks --histogram", heads(histogram::columns())),
    ]
}

/// Says why times are not known.
fn tell_unknown(found: &LocksTable, args: &Args, out: &mut impl Write) -> Result<()> {
    if let Some(unpaired) = found.unpaired {
        let why = match unpaired {
            Unpaired::Events => "the filter leaves out some of the events that tell them together",
            Unpaired::Cpus => "only some CPUs are looked at, and they may begin or end on another one",
            Unpaired::Tids => {
                "a task may begin to wait on one thread and end on another (--task chooses tasks, --process all of a program)"
            }
        };
        say(out, args.table.format(), &format!("Waits and holds are not known (-): {why}."))?;
    } else if found.rows.iter().any(|row| row.account.unpaired > 0) {
        let why = "Waits and holds of tasks that are not instrumented are not known (-): the program was built with a \
                   tracewing-tokio whose events do not say which of them belong together.";
        say(out, args.table.format(), why)?;
    }
    if found.rows.iter().any(is_of_programs) {
        tell_missing(&PARTS, RECORD_ALL, out, args.table.format(), &args.input)?;
    }
    Ok(())
}

/// Whether there are locks in it that programs tell of, not only the kernel.
fn is_of_programs(row: &Row) -> bool {
    let names = row.account.kinds.names();
    names.iter().any(|name| *name != "futex" && !name.starts_with("kernel"))
}

fn print_totals(out: &mut impl Write, found: &LocksTable) -> std::io::Result<()> {
    let sum = |part: fn(&Row) -> u64| total(found.rows.iter().map(part));
    let waits = match found.rows.iter().any(|row| row.account.unpaired > 0) {
        true => "unknown waits".to_owned(),
        false => format!(
            "{} waits of {} ms together",
            sum(|row| row.account.waits.count),
            milliseconds(sum(|row| row.account.waits.total_ns))
        ),
    };
    let acquired = match found.unpaired {
        Some(Unpaired::Events) => "unknown".to_owned(),
        _ => sum(|row| row.account.acquired).to_string(),
    };
    writeln!(out, "{acquired} acquisitions, {waits}, in {} ms", milliseconds(found.duration_ns))?;
    if found.incomplete > 0 {
        writeln!(
            out,
            "{} requests, acquisitions and releases lack their other half and are left out; only waits up to the end, and from the begin on, are in the table",
            found.incomplete
        )?;
    }
    for (process, function, path) in &found.shadowed {
        let process = process.map_or_else(|| "?".to_owned(), |process| process.to_string());
        let what = match function.as_str() {
            "malloc" => "its allocator's locks are among the program's",
            _ => "locks that the program takes by it may be missing",
        };
        writeln!(out, "process {process} has {function} of {}: {what}", shown(path))?;
    }
    Ok(())
}
