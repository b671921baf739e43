//! What `tracewing info` prints for people: facts as lines, streams as a table, event classes as a list.

use super::rows::{Stream, field_text, stream_columns, stream_id};
use crate::format::TableFormat;
use crate::output::shown;
use crate::recorded;
use crate::style::HEADER;
use crate::table::{Layout, seconds};
use crate::terminal;
use crate::wrap::wrapped;
use std::io::Write;
use tracewing_trace::{ClassReport, LossReport, Report, StreamReport, TraceReport, Zone};
use tracewing_units::Timestamp;

/// Losses of a stream that are listed one by one.
const MAX_LOSSES: usize = 10;

pub fn print(out: &mut impl Write, report: &Report, zone: Zone) -> std::io::Result<()> {
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

fn print_facts(out: &mut impl Write, trace: &TraceReport, zone: Zone) -> std::io::Result<()> {
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
        writeln!(out, "made by   {}", wrapped(&shown(&environment.join(", ")), 10, 10, terminal::width()))?;
    }
    for clock in &trace.clocks {
        let offset = i128::from(clock.offset_seconds) * 1_000_000_000
            + i128::from(clock.offset_cycles.0) * 1_000_000_000 / i128::from(clock.frequency_hz.max(1));
        write!(out, "clock     {}, {} Hz", shown(&clock.name), clock.frequency_hz)?;
        if let Ok(offset) = i64::try_from(offset) {
            write!(out, ", value 0 is {}", zone.format(Timestamp::from_ns(offset)))?;
        }
        if clock.precision_cycles.0 > 0 {
            write!(out, ", uncertain by {} cycles", clock.precision_cycles)?;
        }
        if let Some(description) = &clock.description {
            write!(out, " ({})", shown(description))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print_trace(out: &mut impl Write, trace: &TraceReport, zone: Zone) -> std::io::Result<()> {
    print_facts(out, trace, zone)?;
    if trace.streams.is_empty() {
        return writeln!(out, "no streams");
    }
    writeln!(out, "\n{HEADER}streams{HEADER:#}")?;
    let streams: Vec<_> = trace.streams.iter().map(|stream| Stream::new(trace, stream, zone)).collect();
    Layout::all(&stream_columns(), TableFormat::Table).table(&streams).print(out)?;
    for stream in trace.streams.iter().filter(|stream| !stream.losses.is_empty()) {
        print_losses(out, stream, zone)?;
    }
    if trace.event_classes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{HEADER}event classes{HEADER:#}")?;
    let (seen, unseen): (Vec<_>, Vec<_>) = trace.event_classes.iter().partition(|class| class.count > 0);
    print_classes(out, &seen)?;
    if !unseen.is_empty() {
        writeln!(out, "and {} without events; --format json has them", unseen.len())?;
    }
    Ok(())
}

fn print_losses(out: &mut impl Write, stream: &StreamReport, zone: Zone) -> std::io::Result<()> {
    writeln!(out, "\n{HEADER}losses of stream {}{HEADER:#}", stream_id(stream))?;
    for loss in stream.losses.iter().take(MAX_LOSSES) {
        writeln!(out, "  {}", loss_text(loss, zone))?;
    }
    match stream.losses.len().saturating_sub(MAX_LOSSES) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more; --format json has them"),
    }
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
    let terminal = terminal::width();
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
        writeln!(out, "{}", wrapped(&shown(&text), indent, indent + 2, terminal))?;
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
            let about = wrapped(&shown(&about.join(" ")), indent + 2, indent + 2, terminal);
            writeln!(out, "{:1$}{about}", "", indent + 2)?;
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
