//! `tracewing locks`: who waited for which lock, who had it, and how long locks were held.

use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::table::{Cell, Column, Order, Table, figure, hidden, milliseconds, text};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{Bins, Frame, Group, Histogram, Locks, LocksTable, Row, Subject, Sum};
use tracewing_symbols::Symbols;

/// What `tracewing locks` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing record --locks -o my-trace -- ./server
  tracewing locks my-trace
  tracewing locks my-trace --by chain --sort wait-max -n 10
  tracewing locks my-trace --histogram
  tracewing locks my-trace --pid 4711 --format csv > locks.csv

Times are in ns in JSON and CSV. acquired counts how often the lock was had, waited how \
often not at once, refused how often not at all (a try, or the time was up). wait is from the request to the end of the wait, hold from \
the acquisition to the release. owner is the thread that had the lock for most of the waiting. The kernel's locks (contention_begin) are \
told only where somebody waits. A wait that lasts at the end of the recording counts up to there, as refused.

--histogram prints how long critical sections were, and how many other locks a thread had when it acquired one (depth).")]
pub struct Args {
    /// What a line stands for
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print the lengths of critical sections and the depth of nesting instead
    #[arg(long, value_name = "BINS", num_args = 0..=1, default_missing_value = "log", require_equals = true)]
    histogram: Option<BinsArg>,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

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
    /// A place in the program that acquires locks
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

pub fn run(args: &Args) -> Result<ExitCode> {
    let group = match args.by {
        By::Lock => Group::Lock,
        By::Thread => Group::Thread,
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
    let mut out = anstream::stdout().lock();
    let (mut table, name) = match args.histogram {
        Some(_) => (of_histogram(&found.histogram), "histogram"),
        None => (of_rows(&found.rows, args.by), "locks"),
    };
    table.arrange(&args.order)?;
    table.write(&mut out, args.format, (name, &members), |out| print_totals(out, &found))?;
    out.flush()?;
    Ok(conclude(ran))
}

/// Behind the columns that say whose.
const FIGURES: [Column; 17] = [
    figure("acquired", "acquired"),
    figure("waited", "waited"),
    figure("refused", "refused"),
    figure("wait", "wait_ns"),
    figure("wait-avg", "wait_avg_ns"),
    figure("wait-max", "wait_max_ns"),
    hidden("wait_min_ns"),
    figure("held", "held"),
    figure("hold", "hold_ns"),
    figure("hold-avg", "hold_avg_ns"),
    figure("hold-max", "hold_max_ns"),
    hidden("hold_min_ns"),
    text("owner", "owner"),
    hidden("owner_tid"),
    hidden("owner_wait_ns"),
    text("kind", "kind"),
    text("at", "at"),
];

fn of_rows(rows: &[Row], by: By) -> Table {
    let what: &[Column] = match by {
        By::Lock => &[text("lock", "lock")],
        By::Thread => &[figure("thread", "tid")],
        By::Caller | By::Chain => &[],
    };
    let columns = [&[figure("process", "process"), text("name", "name")], what, &FIGURES].concat();
    let mut table = Table::new(columns);
    let mut symbols = Symbols::new();
    for row in rows {
        let what = match row.subject {
            Subject::Lock(lock) => Some(Cell::Text(format!("{lock:#x}"))),
            Subject::Thread(tid) => Some(Cell::Number(tid.into())),
            Subject::Caller(_) | Subject::Chain(_) => None,
        };
        let whose = [row.process.into(), row.process_name.as_str().into()];
        table.push(whose.into_iter().chain(what).chain(figures(row, &mut symbols)).collect());
    }
    table
}

fn figures(row: &Row, symbols: &mut Symbols) -> [Cell; 17] {
    let account = &row.account;
    let (waits, holds) = (&account.waits, &account.holds);
    let owner = account.owner();
    let called = |tid: i32| match row.owner_name.as_str() {
        "" => tid.to_string(),
        name => format!("{name}/{tid}"),
    };
    let chain: Vec<String> = row.frames.iter().map(|frame| place(frame, symbols)).collect();
    [
        Cell::Count(account.acquired),
        Cell::Count(waits.count),
        Cell::Count(account.refused),
        Cell::Period(waits.total_ns),
        mean(waits),
        longest(waits, waits.max_ns),
        longest(waits, waits.min_ns),
        Cell::Count(holds.count),
        Cell::Period(holds.total_ns),
        mean(holds),
        longest(holds, holds.max_ns),
        longest(holds, holds.min_ns),
        owner.map_or(Cell::None, |(tid, _)| Cell::Text(called(tid))),
        owner.map(|(tid, _)| tid).into(),
        owner.map_or(Cell::None, |(_, ns)| Cell::Ns(ns)),
        Cell::Text(account.kinds.names().join(", ")),
        Cell::Text(chain.join(" < ")),
    ]
}

fn mean(sum: &Sum) -> Cell {
    sum.mean_ns().map_or(Cell::None, Cell::Period)
}

fn longest(sum: &Sum, ns: u64) -> Cell {
    if sum.count == 0 { Cell::None } else { Cell::Period(ns) }
}

/// A place in a program, as precisely as anything tells.
fn place(frame: &Frame, symbols: &mut Symbols) -> String {
    let Some((path, address)) = &frame.image else { return format!("{:#x}", frame.address) };
    // It returns behind the call, which may be another function's first instruction.
    match symbols.at(path, address.saturating_sub(1)) {
        Some(symbol) => format!("{}+{:#x}", symbol.name, symbol.offset + 1),
        None => format!("{}+{address:#x}", path.rsplit('/').next().unwrap_or_default()),
    }
}

fn of_histogram(histogram: &Histogram) -> Table {
    let mut table = Table::new([
        text("what", "what"),
        figure("from", "from"),
        figure("to", "to"),
        figure("count", "count"),
        figure("%", "percent"),
        figure("up to here %", "cumulative_percent"),
    ]);
    let lengths: Vec<_> = histogram
        .lengths()
        .map(|(from, to, count)| (Cell::Period(from), to.map_or(Cell::None, Cell::Period), count))
        .collect();
    let depths: Vec<_> =
        histogram.depths().map(|(depth, count)| (Cell::Count(depth), Cell::Count(depth), count)).collect();
    for (what, bins) in [("length", lengths), ("depth", depths)] {
        let total: u64 = bins.iter().map(|(_, _, count)| count).sum();
        let percent = |count: u64| Cell::Rate(count as f64 * 100.0 / total.max(1) as f64);
        let mut so_far = 0;
        for (from, to, count) in bins {
            so_far += count;
            table.push(vec![what.into(), from, to, Cell::Count(count), percent(count), percent(so_far)]);
        }
    }
    table
}

fn print_totals(out: &mut impl Write, found: &LocksTable) -> std::io::Result<()> {
    let sum = |part: fn(&Row) -> u64| found.rows.iter().map(part).sum::<u64>();
    writeln!(
        out,
        "{} acquisitions, {} waits of {} ms together, in {} ms",
        sum(|row| row.account.acquired),
        sum(|row| row.account.waits.count),
        milliseconds(sum(|row| row.account.waits.total_ns)),
        milliseconds(found.duration_ns)
    )?;
    if found.incomplete > 0 {
        writeln!(
            out,
            "{} requests, acquisitions and releases lack their other half; only waits up to the end are in the table",
            found.incomplete
        )?;
    }
    if found.rows.is_empty() {
        writeln!(out, "The recording has no events about locks: make one with `tracewing record --locks`.")?;
    }
    Ok(())
}
