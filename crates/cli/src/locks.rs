//! `tracewing locks`: waits for locks, their owners during the waits, and how long locks were held.
//!
//! | module | what |
//! |---|---|
//! | `args` | the options |
//! | `rows` | the table itself |
//! | `histogram` | how long critical sections were, and how deep they were nested |
//! | `graph` | which threads and tasks wait for which |
//! | `remarks` | sums, and why times are unknown |

mod args;
mod graph;
mod histogram;
mod remarks;
mod rows;

pub use args::Args;

use crate::across::{HINT, warning};
use crate::input::{Input, conclude, warn_of_losses};
use crate::losses;
use crate::no_result::{How, Needed};
use crate::output::print_warning;
use crate::parts::{has_all, leaves_out};
use crate::screen;
use crate::table::reference::View;
use crate::table::{Cell, Column, Table, TableOptions, heads};
use anyhow::{Result, ensure};
use args::{By, GraphForm};
use remarks::{OTHER_RELEASES, PARTS, REFUSALS};
use rows::{Known, Sums};
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{Bins, Locks, LocksLack, LocksTable, Ran, Unpaired, Window};
use tracewing_programs::symbols::Symbols;
use tracewing_vocabulary::{kernel, lock, user_thread};

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
    how: How::Option(
        "--locks",
        "no program used a lock that can be recorded (`tracewing record --help` says which can)",
    ),
};

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut locks = Locks::new(args.by.into(), args.histogram.map(Bins::from).unwrap_or_default());
    let ran = args.input.analyse(&mut locks)?;
    let found = locks.finish(&ran);
    let format = args.table.format();
    let mut out = screen::stdout(format.into());
    if let Some(file) = &args.svg {
        ensure!(!found.rows.is_empty(), NEEDED.why_empty(&args.input, &ran)?);
        histogram::draw(&found.histogram, file)?;
    }
    if args.graph == Some(GraphForm::Dot) {
        write_dot(&mut out, &found, &args.input, &ran)?;
        return Ok(conclude(ran));
    }
    let mut symbols = Symbols::new();
    let (table, name, sums) = table(args, &found, &ran, &mut symbols)?;
    let [lost, least_lost] = losses::members(&ran);
    let duration = ("duration_ns", Cell::Ns(found.duration_ns));
    let members = [duration, lost, least_lost, ("incomplete", Cell::Count(found.incomplete))];
    table.write(&mut out, format, (name, &members), |out| {
        if args.graph.is_some() {
            graph::print_deadlocks(out, &found.graph, &mut symbols)?;
        }
        remarks::print_totals(out, &found, &sums)
    })?;
    remarks::warn_of_strangers(&found);
    match found.rows.is_empty() {
        true => NEEDED.explain(&mut out, format, &args.input, &ran)?,
        false => remarks::explain_unknown(&found, args, &ran, &mut out)?,
    }
    for across in &found.across_awaits {
        print_warning(&warning(across, ran.lossy.programs, &mut symbols));
    }
    if !found.across_awaits.is_empty() {
        print_warning(HINT);
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// The table that the options choose, its name in JSON, and sums over all locks.
fn table(
    args: &Args,
    found: &LocksTable,
    ran: &Ran,
    symbols: &mut Symbols,
) -> Result<(Table, &'static str, Sums)> {
    let is_torn = found.unpaired == Some(Unpaired::Events);
    let [acquisitions, requests, releases] = has_all(&PARTS, &args.input, is_torn)?;
    let refusals = !leaves_out(&REFUSALS, &args.input)?;
    let releases = releases && !leaves_out(&OTHER_RELEASES, &args.input)?;
    let subjects = args.by != By::Task || !ran.recorded.lacks_user_switches;
    let known = Known { acquisitions, requests, refusals, releases, subjects, lossy: ran.lossy };
    let lines = rows::lines(&found.rows, known, symbols);
    let sums = Sums::of(&lines);
    if args.histogram.is_some() {
        return Ok((histogram::table(&found.histogram, &args.table)?, "histogram", sums));
    }
    if args.graph.is_some() {
        return Ok((graph::table(&found.graph, &args.table, symbols)?, "graph", sums));
    }
    Ok((args.table.layout(&rows::columns(args.by))?.table(&lines), "locks", sums))
}

/// The graph for graphviz. What a table says below it is a warning here.
fn write_dot(out: &mut impl Write, found: &LocksTable, input: &Input, ran: &Ran) -> Result<()> {
    graph::write_dot(out, &found.graph)?;
    if found.rows.is_empty() {
        print_warning(&NEEDED.why_empty(input, ran)?);
    } else if found.lacks_owners == [false; 2] && found.graph.edges.is_empty() {
        print_warning(remarks::NO_WAITS);
    } else {
        let lines = remarks::without_owners(found).chain(remarks::forgotten_holders(found));
        lines.for_each(|line| print_warning(&line));
    }
    Ok(out.flush()?)
}

/// The columns of a running recording's locks.
pub fn live_columns<'r>() -> Vec<Column<rows::Line<'r>>> {
    rows::columns(By::Lock)
}

/// The locks of a running recording in the time of a window. What is not recorded of any kind of lock is
/// unknown of all.
pub fn live_table(window: &Window, options: &TableOptions, width: Option<usize>) -> Table {
    let lacks = window.ran.recorded.lacks_of_locks;
    let has = |lack: fn(&LocksLack) -> bool| !lacks.iter().any(lack);
    let requests = has(|lack| lack.requests);
    let known = Known {
        acquisitions: has(|lack| lack.acquisitions),
        requests,
        refusals: requests,
        releases: has(|lack| lack.releases),
        subjects: true,
        lossy: window.ran.lossy,
    };
    let lines = rows::lines(&window.locks.rows, known, &mut Symbols::new());
    options.layout_of_part(&live_columns()).within(width).table(&lines)
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
