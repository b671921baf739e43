//! `tracewing functions`: how often functions were called, how long that took, and from where.

mod diff;
mod graph;
mod replay;

use crate::flame_graph;
use crate::input::{Input, conclude};
use crate::losses;
use crate::no_result::{How, Needed, lacks_programs, say};
use crate::output::{count_of, print_warning};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, TableOptions, columns, heads, period};
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_analysis::{CallNode, Function, FunctionRow, Functions, FunctionsTable, Ran};
use tracewing_programs::symbols::Symbols;
use tracewing_units::Duration;
use tracewing_vocabulary::function::Named;

/// What `tracewing functions` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views()[..1])))]
pub struct Args {
    /// Print what called what, with the time of each
    #[arg(long, group = "what")]
    graph: bool,

    /// Print each call in the order of time; the first N with -n
    #[arg(long, group = "what")]
    replay: bool,

    /// Print what is different in another recording
    #[arg(long, value_name = "TRACE", group = "what")]
    diff: Option<PathBuf>,

    /// Write a flame graph: a picture of what called what, as SVG
    #[arg(long, value_name = "FILE", group = "what")]
    flame_graph: Option<PathBuf>,

    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

const HELP: &str = "\
Examples:
  tracewing record --functions -o my-trace -- ./server
  tracewing functions my-trace
  tracewing functions my-trace --sort self -n 10
  tracewing functions my-trace --graph
  tracewing functions my-trace --replay --tid 4711 -n 100
  tracewing functions my-trace --flame-graph server.svg
  tracewing functions before --diff after

Times are in ns in JSON and CSV. Of functions that have not returned when the recording ends, total and self have the \
time up to the last event of their thread, or until they begin again.

The program must have been built for it: with gcc's or clang's -finstrument-functions, or -pg -mfentry; or its Rust \
functions must have the attribute #[tracewing::traced].
";

/// Events that complete a call; for a probe, the return of its function.
const NEEDED: Needed = Needed {
    what: "about functions",
    names: &[Named::GLOBS[0], Named::GLOBS[1], "*%return"],
    how: How::Option(
        "--functions",
        "no function was called that is built for it (`tracewing functions --help` says how)",
    ),
};

pub fn run(args: &Args) -> Result<ExitCode> {
    let format = args.table.format();
    if args.replay {
        ensure!(args.table.sort.sort.is_none(), "--replay prints calls in the order of time, without --sort");
        return replay::run(&args.input, &args.table);
    }
    let mut functions = Functions::new();
    let ran = args.input.analyse(&mut functions)?;
    let mut names = Names::default();
    let mut found = functions.finish(&ran, &mut |function| names.of(function));
    found.lossy |= lacks_programs(&args.input)?;
    let mut out = screen::stdout(format.into());
    let has_ends = !ran.recorded.lacks_ends_of_functions && !ran.torn && !ran.some_cpus;
    let has_selves = !ran.recorded.lacks_functions;
    ensure!(
        has_ends || !(args.graph || args.flame_graph.is_some() || args.diff.is_some()),
        "{}; only the table counts calls",
        without_ends(&ran)
    );
    if let Some(file) = &args.flame_graph {
        ensure!(!found.rows.is_empty(), NEEDED.why_empty(&args.input, &ran)?);
        flame_graph::write(file, "functions", "ns", &flame_graph::stacks(&found.graph))?;
        print_totals(&mut out, &found, &ran, has_ends)?;
        if !has_selves {
            print_warning(WITHOUT_SOME);
        }
        return Ok(conclude(ran));
    }
    let table = match &args.diff {
        Some(other) => {
            let mut functions = Functions::new();
            let other = args.input.analyse_other(other, &mut functions)?;
            let found_there = functions.finish(&other, &mut |function| names.of(function));
            let has_selves = has_selves && !other.recorded.lacks_functions;
            let table = diff::table(&found.rows, &found_there.rows, has_selves, &args.table)?;
            fail_early(other)?;
            table
        }
        None if args.graph => graph::table(&found.graph, has_selves, &args.table)?,
        None => {
            let lines: Vec<_> = found.rows.iter().map(|row| Line { row, has_ends, has_selves }).collect();
            args.table.layout(&columns())?.table(&lines)
        }
    };
    table.write(&mut out, format, ("functions", &members(&found, &ran)), |out| {
        print_totals(out, &found, &ran, has_ends)
    })?;
    if found.rows.is_empty() {
        NEEDED.explain(&mut out, format, &args.input, &ran)?;
    } else if has_ends && !has_selves {
        say(&mut out, format, WITHOUT_SOME)?;
    }
    out.flush()?;
    Ok(conclude(ran))
}

/// The members of JSON in addition to the table.
fn members(found: &FunctionsTable, ran: &Ran) -> [(&'static str, Cell); 9] {
    let [lost, least_lost] = losses::members(ran);
    [
        ("duration_ns", Cell::Ns(found.duration_ns)),
        ("unmatched_ends", Cell::Count(found.unmatched.ends)),
        ("left", Cell::Count(found.unmatched.left)),
        ("lost", Cell::Count(found.unmatched.lost)),
        ("replaced", Cell::Count(found.unmatched.replaced)),
        ("unfinished", Cell::Count(found.unmatched.last)),
        ("not_followed", Cell::Count(found.unmatched.not_followed)),
        lost,
        least_lost,
    ]
}

/// A recording that is only read to be compared must be whole.
fn fail_early(ran: Ran) -> Result<()> {
    ran.failure.map_or(Ok(()), |failure| Err(failure.into()))
}

/// The names of functions.
#[derive(Default)]
struct Names {
    symbols: Symbols,
    known: HashMap<(String, u64), String>,
}

impl Names {
    /// As precisely as the recording and the files allow.
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

/// A line of the table.
struct Line<'f> {
    row: &'f FunctionRow,
    /// Whether it is known how long calls took.
    has_ends: bool,
    /// Whether it is known how long they took less the functions that they called.
    has_selves: bool,
}

impl Line<'_> {
    fn time(&self, ns: Option<Duration>) -> Cell {
        Cell::period(ns.filter(|_| self.has_ends))
    }

    fn own(&self, ns: Option<Duration>) -> Cell {
        self.time(ns.filter(|_| self.has_selves))
    }

    /// A sum over calls. If none of them has ended, 0 is no sum: nothing is known of them.
    fn sum(&self, ns: Duration) -> Option<Duration> {
        Some(ns).filter(|ns| !ns.is_zero() || self.row.calls.count > 0)
    }

    /// A figure of single calls, if any is known.
    fn of_calls(&self, ns: Duration) -> Option<Duration> {
        (self.row.calls.count > 0).then_some(ns)
    }
}

fn columns<'f>() -> Vec<Column<Line<'f>>> {
    columns! { line: Line<'f>;
        period "total" "total_ns" key, "time from begin to end; for recursive calls, of the outermost one"
            => line.time(line.sum(line.row.total_ns));
        period "total-avg" "total_avg_ns" high, "mean total of a call" => line.time(line.row.calls.mean_ns());
        period "total-min" "total_min_ns" low, "the shortest call" => line.time(line.of_calls(line.row.calls.min_ns));
        period "total-max" "total_max_ns" normal, "the longest call" => line.time(line.of_calls(line.row.calls.max_ns));
        period "total-stdev" "total_stdev_ns" low, "standard deviation of total"
            => line.time(line.row.calls.deviation_ns());
        period "self" "self_ns" high, "total without the recorded functions that it called"
            => line.own(line.sum(line.row.own_ns));
        period "self-avg" "self_avg_ns" normal, "mean self of a call" => line.own(line.row.own.mean_ns());
        period "self-min" "self_min_ns" low, "the shortest self of a call" => line.own(line.of_calls(line.row.own.min_ns));
        period "self-max" "self_max_ns" low, "the longest self of a call" => line.own(line.of_calls(line.row.own.max_ns));
        period "self-stdev" "self_stdev_ns" low, "standard deviation of self"
            => line.own(line.row.own.deviation_ns());
        number "calls" "calls" high, "how often it was called" => Cell::Count(line.row.count);
        text "function" "function" key + shrinking, "the function" => line.row.name.as_str().into();
    }
}

pub fn views() -> Vec<View> {
    vec![
        View::new("functions", heads(columns())),
        View::new("functions --graph", heads(graph::columns())),
        View::new("functions --replay", heads(replay::columns())),
        View::new("functions --diff", heads(diff::columns())),
    ]
}

/// Why it is not known how long calls took.
fn without_ends(ran: &Ran) -> &'static str {
    match ran.some_cpus {
        true => {
            "Only some CPUs are selected, and functions may end on others: how long calls took is unknown"
        }
        false => "The recording lacks some ends of functions (function:exit): how long calls took is unknown",
    }
}

