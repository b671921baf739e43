//! The content of a recording's `tracewing.json` for `tracewing info`: by which version, where and how it was
//! made.
//!
//! Missing or unexpected values are left out: the file may come from another version or program.

use crate::output::shown;
use crate::terminal;
use crate::wrap::wrapped;
use serde_json::{Value, json};
use std::io::{Result, Write};
use tracewing_trace::{Zone, real_time};
use tracewing_units::Timestamp;

/// Ranges of what was overwritten that are listed one by one.
const MAX_RANGES: usize = 10;

/// Processes that ran already and are listed one by one.
const MAX_ATTACHED: usize = 10;

/// Changes that are listed one by one.
const MAX_CHANGES: usize = 20;

/// Notes of the recorder that are listed one by one.
const MAX_NOTES: usize = 10;

/// The rule of a recording for which no events were chosen.
const EVERYTHING: &str = "enable -e '*'";

/// Prints the facts that are there.
pub fn print(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    if let Some(version) = text(note, "/version") {
        let state = text(note, "/state").filter(|state| *state != "complete");
        let state = state.map(|state| format!(", {}", state.replace('_', " "))).unwrap_or_default();
        writeln!(out, "recorder  tracewing {}", shown(&format!("{version}{state}")))?;
    }
    let words: Vec<&str> = note
        .pointer("/command")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !words.is_empty() {
        writeln!(out, "command   {}", shown(&words.join(" ")))?;
    }
    if let Some(host) = text(note, "/host/name") {
        let facts = [text(note, "/host/kernel"), text(note, "/host/machine")].into_iter().flatten();
        let cpus = number(note, "/host/cpus").map(|cpus| format!("{cpus} CPUs"));
        let facts: Vec<_> = facts.map(str::to_owned).chain(cpus).collect();
        writeln!(out, "host      {}", shown(&format!("{host} ({})", facts.join(", "))))?;
    }
    print_attached(out, note, zone)?;
    if let Some(processes) = note.pointer("/processes").and_then(Value::as_array) {
        writeln!(out, "programs  {} joined", processes.len())?;
    }
    let notes = note.pointer("/notes").and_then(Value::as_array).into_iter().flatten();
    for line in notes.clone().filter_map(Value::as_str).take(MAX_NOTES) {
        writeln!(out, "note      {}", wrapped(&shown(line), 10, 10, terminal::width()))?;
    }
    if let more @ 1.. = notes.count().saturating_sub(MAX_NOTES) {
        writeln!(out, "          and {more} more; --format json has them")?;
    }
    print_rules(out, note, zone)?;
    print_snapshot(out, note, zone)?;
    print_archive(out, note, zone)?;
    print_overwritten(out, note, zone)?;
    print_calibration(out, note, zone)
}

/// Processes that were running already and were attached to, and when their recording began.
fn print_attached(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    let attached = note.pointer("/attached").and_then(Value::as_array).into_iter().flatten();
    for process in attached.clone().take(MAX_ATTACHED) {
        let Some(pid) = number(process, "/pid") else { continue };
        let name = text(process, "/name").unwrap_or_default();
        let since = process.get("attached_cycles").and_then(|since| real_time(note, since));
        let since = since.map(|ns| format!(", recorded since {}", zone.format(ns))).unwrap_or_default();
        writeln!(out, "attached  process {pid} ({}){since}", shown(name))?;
    }
    match attached.count().saturating_sub(MAX_ATTACHED) {
        0 => Ok(()),
        more => writeln!(out, "          and {more} more; --format json has them"),
    }
}

/// Which events of programs it was to take when it began, and what was changed when.
fn print_rules(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    let list = |key| note.get(key).and_then(Value::as_array).into_iter().flatten();
    let majors = text(note, "/majors").map(|majors| format!("--major {majors}"));
    let rules = list("event_rules").filter_map(Value::as_str).filter(|rule| *rule != EVERYTHING);
    for rule in rules.chain(majors.as_deref()) {
        writeln!(out, "events    {}", shown(rule))?;
    }
    for option in list("options").filter_map(Value::as_str) {
        writeln!(out, "option    {}", shown(option))?;
    }
    let changes =
        list("changes").filter_map(|change| Some((change.get("time_cycles")?, text(change, "/change")?)));
    for (time, what) in changes.clone().take(MAX_CHANGES) {
        let when = real_time(note, time).map(|ns| format!(" at {}", zone.format(ns))).unwrap_or_default();
        writeln!(out, "changed   {}{when}", shown(what))?;
    }
    match changes.count().saturating_sub(MAX_CHANGES) {
        0 => Ok(()),
        more => writeln!(out, "          and {more} more; --format json has them"),
    }
}

