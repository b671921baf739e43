//! `tracewing stats`: how many events there are and how often they come, as tables, JSON or CSV.

use crate::format::TableFormat;
use crate::input::Input;
use crate::nothing::{ANY, say};
use crate::output::print_error;
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, Layout, columns, heads};
use anyhow::Result;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::total;
use tracewing_trace::{Count, Statistics};

const HELP: &str = "\
Examples:
  tracewing stats my-trace                         everything
  tracewing stats my-trace -e 'sched_*'            scheduler events
  tracewing stats my-trace --from +1s --to +2s     one second
  tracewing stats my-trace --format csv > stats.csv

Rates are over the time from the first counted event to the last. A process is told by vpid or pid in the events' context, or by tid where tracewing recorded \
whose thread that is; - stands for the rest. Losses are those of the streams, whichever events are counted.
";

/// What `tracewing stats` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
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

/// A line of a table.
struct Line<'s> {
    kind: &'static str,
    trace: Option<&'s str>,
    name: Option<Cow<'s, str>>,
    process: Option<i64>,
    count: Count,
    lost: Option<Lost>,
    duration_ns: u64,
}

#[derive(Clone, Copy)]
struct Lost {
    events: u64,
    packets: u64,
}

fn of_events(statistics: &Statistics) -> Vec<Line<'_>> {
    let lines = statistics.events.iter().map(|row| Line {
        kind: "event",
        trace: Some(&row.trace),
        name: Some(row.name.as_str().into()),
        process: None,
        count: row.count,
        lost: None,
        duration_ns: statistics.duration_ns,
    });
    lines.collect()
}

fn of_streams(statistics: &Statistics) -> Vec<Line<'_>> {
    let lines = statistics.streams.iter().map(|row| Line {
        kind: "stream",
        trace: Some(&row.trace),
        name: Some(row.stream.as_str().into()),
        process: None,
        count: row.count,
        lost: Some(Lost { events: row.lost_events, packets: row.lost_packets }),
        duration_ns: statistics.duration_ns,
    });
    lines.collect()
}

fn of_processes(statistics: &Statistics) -> Vec<Line<'_>> {
    let lines = statistics.processes.iter().map(|row| Line {
        kind: "process",
        trace: None,
        name: row.process.map(|process| process.to_string().into()),
        process: row.process,
        count: row.count,
        lost: None,
        duration_ns: statistics.duration_ns,
    });
    lines.collect()
}

fn counts<'s>() -> Vec<Column<Line<'s>>> {
    columns! { line: Line<'s>;
        number "events" "events" key, "events" => Cell::Count(line.count.events);
        rate "per second" "per_second" high, "events in a second"
            => line.count.per_second(line.duration_ns).map_or(Cell::None, Cell::Rate);
        number "bytes" "bytes" normal, "size of the event records with their headers" => Cell::Count(line.count.bytes);
    }
}

fn losses<'s>() -> Vec<Column<Line<'s>>> {
    columns! { line: Line<'s>;
        number "lost events" "lost_events" high + alarming, "events that the stream has lost"
            => Cell::count(line.lost.map(|lost| lost.events));
        number "lost packets" "lost_packets" normal + alarming, "packets that the stream has lost"
            => Cell::count(line.lost.map(|lost| lost.packets));
    }
}

fn kind<'s>() -> Column<Line<'s>> {
    Column::text("kind", "kind", "what is counted: event, stream or process", |line| line.kind.into())
}

fn trace<'s>() -> Column<Line<'s>> {
    Column::text("trace", "trace", "trace that it is in", |line| line.trace.map_or(Cell::None, Cell::from))
}

fn name<'s>(header: &'static str) -> Column<Line<'s>> {
    let name = |line: &Line<'s>| line.name.as_deref().map_or(Cell::None, Cell::from);
    Column::text(header, "name", "name of the event or the stream, number of the process", name).key()
}

fn process<'s>() -> Column<Line<'s>> {
    Column::number("process", "process", "number of the process", |line: &Line<'s>| {
        line.process.map_or(Cell::None, Cell::Number)
    })
    .key()
}

fn all<'s>() -> Vec<Column<Line<'s>>> {
    [vec![kind(), trace(), name("name")], counts(), losses()].concat()
}

pub fn views() -> Vec<View> {
    vec![View::new("stats", heads(all()))]
}

fn print(out: &mut impl Write, statistics: &Statistics, lost_events: u64) -> std::io::Result<()> {
    let tables = [
        (of_events(statistics), [counts(), vec![name("name"), trace()]].concat()),
        (of_streams(statistics), [counts(), losses(), vec![name("stream"), trace()]].concat()),
        (of_processes(statistics), [counts(), vec![process()]].concat()),
    ];
    for (lines, columns) in tables {
        Layout::all(&columns, TableFormat::Table).table(&lines).print(out)?;
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
    let lines = [of_events(statistics), of_streams(statistics), of_processes(statistics)];
    Layout::all(&all(), TableFormat::Csv).table(lines.iter().flatten()).csv(out)
}
