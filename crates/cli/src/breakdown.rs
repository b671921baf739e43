//! `tracewing breakdown`: what each process did in each system call and outside of them, and what others did
//! for it.

mod known;
mod rows;
mod text;

use crate::cuts::{self, Why};
use crate::format::{TableFormat, TableFormatOption};
use crate::input::{Input, conclude, warn_of_losses};
use crate::losses;
use crate::no_result::{SWITCHES, say};
use crate::output::print_strangers;
use crate::parts::{Part as MissingPart, RECORD_KERNEL, explain_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Choice, Column, First, Layout, Sort, Table, TableOptions, heads};
use anyhow::Result;
use known::Known;
use rows::Line;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{Breakdown, BreakdownTable, ProcessBreakdown, Window};
use tracewing_programs::symbols::Symbols;

const HELP: &str = "\
Examples:
  tracewing record --system-wide -o my-trace -- make
  tracewing breakdown my-trace --processes 3 -n 5
  tracewing breakdown my-trace --process shop --sort ipc
  tracewing breakdown my-trace --from +1s --to +2s --format csv > breakdown.csv

Times are in ms (ns in JSON and CSV). Each row is a system call, the program's own code (user), or the work of a \
kernel thread (kernel). `unknown` is time for which no event shows what the process did.

`outside` is what others did for the process: threads that it woke, until they waited again, and interrupts that woke \
it. This time is also part of their own time. Below that are its threads, by the name of their first function if the \
program records it, otherwise by their own names. At the end is what all CPUs did, if the recording covers the whole \
machine (--system-wide) and no filter leaves out any thread. -n limits the system calls of each process, and the rows \
of the tables below them; the rows `user`, `kernel` and `unknown` are always printed.
";

/// What `tracewing breakdown` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&[view()])))]
pub struct Args {
    /// Print only the N processes with the most time on CPUs
    #[arg(long = "processes", value_name = "N")]
    busiest: Option<usize>,

    // Of the rows of each process.
    #[command(flatten)]
    sort: Sort,

    // Of each table of a process.
    #[command(flatten)]
    first: First,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    format: TableFormatOption,

    #[command(flatten)]
    input: Input,
}

/// Events that a recording may lack.
const PARTS: [MissingPart; 6] = [
    MissingPart::switches("all times are unknown; only counts are known"),
    MissingPart::system_calls(
        "whether `unknown` time was spent in them or in the code of the program is unknown (-)",
    ),
    MissingPart::wakes("waits for others, wakes, and what others did for a process are unknown"),
    MissingPart::interrupts(
        "their time is part of `running` or `idle`, and whether one of them ended a wait may be unknown (-)",
    ),
    MissingPart::softirqs(
        "whether another thread ended waits that a softirq ended, and what others did for a process, is unknown (-)",
    ),
    MissingPart::page_faults("`faults` are unknown"),
];

/// What events that were lost would have added to.
const LEAST: &str = "counts, and times of waits and of interrupts,";

pub fn run(args: &Args) -> Result<ExitCode> {
    let format = args.format.format;
    let layout = Layout::new(&rows::columns(), &args.sort, args.first, &args.choice, format)?;
    let mut breakdown = Breakdown::new();
    let ran = args.input.analyse(&mut breakdown)?;
    let mut found = breakdown.finish(&ran);
    let all = found.processes.len();
    let is_known = found.processes.iter().any(ProcessBreakdown::is_known);
    found.processes.truncate(args.busiest.unwrap_or(usize::MAX));
    let known = Known::of(&ran);
    let mut symbols = Symbols::new();
    let mut out = screen::stdout(format.into());
    match format {
        // Without switches all figures would be 0 or unknown: the reason is printed below instead.
        TableFormat::Table if !is_known => print_strangers(&mut out, found.strangers, &ran)?,
        TableFormat::Table => {
            text::print(&mut out, &found, known, &layout, &mut symbols)?;
            text::print_left_out(&mut out, all - found.processes.len())?;
            print_strangers(&mut out, found.strangers, &ran)?;
        }
        _ => {
            let cpus = found.machine.as_ref().map_or(Cell::None, |machine| Cell::Count(machine.cpus));
            let [lost, least_lost] = losses::members(&ran);
            let members = [
                ("duration_ns", Cell::Ns(found.duration_ns)),
                lost,
                least_lost,
                ("cpus", cpus),
                ("strangers", Cell::Count(found.strangers)),
            ];
            let table = flat(&found, known, &layout, &mut symbols);
            table.write(&mut out, format, ("rows", &members), |_| Ok(()))?;
        }
    }
    match is_known {
        true => {
            if let Some(unexplained) = known::unexplained(&found, known, &ran) {
                say(&mut out, format, &unexplained)?;
            }
            if let Some(lasting) = known::lasting(&found, known) {
                say(&mut out, format, &lasting)?;
            }
            if let Some(line) = losses::least(&ran, LEAST) {
                say(&mut out, format, &line)?;
            }
            explain_missing(&PARTS, RECORD_KERNEL, &mut out, format, &args.input)?;
            let waits = "`ipc`, `waits`, `via`, `blocked`, `ready` and `unknown`";
            cuts::explain(ran.cuts.waits, Why::OnCpus, waits, &mut out, format)?;
            let others = "`woke`, and times and numbers of `outside`,";
            cuts::explain(ran.cuts.lwps, Why::PartsOfThreads, others, &mut out, format)?;
        }
        false => SWITCHES.explain(&mut out, format, &args.input, &ran)?,
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// The columns of a running recording's system calls.
pub fn live_columns<'b>() -> Vec<Column<Line<'b>>> {
    rows::columns()
}

/// Those that text has of system calls; a line is of a process.
const OF_CALLS: [&str; 9] =
    ["process", "name", "activity", "running", "calls", "ipc", "blocked", "ready", "page_faults"];

/// The system calls of a running recording in the time of a window, those with most time on CPUs first.
pub fn live_table(window: &Window, options: &TableOptions, width: Option<usize>) -> Table {
    let known = Known::of(&window.ran);
    let calls = window.breakdown.processes.iter().flat_map(|process| rows::calls(process, known));
    let mut options = options.clone();
    options.sort.sort.get_or_insert_with(|| "running".to_owned());
    if options.choice.columns.is_empty() && !options.choice.wide && options.format() == TableFormat::Table {
        options.choice.columns = OF_CALLS.map(str::to_owned).to_vec();
    }
    let lines: Vec<_> = calls.collect();
    options.layout_of_part(&live_columns()).within(width).table(&lines)
}

pub fn view() -> View {
    View::new("breakdown", heads(rows::columns()))
}

/// All as one table, for programs. The order is that of the rows of each process.
fn flat<'b>(
    found: &'b BreakdownTable,
    known: Known,
    layout: &Layout<Line<'b>>,
    symbols: &mut Symbols,
) -> Table {
    let mut lines = Vec::new();
    for process in &found.processes {
        lines.extend(layout.arranged_with(rows::inside(process, known), |line| !line.is_call()));
        lines.extend(rows::unseen(process));
        lines.extend(layout.first(rows::outside(process, known)));
        lines.extend(layout.first(rows::threads(process, known, symbols)));
    }
    lines.extend(rows::machine(found));
    layout.as_they_are(&lines)
}
