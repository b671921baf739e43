//! `tracewing stats`: how many events there are and how often they come, as tables, JSON or CSV.

use crate::format::TableFormat;
use crate::input::{Input, warn_of_incomplete};
use crate::losses;
use crate::no_result::{ANY, say};
use crate::output::print_error;
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, Head, Table, TableOptions, check, columns, heads, seconds, write_json};
use anyhow::Result;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;
use tracewing_trace::{Count, Losses, Recording, Statistics};
use tracewing_units::Duration;

const HELP: &str = "\
Examples:
  tracewing stats my-trace                         everything
  tracewing stats my-trace -e 'sched_*'            scheduler events
  tracewing stats my-trace --from +1s --to +2s     one second
  tracewing stats my-trace --sort bytes -n 5       the five largest of each table
  tracewing stats my-trace --format csv > stats.csv

Rates cover the time from the first counted event to the last. The process of an event is vpid or pid in the event's \
context, or the process of tid if the recording shows it; - stands for the rest. Losses are those of whole streams, \
whichever events are counted. A recorder counts no events that repeat the state: a state dump at the begin of an \
archive, and names and places that programs report again. The last line says how many of all events these are \
(state_events in JSON), unless a filter leaves out something.

Each of the three tables prints those of the chosen columns that it has. CSV combines all three in one table.
";

/// What `tracewing stats` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let format = args.table.format();
    check(&args.table.sort, &args.table.choice, &heads_of(format))?;
    let (recording, filter) = args.input.open()?;
    let statistics = Statistics::collect(recording, &filter)?;
    warn_of_incomplete(recording, &filter)?;
    let parts = [
        ("events", of_events(&statistics), event_columns()),
        ("streams", of_streams(&statistics), stream_columns()),
        ("processes", of_processes(&statistics), process_columns()),
    ];
    let mut out = screen::stdout(format.into());
    if format == TableFormat::Csv {
        let layout = args.table.layout_of_part(&all());
        let lines = parts.iter().flat_map(|(_, lines, _)| layout.arranged(lines));
        layout.as_they_are(lines.collect::<Vec<_>>()).csv(&mut out)?;
    } else {
        let table = |lines, columns| args.table.layout_of_part(columns).table(lines);
        let tables: Vec<(&str, Table)> =
            parts.iter().map(|(name, lines, columns)| (*name, table(lines, columns))).collect();
        match format {
            TableFormat::Json => write_json(&mut out, &tables, &totals(recording, &statistics))?,
            _ => print(&mut out, &tables, &statistics)?,
        }
    }
    if statistics.total.events == 0 && statistics.errors.is_empty() {
        say(&mut out, format, &ANY.why_empty_in(&args.input)?)?;
    }
    out.flush()?;
    let failed = !statistics.errors.is_empty();
    statistics.errors.into_iter().for_each(|error| print_error(&error.into()));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The members of JSON in addition to its tables.
fn totals(recording: &Recording, statistics: &Statistics) -> [(&'static str, Value); 3] {
    let Count { events, bytes } = statistics.total;
    let lost = statistics.lost();
    let total = json!({
        "events": events,
        "state_events": statistics.state_events,
        "bytes": bytes,
        "per_second": statistics.total.per_second(statistics.duration_ns),
        "lost_events": lost.events(),
        "lost_packets": lost.packets(),
        "least_lost_events": lost.least_events,
        "least_lost_packets": lost.least_packets,
    });
    [
        ("duration_ns", json!(statistics.duration_ns)),
        ("total", total),
        ("missing", json!(recording.missing())),
    ]
}

/// A line of a table.
struct Line<'s> {
    kind: &'static str,
    trace: Option<&'s str>,
    name: Option<Cow<'s, str>>,
    process: Option<i64>,
    count: Count,
    lost: Option<Losses>,
    duration_ns: Option<Duration>,
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
        lost: Some(row.lost),
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
        number "events" "events" key, "number of events" => Cell::Count(line.count.events);
        rate "per second" "per_second" high, "events per second"
            => line.count.per_second(line.duration_ns).map_or(Cell::None, Cell::Rate);
        number "bytes" "bytes" normal, "size of the event records with their headers" => Cell::Count(line.count.bytes);
    }
}

