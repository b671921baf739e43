//! `tracewing functions`: how often functions were called, how long that took, and from where.

mod diff;
mod graph;
mod replay;

use crate::flame_graph;
use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::nothing::{How, Needed};
use crate::screen;
use crate::table::{Cell, Head, Order, Table, figure, milliseconds, text};
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_analysis::{CallNode, Figures, Function, FunctionRow, Functions, FunctionsTable, Ran};
use tracewing_symbols::Symbols;

/// What `tracewing functions` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing record --functions -o my-trace -- ./server
  tracewing functions my-trace
  tracewing functions my-trace --sort self -n 10
  tracewing functions my-trace --graph
  tracewing functions my-trace --replay --tid 4711 -n 100
  tracewing functions my-trace --flame-graph server.svg
  tracewing functions before --diff after

Times are in ns in JSON and CSV. total is from begin to end, of the outermost call where a function calls itself; self is that less \
what functions took that were called and recorded; avg, min, max and stdev (standard deviation) are those of single calls. Functions that \
last at the end of the recording count up to the last event of their thread.

The server must have been built for it: by gcc or clang with -finstrument-functions, or with -pg -mfentry; or its Rust functions \
have the attribute #[tracewing::traced].")]
pub struct Args {
    /// Print what called what, with the time of each
    #[arg(long, group = "what")]
    graph: bool,

    /// Print each call, as far as -n goes
    #[arg(long, group = "what")]
    replay: bool,

    /// Print what is different in another recording
    #[arg(long, value_name = "TRACE", group = "what")]
    diff: Option<PathBuf>,

    /// Write a flame graph: a picture of what called what, as SVG
    #[arg(long, value_name = "FILE", group = "what")]
    flame_graph: Option<PathBuf>,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

/// Those by which there is a call; of a probe, where its function returns.
const NEEDED: Needed = Needed {
    what: "about functions",
    names: &["function:entry*", "function:exit*", "*%return"],
    how: How::Option("--functions", "none was called that was built to tell of it (docs/functions.md)"),
};

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.replay {
        ensure!(
            args.format == TableFormat::Table,
            "--replay is for people: `tracewing list` prints events for programs"
        );
        return replay::run(&args.input, args.order.rows);
    }
    let mut functions = Functions::new();
    let ran = args.input.analyse(&mut functions)?;
    let mut names = Names::default();
    let found = functions.finish(&ran, &mut |function| names.of(function));
    let mut out = screen::stdout(args.format.into());
    let members = [
        ("duration_ns", Cell::Ns(found.duration_ns)),
        ("unmatched_ends", Cell::Count(found.unmatched.ends)),
        ("left", Cell::Count(found.unmatched.left)),
        ("lost", Cell::Count(found.unmatched.lost)),
        ("replaced", Cell::Count(found.unmatched.replaced)),
        ("unfinished", Cell::Count(found.unmatched.last)),
        ("not_followed", Cell::Count(found.unmatched.not_followed)),
    ];
    let has_ends = !ran.recorded.lacks_ends_of_functions && !ran.torn;
    ensure!(
        has_ends || !(args.graph || args.flame_graph.is_some() || args.diff.is_some()),
        "{WITHOUT_ENDS}; only the table counts calls"
    );
    if let Some(file) = &args.flame_graph {
        ensure!(!found.rows.is_empty(), NEEDED.why_nothing(&args.input, &ran)?);
        flame_graph::write(file, "functions", "ns", &flame_graph::stacks(&found.graph))?;
        print_totals(&mut out, &found, has_ends)?;
        return Ok(conclude(ran));
    }
    let mut table = match &args.diff {
        Some(other) => {
            let mut functions = Functions::new();
            let other = args.input.analyse_other(other, &mut functions)?;
            let found_there = functions.finish(&other, &mut |function| names.of(function));
            let table = diff::table(&found.rows, &found_there.rows);
            fail_early(other)?;
            table
        }
        None if args.graph => graph::table(&found.graph, args.format),
        None => of_rows(&found.rows, has_ends),
    };
    table.arrange(&args.order)?;
    table.write(&mut out, args.format, ("functions", &members), |out| print_totals(out, &found, has_ends))?;
    if found.rows.is_empty() {
        NEEDED.tell(&mut out, args.format, &args.input, &ran)?;
    }
    out.flush()?;
    Ok(conclude(ran))
}

