//! `tracewing info`: what a recording holds, as tables or as JSON.

use crate::format::TextFormat;
use crate::options::TimeZone;
use crate::output::{print_error, raise_file_limit, shown, warn_of_missing};
use crate::recorded;
use crate::screen;
use crate::style::HEADER;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_trace::{
    ClassReport, FieldReport, LossReport, Recording, Report, StreamReport, TraceReport, Zone,
};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders: traces, or folders with traces below them
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TextFormat,

    #[command(flatten)]
    time_zone: TimeZone,
}

const EXAMPLES: &str = "\
Examples:
  tracewing info my-trace
  tracewing info my-trace --format json | jq '.traces[].event_classes[].name'";

/// Losses of a stream that are listed one by one.
const MAX_LOSSES: usize = 10;

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    raise_file_limit();
    let recording = Recording::open(&args.traces)?;
    warn_of_missing(&recording);
    let (report, errors) = Report::new(&recording);
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TextFormat::Json => {
            serde_json::to_writer(&mut out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TextFormat::Text => print(&mut out, &report, args.time_zone.zone())?,
    }
    out.flush()?;
    let damaged = !errors.is_empty();
    for error in errors {
        print_error(&error.into());
    }
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(out: &mut impl Write, report: &Report, zone: Zone) -> std::io::Result<()> {
    for note in &report.recordings {
        recorded::print(out, note, zone)?;
    }
    if let (Some(begin), Some(end), Some(duration)) = (report.begin_ns, report.end_ns, report.duration_ns) {
        writeln!(out, "from      {}", zone.format(begin))?;
        writeln!(out, "to        {}", zone.format(end))?;
        writeln!(out, "duration  {} s", seconds(duration))?;
    }
    for trace in &report.traces {
        let name = if trace.name.is_empty() { "trace" } else { &trace.name };
        writeln!(out, "\n{HEADER}{}{HEADER:#}", shown(name))?;
        print_trace(out, trace, zone)?;
    }
    Ok(())
}

fn print_trace(out: &mut impl Write, trace: &TraceReport, zone: Zone) -> std::io::Result<()> {
    for folder in &trace.folders {
        writeln!(out, "folder    {}", shown(folder))?;
    }
    if let Some(uuid) = &trace.uuid {
        writeln!(out, "uuid      {uuid}")?;
    }
    let environment: Vec<_> = trace
        .environment
        .iter()
        .map(|(key, value)| {
            format!("{key} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        })
        .collect();
    if !environment.is_empty() {
        writeln!(out, "made by   {}", shown(&environment.join(", ")))?;
    }
    for clock in &trace.clocks {
        let offset = i128::from(clock.offset_seconds) * 1_000_000_000
            + i128::from(clock.offset_cycles) * 1_000_000_000 / i128::from(clock.frequency_hz.max(1));
        write!(out, "clock     {}, {} Hz", shown(&clock.name), clock.frequency_hz)?;
        if let Ok(offset) = i64::try_from(offset) {
            write!(out, ", value 0 is {}", zone.format(offset))?;
        }
        if clock.precision_cycles > 0 {
            write!(out, ", uncertain by {} cycles", clock.precision_cycles)?;
        }
        if let Some(description) = &clock.description {
            write!(out, " ({})", shown(description))?;
        }
        writeln!(out)?;
    }

    if trace.streams.is_empty() {
        return writeln!(out, "no streams");
    }
    writeln!(out, "\n{HEADER}streams{HEADER:#}")?;
    let headings =
        ["stream", "cpu", "packets", "events", "bytes", "lost events", "lost packets", "seconds", "file"];
    let mut streams = table(&headings);
    for stream in &trace.streams {
        streams.add_row(stream_row(stream));
    }
    align(&mut streams, 0..8);
    writeln!(out, "{streams}")?;

    for stream in trace.streams.iter().filter(|stream| !stream.losses.is_empty()) {
        writeln!(out, "\n{HEADER}losses of stream {}{HEADER:#}", stream_id(stream))?;
        for loss in stream.losses.iter().take(MAX_LOSSES) {
            writeln!(out, "  {}", loss_text(loss, zone))?;
        }
        if stream.losses.len() > MAX_LOSSES {
            let more = stream.losses.len() - MAX_LOSSES;
            writeln!(out, "  and {more} more; --format json has them")?;
        }
    }

    writeln!(out, "\n{HEADER}event classes{HEADER:#}")?;
    let (seen, unseen): (Vec<_>, Vec<_>) = trace.event_classes.iter().partition(|class| class.count > 0);
    print_classes(out, &seen)?;
    if !unseen.is_empty() {
        writeln!(out, "and {} without events; --format json has them", unseen.len())?;
    }
    Ok(())
}

fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(headings);
    table
}

fn align(table: &mut Table, columns: std::ops::Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn stream_id(stream: &StreamReport) -> String {
    format!("{}:{}", stream.class, stream.id)
}

fn stream_row(stream: &StreamReport) -> [String; 9] {
    let unknown = stream.losses.iter().any(|loss| loss.count.is_none());
    let duration = stream.begin_ns.zip(stream.end_ns).and_then(|(begin, end)| end.checked_sub(begin));
    let first = stream.files.first().map_or("", |file| file.rsplit('/').next().unwrap_or(file));
    let file = match stream.files.len() {
        0 => "gone".to_owned(),
        1 => first.to_owned(),
        count => format!("{first} and {} more", count - 1),
    };
    [
        stream_id(stream),
        stream.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
        stream.packets.to_string(),
        stream.events.to_string(),
        stream.bytes.to_string(),
        if unknown { format!("at least {}", stream.lost_events) } else { stream.lost_events.to_string() },
        stream.lost_packets.to_string(),
        duration.map_or_else(|| "-".to_owned(), seconds),
        file,
    ]
}

fn loss_text(loss: &LossReport, zone: Zone) -> String {
    let count = loss.count.map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
    let range = match (loss.begin_ns, loss.end_ns) {
        (Some(begin), Some(end)) => format!("from {} to {}", zone.format(begin), zone.format(end)),
        _ => "at an unknown time".to_owned(),
    };
    format!("{count} {} {range}", loss.what)
}

/// Prints of each event class its count, name and fields, and what its author said of it; on a terminal in
/// lines that fit, else in one line each.
fn print_classes(out: &mut impl Write, classes: &[&ClassReport]) -> std::io::Result<()> {
    let terminal = screen::width().unwrap_or(usize::MAX);
    let digits = |numbers: &mut dyn Iterator<Item = u64>, heading: &str| {
        numbers.map(|number| number.to_string().len()).fold(heading.len(), usize::max)
    };
    let id = digits(&mut classes.iter().map(|class| class.id), "id");
    let count = digits(&mut classes.iter().map(|class| class.count), "count");
    writeln!(out, " {:>id$}  {:>count$}  name, fields, description", "id", "count")?;
    let indent = id + count + 5;
    for class in classes {
        let fields: Vec<_> = class.fields.iter().map(field_text).collect();
        let name = class.name.as_deref().unwrap_or_default();
        let separator = if fields.is_empty() { "" } else { ": " };
        let text = format!("{name}{separator}{}", fields.join(", "));
        write!(out, " {:>id$}  {:>count$}  ", class.id, class.count)?;
        print_wrapped(out, &shown(&text), indent, indent + 2, terminal)?;
        let facts: Vec<String> = [
            class.source.clone(),
            class.log_level.map(level_text),
            class.major.map(|major| format!("major class {major}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let facts = (!facts.is_empty()).then(|| format!("({})", facts.join(", ")));
        let about: Vec<&str> = class.description.as_deref().into_iter().chain(facts.as_deref()).collect();
        if !about.is_empty() {
            write!(out, "{:1$}", "", indent + 2)?;
            print_wrapped(out, &shown(&about.join(" ")), indent + 2, indent + 2, terminal)?;
        }
    }
    Ok(())
}

/// LTTng's number for a level, in the words of `tracewing record --level` where it has one.
fn level_text(level: i64) -> String {
    let word = match level {
        3 => "error",
        4 => "warn",
        6 => "info",
        10 => "debug",
        14 => "trace",
        other => return format!("level {other}"),
    };
    word.to_owned()
}

/// Prints words from the column `at` on, with line breaks before `width`; the lines after the first begin at
/// `indent`.
fn print_wrapped(
    out: &mut impl Write,
    text: &str,
    at: usize,
    indent: usize,
    width: usize,
) -> std::io::Result<()> {
    let mut column = at;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width {
            write!(out, "\n{:indent$}{word}", "")?;
            column = indent + length;
        } else {
            let space = if index > 0 { " " } else { "" };
            write!(out, "{space}{word}")?;
            column += space.len() + length;
        }
    }
    writeln!(out)
}

fn field_text(field: &FieldReport) -> String {
    match &field.unit {
        Some(unit) => format!("{} {} ({unit})", field.name, field.class),
        None => format!("{} {}", field.name, field.class),
    }
}

fn seconds(ns: i64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
