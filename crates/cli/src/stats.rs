//! `tracewing stats`: how many events there are and how often they come, as tables, JSON or CSV.

use crate::format::TableFormat;
use crate::input::Input;
use crate::nothing::{ANY, say};
use crate::output::print_error;
use crate::screen;
use crate::table::{Cell, Table, figure, text};
use anyhow::Result;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::total;
use tracewing_trace::{Count, Statistics};

/// What `tracewing stats` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing stats my-trace                         everything
  tracewing stats my-trace -e 'sched_*'            scheduler events
  tracewing stats my-trace --from +1s --to +2s     one second
  tracewing stats my-trace --format csv > stats.csv

Rates are events in a second, over the time from the first counted event to the last. Bytes are those of the event \
records with their headers. A process is told by vpid or pid in the events' context, or by tid where tracewing recorded \
whose thread that is; - stands for the rest. Losses are those of the streams, whichever events are counted.")]
pub struct Args {
    /// Print only the first N rows of each table
    #[arg(short = 'n', long = "count", value_name = "N")]
    count: Option<usize>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (recording, filter) = args.input.open()?;
    let mut statistics = Statistics::collect(&recording, &filter)?;
    // What was lost is told of all streams.
    let lost_events = total(statistics.streams.iter().map(|row| row.lost_events));
    if let Some(count) = args.count {
        statistics.events.truncate(count);
        statistics.streams.truncate(count);
        statistics.processes.truncate(count);
    }
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TableFormat::Table => print(&mut out, &statistics, lost_events)?,
        TableFormat::Json => {
            let mut all = serde_json::to_value(&statistics)?;
            add_rates(&mut all, statistics.duration_ns);
            serde_json::to_writer(&mut out, &all).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => csv(&mut out, &statistics)?,
    }
    if statistics.total.events == 0 && statistics.errors.is_empty() {
        say(&mut out, args.format, &ANY.why_nothing_in(&args.input)?)?;
    }
    out.flush()?;
    let failed = !statistics.errors.is_empty();
    statistics.errors.into_iter().for_each(|error| print_error(&error.into()));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Gives each count of events, however deep, its rate.
fn add_rates(value: &mut Value, duration_ns: u64) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| add_rates(value, duration_ns)),
        Value::Object(members) => {
            members.values_mut().for_each(|value| add_rates(value, duration_ns));
            if let Some(events) = members.get("events").and_then(Value::as_u64) {
                let rate = Count { events, bytes: 0 }.per_second(duration_ns);
                members.insert("per_second".to_owned(), rate.into());
            }
        }
        _ => {}
    }
}

fn print(out: &mut impl Write, statistics: &Statistics, lost_events: u64) -> std::io::Result<()> {
    let counted = |count: &Count| {
        let rate = count.per_second(statistics.duration_ns).map_or(Cell::None, Cell::Rate);
        [Cell::Count(count.events), rate, Cell::Count(count.bytes)]
    };
    let counts = [figure("events", "events"), figure("per second", "per_second"), figure("bytes", "bytes")];
    let (name, trace) = (text("name", "name"), text("trace", "trace"));
    let mut events = Table::by_position([&counts[..], &[name, trace]].concat());
    for row in &statistics.events {
        let names = [row.name.as_str().into(), row.trace.as_str().into()];
        events.push(counted(&row.count).into_iter().chain(names).collect());
    }
    let lost = [figure("lost events", "lost_events"), figure("lost packets", "lost_packets")];
    let mut streams = Table::by_position([&counts[..], &lost, &[text("stream", "name"), trace]].concat());
    for row in &statistics.streams {
        let lost = [Cell::Count(row.lost_events), Cell::Count(row.lost_packets)];
        let names = [row.stream.as_str().into(), row.trace.as_str().into()];
        streams.push(counted(&row.count).into_iter().chain(lost).chain(names).collect());
    }
    let mut processes = Table::by_position([&counts[..], &[figure("process", "name")]].concat());
    for row in &statistics.processes {
        let process = row.process.map_or(Cell::None, Cell::Number);
        processes.push(counted(&row.count).into_iter().chain([process]).collect());
    }
    for table in [events, streams, processes] {
        table.print(out)?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "{} events, {} bytes, {:.9} s, {lost_events} events lost",
        statistics.total.events,
        statistics.total.bytes,
        statistics.duration_ns as f64 / 1e9
    )
}

fn csv(out: &mut impl Write, statistics: &Statistics) -> std::io::Result<()> {
    let mut table = Table::by_position([
        text("kind", "kind"),
        text("trace", "trace"),
        text("name", "name"),
        figure("events", "events"),
        figure("per second", "per_second"),
        figure("bytes", "bytes"),
        figure("lost events", "lost_events"),
        figure("lost packets", "lost_packets"),
    ]);
    let mut row = |kind: &str, trace: Cell, name: Cell, count: &Count, lost: [Cell; 2]| {
        let rate = count.per_second(statistics.duration_ns).map_or(Cell::None, Cell::Rate);
        let counts = [Cell::Count(count.events), rate, Cell::Count(count.bytes)];
        table.push([kind.into(), trace, name].into_iter().chain(counts).chain(lost).collect());
    };
    for event in &statistics.events {
        let lost = [Cell::None, Cell::None];
        row("event", event.trace.as_str().into(), event.name.as_str().into(), &event.count, lost);
    }
    for stream in &statistics.streams {
        let lost = [Cell::Count(stream.lost_events), Cell::Count(stream.lost_packets)];
        row("stream", stream.trace.as_str().into(), stream.stream.as_str().into(), &stream.count, lost);
    }
    for process in &statistics.processes {
        let name = process.process.map_or(Cell::None, Cell::Number);
        row("process", Cell::None, name, &process.count, [Cell::None, Cell::None]);
    }
    table.csv(out)
}
