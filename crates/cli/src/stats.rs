//! `tracewing stats`: how many events there are and how often they come, as tables, JSON or CSV.

use crate::format::TableFormat;
use crate::output::{print_error, raise_file_limit, shown, warn_of_unmatched};
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_trace::{Count, Filter, Predicate, Recording, Statistics, TimePoint, Zone};

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
    /// Folders: traces, or folders with traces below them
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Leave out what lies before TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,

    /// Leave out what lies behind TIME
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,

    /// Count only events whose names match GLOB; may be given several times
    #[arg(short = 'e', long = "event", value_name = "GLOB")]
    events: Vec<String>,

    /// But not those whose names match GLOB; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Count only events for which this is true, as in 'depth > 3 && customer == "x"'
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Predicate>,

    /// Read times in UTC instead of the local time zone
    #[arg(long)]
    clock_gmt: bool,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let zone = if args.clock_gmt { Zone::Utc } else { Zone::Local };
    let point = |text: &Option<String>| text.as_deref().map(|text| TimePoint::parse(text, zone)).transpose();
    let filter = Filter {
        from: point(&args.from)?,
        to: point(&args.to)?,
        zone,
        events: args.events.clone(),
        exclude: args.exclude.clone(),
        predicate: args.condition.clone(),
        ..Filter::default()
    };
    raise_file_limit();
    let recording = Recording::open(&args.traces)?;
    warn_of_unmatched(&recording, &args.events);
    let statistics = Statistics::collect(&recording, &filter)?;
    let mut out = anstream::stdout().lock();
    match args.format {
        TableFormat::Table => print(&mut out, &statistics)?,
        TableFormat::Json => {
            serde_json::to_writer(&mut out, &statistics).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => csv(&mut out, &statistics)?,
    }
    out.flush()?;
    let failed = !statistics.errors.is_empty();
    statistics.errors.into_iter().for_each(|error| print_error(&error.into()));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(out: &mut impl Write, statistics: &Statistics) -> std::io::Result<()> {
    let rate = |count: &Count| {
        count.per_second(statistics.duration_ns).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"))
    };
    let counted = |count: &Count| [count.events.to_string(), rate(count), count.bytes.to_string()];
    let mut events = table(["events", "per second", "bytes", "name", "trace"]);
    for row in &statistics.events {
        let [count, rate, bytes] = counted(&row.count);
        events.add_row([count, rate, bytes, shown(&row.name).into_owned(), shown(&row.trace).into_owned()]);
    }
    write(out, events, 3)?;
    let mut streams =
        table(["events", "per second", "bytes", "lost events", "lost packets", "stream", "trace"]);
    for row in &statistics.streams {
        let [count, rate, bytes] = counted(&row.count);
        let (lost_events, lost_packets) = (row.lost_events.to_string(), row.lost_packets.to_string());
        let trace = shown(&row.trace).into_owned();
        streams.add_row([count, rate, bytes, lost_events, lost_packets, row.stream.clone(), trace]);
    }
    write(out, streams, 5)?;
    let mut processes = table(["events", "per second", "bytes", "process"]);
    for row in &statistics.processes {
        let [count, rate, bytes] = counted(&row.count);
        processes.add_row([
            count,
            rate,
            bytes,
            row.process.map_or_else(|| "-".to_owned(), |id| id.to_string()),
        ]);
    }
    write(out, processes, 4)?;
    let lost: u64 = statistics.streams.iter().map(|row| row.lost_events).sum();
    writeln!(
        out,
        "{} events, {} bytes, {:.9} s, {lost} events lost",
        statistics.total.events,
        statistics.total.bytes,
        statistics.duration_ns as f64 / 1e9
    )
}

fn table<const N: usize>(columns: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns);
    table
}

/// Prints a table, its first columns of numbers to the right, and an empty line.
fn write(out: &mut impl Write, mut table: Table, numbers: usize) -> std::io::Result<()> {
    for (index, column) in table.column_iter_mut().enumerate() {
        if index < numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}

fn csv(out: &mut impl Write, statistics: &Statistics) -> std::io::Result<()> {
    writeln!(out, "kind,trace,name,events,per_second,bytes,lost_events,lost_packets")?;
    let mut row = |kind: &str, trace: &str, name: &str, count: &Count, lost: [String; 2]| {
        let rate = count.per_second(statistics.duration_ns).map_or_else(String::new, |rate| rate.to_string());
        let (trace, name) = (quoted(trace), quoted(name));
        let [lost_events, lost_packets] = lost;
        let Count { events, bytes } = count;
        writeln!(out, "{kind},{trace},{name},{events},{rate},{bytes},{lost_events},{lost_packets}")
    };
    for event in &statistics.events {
        row("event", &event.trace, &event.name, &event.count, Default::default())?;
    }
    for stream in &statistics.streams {
        let lost = [stream.lost_events, stream.lost_packets].map(|lost| lost.to_string());
        row("stream", &stream.trace, &stream.stream, &stream.count, lost)?;
    }
    for process in &statistics.processes {
        let name = process.process.map_or_else(String::new, |id| id.to_string());
        row("process", "", &name, &process.count, Default::default())?;
    }
    Ok(())
}

/// A value of a line of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