fn losses<'s>() -> Vec<Column<Line<'s>>> {
    columns! { line: Line<'s>;
        number "lost events" "lost_events" high + alarming, "events that the stream has lost; in text, + means that there were more"
            => line.lost.map_or(Cell::None, |lost| losses::events(&lost));
        number "lost packets" "lost_packets" normal + alarming, "packets that the stream has lost; how many events they had is unknown"
            => line.lost.map_or(Cell::None, |lost| losses::packets(&lost));
        number "least lost events" "least_lost_events" extra, "lower bound of the number of lost events"
            => Cell::count(line.lost.map(|lost| lost.least_events));
        number "least lost packets" "least_lost_packets" extra, "lower bound of the number of lost packets"
            => Cell::count(line.lost.map(|lost| lost.least_packets));
    }
}

fn trace<'s>() -> Vec<Column<Line<'s>>> {
    columns! { line: Line<'s>;
        text "trace" "trace" normal, "trace that it is in" => line.trace.map_or(Cell::None, Cell::from);
    }
}

impl Line<'_> {
    fn name(&self) -> Cell {
        self.name.as_deref().map_or(Cell::None, Cell::from)
    }
}

fn event_columns<'s>() -> Vec<Column<Line<'s>>> {
    let name = columns! { line: Line<'s>;
        text "name" "name" key, "name of the event" => line.name();
    };
    [counts(), name, trace()].concat()
}

fn stream_columns<'s>() -> Vec<Column<Line<'s>>> {
    let stream = columns! { line: Line<'s>;
        text "stream" "stream" key, "the stream's class, then its number" => line.name();
    };
    [counts(), losses(), stream, trace()].concat()
}

fn process_columns<'s>() -> Vec<Column<Line<'s>>> {
    let process = columns! { line: Line<'s>;
        number "process" "process" key, "process id" => line.process.map_or(Cell::None, Cell::Number);
    };
    [counts(), process].concat()
}

/// The columns of CSV.
fn all<'s>() -> Vec<Column<Line<'s>>> {
    let kind = columns! { line: Line<'s>;
        text "kind" "kind" normal, "what is counted: event, stream or process" => line.kind.into();
    };
    let name = columns! { line: Line<'s>;
        text "name" "name" key, "name of the event or stream, or process id" => line.name();
    };
    [kind, trace(), name, counts(), losses()].concat()
}

/// The columns of each table.
fn heads_of(format: TableFormat) -> Vec<Vec<Head>> {
    match format {
        TableFormat::Csv => vec![heads(all())],
        _ => vec![heads(event_columns()), heads(stream_columns()), heads(process_columns())],
    }
}

pub fn views() -> Vec<View> {
    vec![
        View::new("stats: events", heads(event_columns())),
        View::new("stats: streams", heads(stream_columns())),
        View::new("stats: processes", heads(process_columns())),
        View::new("stats --format csv", heads(all())),
    ]
}

fn print(out: &mut impl Write, tables: &[(&str, Table)], statistics: &Statistics) -> std::io::Result<()> {
    for (_, table) in tables.iter().filter(|(_, table)| !table.is_void()) {
        table.print(out)?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "{} events, {} bytes, {} s, {} lost",
        statistics.total.events,
        statistics.total.bytes,
        statistics.duration_ns.map_or_else(|| "-".to_owned(), seconds),
        // Of all streams, however many rows are printed.
        losses::text(&statistics.lost())
    )?;
    match statistics.state_events {
        None | Some(0) => Ok(()),
        Some(state) => {
            let counted = statistics.total.events.saturating_sub(state);
            writeln!(out, "of these, the recorder counts {counted} as events, and {state} as repeated state")
        }
    }
}
