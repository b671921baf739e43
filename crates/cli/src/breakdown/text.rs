//! `tracewing breakdown` for people, as in the paper's Figure 8: for each process what it did, what others
//! did for it, and where its threads began; then what all CPUs did.

use super::known::{Known, unknown_waits};
use super::rows::{self, Line};
use crate::format::TableFormat;
use crate::output::{count_of, print_broken, shown};
use crate::table::{Cell, Column, Layout, columns, milliseconds};
use anyhow::Result;
use std::io::Write;
use tracewing_analysis::{BreakdownRow as Row, BreakdownTable, Machine, ProcessBreakdown, total};
use tracewing_programs::symbols::Symbols;
use tracewing_units::Duration;

pub fn print<'b>(
    out: &mut impl Write,
    found: &'b BreakdownTable,
    known: Known,
    layout: &Layout<Line<'b>>,
    symbols: &mut Symbols,
) -> Result<()> {
    for process in &found.processes {
        print_process(out, process, known, layout, symbols)?;
    }
    match &found.machine {
        Some(machine) => print_machine(out, machine, found.duration_ns),
        None => Ok(()),
    }
}

/// Says how many processes `--processes` leaves out.
pub fn print_left_out(out: &mut impl Write, processes: usize) -> Result<()> {
    if processes > 0 {
        let more = count_of(processes, "more process");
        writeln!(out, "and {more}; without --processes, all are printed")?;
    }
    Ok(())
}

fn print_process<'b>(
    out: &mut impl Write,
    process: &'b ProcessBreakdown,
    known: Known,
    layout: &Layout<Line<'b>>,
    symbols: &mut Symbols,
) -> Result<()> {
    match (process.process, process.name.as_str()) {
        (None, _) => writeln!(out, "Threads whose process no event shows")?,
        (Some(number), "") => writeln!(out, "Process {number}")?,
        (Some(number), name) => writeln!(out, "Process {number} ({})", shown(name))?,
    }
    let inside = rows::inside(process, known);
    layout.as_they_are(layout.arranged_with(&inside, |line| !line.is_call())).print(out)?;
    print_rest(out, inside.iter().filter(|line| line.is_call()).count(), layout)?;
    print_totals(out, process, known)?;
    if !process.outside.is_empty() {
        writeln!(out)?;
        let lines = layout.first(&process.outside).into_iter();
        let lines = lines.map(|other| Short {
            name: rows::helper(other.process, &other.name),
            ns: rows::outside_ns(other, known),
            count: rows::outside_count(other, known),
        });
        print_short(out, "outside, for it", "times", &lines.collect::<Vec<_>>())?;
    }
    writeln!(out)?;
    let lines = layout.first(&process.entries).into_iter();
    let lines = lines.map(|entry| Short {
        name: rows::start(entry, symbols),
        ns: known.recorded.switches.then_some(entry.own_ns),
        count: Some(entry.threads),
    });
    print_short(out, "its threads", "threads", &lines.collect::<Vec<_>>())?;
    writeln!(out)?;
    Ok(())
}

/// Says how many of a process's system calls -n leaves out.
fn print_rest(out: &mut impl Write, calls: usize, layout: &Layout<Line<'_>>) -> Result<()> {
    let left_out = calls.saturating_sub(layout.rows());
    if left_out > 0 {
        writeln!(out, "and {}; --sort chooses which are first", count_of(left_out, "more system call"))?;
    }
    Ok(())
}

fn print_totals(out: &mut impl Write, process: &ProcessBreakdown, known: Known) -> Result<()> {
    let recorded = known.recorded;
    let unknown = total(process.rows.iter().map(|row| unknown_waits(row, known)));
    let sum = |is_known: bool, part: fn(&Row) -> Duration| {
        let ns = total(process.rows.iter().map(part));
        // Those that are unknown, or lost, may be some.
        let is_some = !ns.is_zero() || unknown.is_zero() && !known.lossy.kernel;
        match is_known && recorded.switches && is_some {
            true => milliseconds(ns) + " ms",
            false => "an unknown time".to_owned(),
        }
    };
    let has_causes = known.has_causes_of(process.unexplained());
    let running = milliseconds(process.running_ns()) + " ms";
    let unknown = match unknown.is_zero() {
        true => String::new(),
        false => format!("; what {} ms of waiting were for is unknown", milliseconds(unknown)),
    };
    let line = format!(
        "In the process: {} on CPUs, {} of it in interrupts; waited {} for other threads, {} for anything else, {} for a CPU{unknown}",
        if recorded.switches { &running } else { "an unknown time" },
        sum(recorded.interrupts, Row::interrupts_ns),
        sum(has_causes, |row| row.ipc().ns),
        sum(has_causes, |row| row.blocked_ns),
        sum(known.has_ready(), |row| row.ready_ns),
    );
    print_broken(out, 0, &line)?;
    if !process.unseen_ns.is_zero() {
        writeln!(out, "For {} ms no event shows where its threads were", milliseconds(process.unseen_ns))?;
    }
    Ok(())
}

/// What others did, or threads that begin at one place.
struct Short {
    name: String,
    ns: Option<Duration>,
    count: Option<u64>,
}

fn print_short(
    out: &mut impl Write,
    title: &'static str,
    counted: &'static str,
    lines: &[Short],
) -> Result<()> {
    let columns = [
        Column::text(title, "name", "name", |line: &Short| line.name.as_str().into()).key(),
        Column::duration("", "ns", "time", |line: &Short| Cell::ns(line.ns)).key(),
        Column::number(counted, "count", "how many", |line: &Short| Cell::count(line.count)),
    ];
    Ok(Layout::all(&columns, TableFormat::Table).table(lines).print(out)?)
}

/// A part of the time of all CPUs.
struct Share {
    name: &'static str,
    ns: Option<Duration>,
    percent: Option<f64>,
}

fn print_machine(out: &mut impl Write, machine: &Machine, duration_ns: Duration) -> Result<()> {
    let whole = (duration_ns * machine.cpus).max(Duration::from_ns(1));
    let parts = rows::parts_of(machine).into_iter().chain([("together", Some(machine.total_ns()))]);
    let columns = columns! { share: Share;
        text "all CPUs" "name" key, "what they did" => share.name.into();
        duration "" "ns" key, "time" => Cell::ns(share.ns);
        percent "" "percent" key, "part of the time of all CPUs"
            => share.percent.map_or(Cell::None, Cell::Rate);
    };
    let percent = |ns: Duration| ns.percent_of(whole);
    let shares: Vec<_> = parts.map(|(name, ns)| Share { name, ns, percent: ns.map(percent) }).collect();
    Layout::all(&columns, TableFormat::Table).table(&shares).print(out)?;
    let cpus = if machine.cpus == 1 { "CPU" } else { "CPUs" };
    writeln!(out, "of {} {cpus} x {} ms", machine.cpus, milliseconds(duration_ns))?;
    Ok(())
}