/// A recording that is only read to be compared must be whole.
fn fail_early(ran: Ran) -> Result<()> {
    ran.failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// What functions are called.
#[derive(Default)]
struct Names {
    symbols: Symbols,
    known: HashMap<(String, u64), String>,
}

impl Names {
    /// As precisely as anything tells.
    fn of(&mut self, function: &Function) -> String {
        let (path, address) = match function {
            Function::Named(name) => return name.clone(),
            Function::InMemory(address) => return format!("{address:#x}"),
            Function::InFile { path, address } => (path, *address),
        };
        let symbols = &mut self.symbols;
        let name = self.known.entry((path.clone(), address)).or_insert_with(|| symbols.name(path, address));
        name.clone()
    }
}

const COLUMNS: [Head; 12] = [
    figure("total", "total_ns"),
    figure("total-avg", "total_avg_ns"),
    figure("total-min", "total_min_ns"),
    figure("total-max", "total_max_ns"),
    figure("total-stdev", "total_stdev_ns"),
    figure("self", "self_ns"),
    figure("self-avg", "self_avg_ns"),
    figure("self-min", "self_min_ns"),
    figure("self-max", "self_max_ns"),
    figure("self-stdev", "self_stdev_ns"),
    figure("calls", "calls"),
    text("function", "function"),
];

const WITHOUT_ENDS: &str =
    "not all ends of functions (function:exit) are in the recording: how long calls took is not known";

fn of_rows(rows: &[FunctionRow], has_ends: bool) -> Table {
    let mut table = Table::by_position(COLUMNS);
    for row in rows {
        let [total, own] = [figures(&row.calls), figures(&row.own)];
        let mut cells = vec![Cell::Period(row.total_ns)];
        cells.extend(total);
        cells.push(Cell::Period(row.own.sum_ns));
        cells.extend(own);
        if !has_ends {
            cells.fill(Cell::None);
        }
        cells.extend([Cell::Count(row.calls.count), row.name.as_str().into()]);
        table.push(cells);
    }
    table
}

fn figures(figures: &Figures) -> [Cell; 4] {
    let or_none = |ns: Option<u64>| ns.map_or(Cell::None, Cell::Period);
    [
        or_none(figures.mean_ns()),
        Cell::Period(figures.min_ns),
        Cell::Period(figures.max_ns),
        or_none(figures.deviation_ns()),
    ]
}

fn print_totals(out: &mut impl Write, found: &FunctionsTable, has_ends: bool) -> std::io::Result<()> {
    let unmatched = &found.unmatched;
    writeln!(
        out,
        "{} calls of {} functions in {} ms",
        found.rows.iter().map(|row| row.calls.count).sum::<u64>(),
        found.rows.len(),
        milliseconds(found.duration_ns)
    )?;
    if !has_ends {
        return writeln!(out, "{WITHOUT_ENDS}.");
    }
    for (count, text) in [
        (
            unmatched.last,
            "calls last at the end of what was read, and count up to the last event of their thread",
        ),
        (unmatched.lost, "calls ended where events were lost, and count up to there"),
        (unmatched.replaced, "calls lasted until their process executed another program"),
        (
            unmatched.left,
            "functions were left without returning; they count until a function around them returned",
        ),
        (unmatched.ends, "ends of functions have no begin, and are left out"),
        (unmatched.not_followed, "calls were within too many others to be followed, and are left out"),
    ] {
        if count > 0 {
            writeln!(out, "{count} {text}.")?;
        }
    }
    if found.lossy {
        writeln!(out, "Events were lost: calls are missing, or last too long.")?;
    }
    Ok(())
}

/// What is below a place in the call graph, the longest first.
fn sorted(node: &CallNode) -> Vec<(&str, &CallNode)> {
    let mut below: Vec<_> = node.below.iter().map(|(name, node)| (name.as_str(), node)).collect();
    below.sort_by_key(|(_, node)| std::cmp::Reverse(node.total_ns));
    below
}