const WITHOUT_SOME: &str = "Some of the recorded functions are left out, so `self` of the others is unknown.";

fn print_totals(
    out: &mut impl Write,
    found: &FunctionsTable,
    ran: &Ran,
    has_ends: bool,
) -> std::io::Result<()> {
    let unmatched = &found.unmatched;
    writeln!(
        out,
        "{} in {}",
        match found.rows.len() {
            // Events that were lost may be of any number of them.
            0 if found.lossy => "unknown calls of unknown functions".to_owned(),
            functions => {
                let calls = found.rows.iter().map(|row| row.count).sum::<u64>() as usize;
                format!("{} of {}", count_of(calls, "call"), count_of(functions, "function"))
            }
        },
        period(found.duration_ns)
    )?;
    if !has_ends {
        return writeln!(out, "{}.", without_ends(ran));
    }
    for (count, text) in [
        (
            unmatched.last,
            "calls had not returned at the end: total and self have what is certain of them, figures of single calls nothing",
        ),
        (
            unmatched.lost,
            "calls had not ended where events were lost: total and self have them up to there, figures of single calls do not",
        ),
        (
            unmatched.replaced,
            "calls had not returned when their process executed another program, and count as those at the end",
        ),
        (
            unmatched.left,
            "functions were left without returning: total and self have what is certain of them, figures of single calls nothing",
        ),
        (unmatched.ends, "ends of functions have no beginning and are left out"),
        (unmatched.not_followed, "calls were nested too deeply to be followed, and are left out"),
    ] {
        if count > 0 {
            writeln!(out, "{count} {text}.")?;
        }
    }
    if found.lossy {
        writeln!(
            out,
            "Events were lost: calls are missing, so total, self and calls are the least that they can be."
        )?;
    }
    Ok(())
}

/// What is below a place in the call graph, the longest first.
fn sorted(node: &CallNode) -> Vec<(&str, &CallNode)> {
    let mut below: Vec<_> = node.below.iter().map(|(name, node)| (name.as_str(), node)).collect();
    below.sort_by_key(|(_, node)| std::cmp::Reverse(node.total_ns));
    below
}