/// Which snapshot of a flight recorder it is.
fn print_snapshot(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    let Some(number) = number(note, "/snapshot/number") else { return Ok(()) };
    let reason = text(note, "/snapshot/reason").unwrap_or_default();
    let taken = note.pointer("/snapshot/taken_cycles").and_then(|taken| real_time(note, taken));
    let taken = taken.map(|ns| format!(", taken at {}", zone.format(ns))).unwrap_or_default();
    let gone = note.get("snapshot").and_then(removed);
    let gone = gone.map(|(count, had)| format!(", earlier ones removed: {count}{had}")).unwrap_or_default();
    writeln!(out, "snapshot  number {number} ({}){taken}{gone}", shown(reason))
}

/// How many archives or snapshots were removed, and what these have had; nothing if none was.
fn removed(totals: &Value) -> Option<(i128, String)> {
    let count = number(totals, "/removed").filter(|count| *count > 0)?;
    let had = number(totals, "/removed_events").zip(number(totals, "/removed_bytes"));
    let had = had.map(|(events, bytes)| format!(" ({events} events, {bytes} bytes)")).unwrap_or_default();
    Some((count, had))
}

/// Which archive of a rotated recording it is; of the whole, how many there are.
fn print_archive(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    // The list has the last ones only. Earlier versions have no totals.
    let totals = note.get("archive_totals").cloned().unwrap_or_else(|| {
        let archives = note.get("archives").and_then(Value::as_array).into_iter().flatten();
        let removed = archives.clone().filter(|archive| archive["is_removed"] == true).count();
        json!({ "completed": archives.count(), "removed": removed })
    });
    if let Some(completed) = number(&totals, "/completed").filter(|completed| *completed > 0) {
        let gone = removed(&totals).map(|(count, had)| format!(", {count} of them removed{had}"));
        writeln!(out, "archives  {completed}{}", gone.unwrap_or_default())?;
    }
    let Some(number) = number(note, "/archive/number") else { return Ok(()) };
    let begin = note.pointer("/archive/begin_cycles").and_then(|begin| real_time(note, begin));
    let begin = begin.map(|ns| format!(", begun at {}", zone.format(ns))).unwrap_or_default();
    let end = text(note, "/archive/reason").map(|reason| format!(", ended: {reason}")).unwrap_or_default();
    writeln!(out, "archive   number {number}{begin}{}", shown(&end))
}

/// What was overwritten before it was read, by stream: the sum, and between what times.
fn print_overwritten(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    let ranges = note.pointer("/overwritten").and_then(Value::as_array).into_iter().flatten();
    for range in ranges.clone().take(MAX_RANGES) {
        let stream = text(range, "/stream").unwrap_or_default();
        let what = match (number(range, "/events"), number(range, "/sub_buffers"), number(range, "/bytes")) {
            (Some(events), ..) => format!("{events} events"),
            (_, Some(sub_buffers), Some(bytes)) => {
                format!("{sub_buffers} sub-buffers overwritten, {bytes} bytes of events")
            }
            _ => continue,
        };
        let time =
            |end: &str| range.get(end).and_then(|cycles| real_time(note, cycles)).map(|ns| zone.format(ns));
        let when = time("begin_cycles").zip(time("end_cycles"));
        let when = when.map(|(begin, end)| format!(" from {begin} to {end}")).unwrap_or_default();
        writeln!(out, "not kept  {}: {what}{when}", shown(stream))?;
    }
    match ranges.count().saturating_sub(MAX_RANGES) {
        0 => Ok(()),
        more => writeln!(out, "          and {more} more; --format json has them"),
    }
}

/// What the clock and real time showed at begin and end, and how far they drifted apart.
fn print_calibration(out: &mut impl Write, note: &Value, zone: Zone) -> Result<()> {
    let mut points = Vec::new();
    for when in ["begin", "end"] {
        let fact = |key: &str| number(note, &format!("/clock/{when}/{key}"));
        if let (Some(cycles), Some(real), Some(uncertainty)) =
            (fact("cycles"), fact("realtime_ns"), fact("uncertainty_ns"))
        {
            let real_text =
                i64::try_from(real).map(|real| zone.format(Timestamp::from_ns(real))).unwrap_or_default();
            writeln!(out, "clock     {cycles} cycles at {real_text}, within {uncertainty} ns ({when})")?;
            points.push((cycles, real));
        }
    }
    if let ([(first, begin), (last, end)], Some(frequency @ 1..)) =
        (&points[..], number(note, "/clock/frequency_hz"))
    {
        let by_clock = (last - first) * 1_000_000_000 / frequency;
        writeln!(out, "drift     {} ns from begin to end", by_clock - (end - begin))?;
    }
    Ok(())
}

fn text<'n>(note: &'n Value, pointer: &str) -> Option<&'n str> {
    note.pointer(pointer).and_then(Value::as_str)
}

fn number(note: &Value, pointer: &str) -> Option<i128> {
    let value = note.pointer(pointer)?;
    value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from))
}
