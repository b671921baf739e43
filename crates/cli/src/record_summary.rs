//! What `tracewing record` prints at the end: streams, losses with their times, totals, and what to do next.

use crate::format::TableFormat;
use crate::output::{quoted, say, shown};
use crate::screen::{Form, stderr};
use crate::style::{HEADER, WARNING};
use crate::table::reference::View;
use crate::table::{Cell, Column, Layout, bytes, columns, heads, number};
use std::path::Path;
use tracewing_abi::region::Loss;
use tracewing_analysis::total_count;
use tracewing_consumer::description::{AllArchives, Removed, State};
use tracewing_consumer::summary::{LossRange, OverwrittenRange, StreamSummary};
use tracewing_session::Summary;
use tracewing_session::outcome::{CommandTotals, SnapshotSummary, SnapshotTotals};
use tracewing_units::Cycles;

/// Streams that are shown one by one.
const MOST_ROWS: usize = 24;
/// Processes that are named one by one.
const MOST_ATTACHED: usize = 8;
/// Loss ranges that are shown one by one.
const MOST_LOSSES: usize = 8;

/// What the user has asked for.
pub struct Asked {
    /// Whether events of programs were chosen.
    pub has_rules: bool,
    /// Whether any of the kernel were.
    pub has_kernel: bool,
    /// The commands that show what options were given for.
    pub readers: Vec<&'static str>,
}

/// The whole summary.
pub fn print(summary: &Summary, asked: &Asked) {
    if let Some(snapshots) = &summary.snapshots {
        return print_flight(summary, snapshots, asked);
    }
    let streams = [&summary.user_streams, &summary.kernel_streams, &summary.profile_streams];
    if streams.iter().any(|streams| !streams.is_empty()) {
        let table = Layout::all(&columns(), TableFormat::Table).table(&rows(summary));
        // As for all of the summary: where standard error is gone, there is no place to report that.
        let _ = table.print(&mut stderr(Form::Text));
    }
    print_losses(summary);
    let rate = summary.events as f64 / summary.seconds.max(1e-9);
    let state = cut_short(summary);
    say!(
        "{}, {} lost, {} of files in {:.3} s ({} events/s), {} {} joined{state}",
        events(summary.events),
        lost(summary.lost, is_lost_unknown(summary)),
        bytes(summary.bytes),
        summary.seconds,
        number(rate as u64),
        number(summary.processes as u64),
        if summary.processes == 1 { "program" } else { "programs" },
    );
    print_attached(summary);
    print_archives(summary);
    if summary.state != State::Complete {
        // The error has been printed.
    } else if summary.processes > 0 && summary.user_streams.iter().all(|stream| stream.events == 0) {
        let hint = if asked.has_rules {
            ": do the event rules (-e, --where, ...) match what the programs emit?"
        } else {
            ""
        };
        say!("No events of programs{hint}");
    } else if summary.events == 0 {
        say!("No events: {}", why_none(summary.attached.is_empty(), asked.has_kernel));
    }
    if summary.events > 0 {
        print_next(&summary.folder, asked);
    }
}

/// Which commands show what was recorded.
fn print_next(folder: &Path, asked: &Asked) {
    for (index, command) in commands(folder, asked).iter().enumerate() {
        let label = if index == 0 { "Next:" } else { "     " };
        say!("{label} {HEADER}{command}{HEADER:#}");
    }
}

fn commands(folder: &Path, Asked { readers, .. }: &Asked) -> Vec<String> {
    let readers = if readers.is_empty() { &["list -n 20"][..] } else { &readers[..] };
    readers.iter().map(|reader| format!("tracewing {reader} {}", quoted(folder))).collect()
}

/// Why a recording that is complete has no events: of a command, or of processes that ran already.
fn why_none(is_command: bool, has_kernel: bool) -> &'static str {
    match (is_command, has_kernel) {
        (false, _) => "nothing that is recorded happened in the processes",
        (true, true) => {
            "nothing that the kernel was to record happened in the command's threads, and no program joined"
        }
        (true, false) => "no program that links the crate tracewing joined",
    }
}

/// Which processes were recorded that ran already.
fn print_attached(summary: &Summary) {
    let Summary { attached, .. } = summary;
    if attached.is_empty() {
        return;
    }
    let noun = if attached.len() == 1 { "process" } else { "processes" };
    let names: Vec<String> = attached
        .iter()
        .take(MOST_ATTACHED)
        .map(|process| format!("{} ({})", process.pid, shown(&process.name)))
        .collect();
    let more = match attached.len().saturating_sub(MOST_ATTACHED) {
        0 => String::new(),
        more => format!(" and {more} more (see tracewing.json)"),
    };
    let stop = match summary.longest_stop {
        Some(stop) => format!("; longest stop of a thread: {:.3} ms", stop.as_ns() as f64 / 1e6),
        None => String::new(),
    };
    say!("attached to {} {noun}: {}{more}{stop}", number(attached.len() as u64), names.join(", "));
}

/// The archives of a rotated recording, which of them were removed, and how often the command for them
/// failed.
fn print_archives(summary: &Summary) {
    if let Some(AllArchives { completed, removed: Removed { count, events, .. } }) = summary.archive_totals {
        let noun = if completed == 1 { "archive" } else { "archives" };
        let gone = match count {
            0 => String::new(),
            _ => format!(", {} of them removed, with {}", number(count), self::events(events)),
        };
        say!("{} {noun}{gone}", number(completed));
    }
    if let Some(CommandTotals { run, failed, skipped }) = summary.on_archive
        && (failed > 0 || skipped > 0)
    {
        let times = if run == 1 { "archive" } else { "archives" };
        say!(
            "{WARNING}--on-archive: run for {} {times}, failed for {}, skipped for {}{WARNING:#}",
            number(run),
            number(failed),
            number(skipped)
        );
    }
}

/// Whether more was lost than is counted.
fn is_lost_unknown(summary: &Summary) -> bool {
    let Summary { user_streams, kernel_streams, profile_streams, .. } = summary;
    [user_streams, kernel_streams, profile_streams].into_iter().flatten().any(StreamSummary::loses_more)
}

/// A number of lost events, as far as it is known.
pub fn lost(events: u64, is_unknown: bool) -> String {
    match (events, is_unknown) {
        (0, true) => "an unknown number".to_owned(),
        (_, true) => format!("at least {}", number(events)),
        (_, false) => number(events),
    }
}

fn cut_short(summary: &Summary) -> &'static str {
    if summary.state == State::Complete { "" } else { " (cut short)" }
}

/// A flight recorder's summary; its snapshots were reported when they were taken.
fn print_flight(summary: &Summary, snapshots: &[SnapshotSummary], asked: &Asked) {
    print_losses(summary);
    let programs = if summary.processes == 1 { "program" } else { "programs" };
    let taken = taken(summary.snapshot_totals.unwrap_or_default(), summary.bytes);
    let state = cut_short(summary);
    print_attached(summary);
    say!("{:.3} s, {} {programs} joined, {taken}{state}", summary.seconds, number(summary.processes as u64));
    if let Some(last) = snapshots.last() {
        print_next(&last.folder, asked);
    }
}

/// How many snapshots were taken, and how many of them were removed.
fn taken(SnapshotTotals { taken, removed, .. }: SnapshotTotals, size: u64) -> String {
    let noun = match taken {
        0 => return "no snapshot was taken, so nothing was written".to_owned(),
        1 => "snapshot",
        _ => "snapshots",
    };
    let gone = match removed.count {
        0 => String::new(),
        count => format!(" ({} removed)", number(count)),
    };
    format!("{} {noun}, {}{gone}", number(taken.into()), bytes(size))
}

/// A snapshot that was just taken.
pub fn print_snapshot(snapshot: &SnapshotSummary) {
    say!(
        "snapshot at {:.3} s ({}): {}, {} in {}",
        snapshot.seconds,
        snapshot.reason,
        events(snapshot.events),
        bytes(snapshot.bytes),
        quoted(&snapshot.folder),
    );
}

/// What was overwritten before it could be written, if anything was.
fn print_overwritten(summary: &Summary) {
    if summary.overwritten.is_empty() {
        return;
    }
    let sum = |part: fn(&OverwrittenRange) -> u64| {
        summary.overwritten.iter().map(part).fold(0, u64::saturating_add)
    };
    let (sub_buffers, size) = (sum(|range| range.sub_buffers), sum(|range| range.bytes));
    let what = if sub_buffers == 1 { "sub-buffer was" } else { "sub-buffers were" };
    say!("{WARNING}{} {what} overwritten, with {} of events{WARNING:#}", number(sub_buffers), bytes(size));
    let mut largest: Vec<&OverwrittenRange> = summary.overwritten.iter().collect();
    largest.sort_by_key(|range| std::cmp::Reverse(range.bytes));
    for range in largest.iter().take(MOST_LOSSES) {
        say!(
            "  {} ({}) in {} between {:.3} s and {:.3} s",
            number(range.sub_buffers),
            bytes(range.bytes),
            range.stream,
            seconds(summary, range.begin),
            seconds(summary, range.end),
        );
    }
    if largest.len() > MOST_LOSSES {
        say!("  and {} ranges more (see tracewing.json)", largest.len() - MOST_LOSSES);
    }
}

/// Only what was lost, if anything was.
pub fn print_losses(summary: &Summary) {
    print_overwritten(summary);
    if summary.lost == 0 {
        return;
    }
    let were = if summary.lost == 1 { "was" } else { "were" };
    say!("{WARNING}{} {were} lost{WARNING:#}", events(summary.lost));
    let mut largest: Vec<&LossRange> = summary.losses.iter().collect();
    largest.sort_by_key(|range| std::cmp::Reverse(range.events));
    for range in largest.iter().take(MOST_LOSSES) {
        say!(
            "  {} in {} between {:.3} s and {:.3} s: {}",
            number(range.events),
            range.stream,
            seconds(summary, range.begin),
            seconds(summary, range.end),
            range.reason
        );
    }
    if largest.len() > MOST_LOSSES {
        let rest = &largest[MOST_LOSSES..];
        let events = rest.iter().map(|range| range.events).fold(0, u64::saturating_add);
        let times = if rest.len() == 1 { "time" } else { "times" };
        say!("  {} at {} other {times} (see tracewing.json)", number(events), rest.len());
    }
    let because = |loss: Loss| summary.losses.iter().any(|range| range.reason == loss.reason());
    if because(Loss::Full) {
        say!("Larger buffers lose less: --sub-buffer-size, --sub-buffers");
    }
    if because(Loss::TooLarge) {
        say!("An event may have half a --sub-buffer-size, at most 64 KiB");
    }
}

/// Seconds from the command's start to a stamp.
fn seconds(summary: &Summary, stamp: Cycles) -> f64 {
    stamp.since(summary.begin).0 as f64 / summary.frequency.max(1) as f64
}

/// A stream, or what the least important ones amount to together.
struct Row {
    stream: String,
    events: u64,
    lost: u64,
    is_lost_unknown: bool,
    packets: u64,
    bytes: u64,
}

fn columns() -> Vec<Column<Row>> {
    columns! { row: Row;
        text "stream" "stream" key + shrinking, "file of the stream in the trace folder" => row.stream.as_str().into();
        number "events" "events" key, "events written" => Cell::Total(row.events);
        number "lost" "lost" key + alarming, "lost events; + if there were more"
            => if row.is_lost_unknown { Cell::AtLeast(row.lost) } else { Cell::Total(row.lost) };
        number "packets" "packets" normal, "packets written" => Cell::Total(row.packets);
        size "size" "bytes" high, "size of the file" => Cell::Bytes(row.bytes);
    }
}

pub fn view() -> View {
    View::new("record (summary)", heads(columns()))
}

fn rows(summary: &Summary) -> Vec<Row> {
    let mut streams: Vec<(&str, &StreamSummary)> =
        summary.user_streams.iter().map(|stream| ("user", stream)).collect();
    streams.extend(summary.kernel_streams.iter().map(|stream| ("kernel", stream)));
    streams.extend(summary.profile_streams.iter().map(|stream| ("profile", stream)));
    let rest = if streams.len() > MOST_ROWS {
        streams.sort_by_key(|(_, stream)| std::cmp::Reverse((stream.lost, stream.events)));
        streams.split_off(MOST_ROWS - 1)
    } else {
        Vec::new()
    };
    let row = |stream: String, of: &[(&str, &StreamSummary)]| {
        let sum = |part: fn(&StreamSummary) -> u64| total_count(of.iter().map(|(_, stream)| part(stream)));
        Row {
            stream,
            events: sum(|stream| stream.events),
            lost: sum(|stream| stream.lost),
            is_lost_unknown: of.iter().any(|(_, stream)| stream.loses_more()),
            packets: sum(|stream| stream.packets),
            bytes: sum(|stream| stream.bytes),
        }
    };
    let mut rows: Vec<_> =
        streams.iter().map(|of| row(format!("{}/{}", of.0, of.1.name), std::slice::from_ref(of))).collect();
    if !rest.is_empty() {
        rows.push(row(format!("{} others", rest.len()), &rest));
    }
    rows
}

fn events(count: u64) -> String {
    format!("{} {}", number(count), if count == 1 { "event" } else { "events" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_consumer::summary::OverwrittenTotal;
    use tracewing_units::Cpu;

    #[test]
    fn a_number_that_is_unknown_is_no_zero() {
        let said =
            [(0, false), (0, true), (1500, false), (1500, true)].map(|(events, more)| lost(events, more));
        assert_eq!(said, ["0", "an unknown number", "1,500", "at least 1,500"]);
    }

    /// The list of snapshots has the last ones only.
    #[test]
    fn all_snapshots_are_counted() {
        let said = [(0, 0), (1, 0), (5000, 4998)]
            .map(|(taken, count)| SnapshotTotals { taken, removed: Removed { count, ..Removed::default() } })
            .map(|totals| taken(totals, 2048));
        assert_eq!(
            said,
            [
                "no snapshot was taken, so nothing was written",
                "1 snapshot, 2.0 KiB",
                "5,000 snapshots, 2.0 KiB (4,998 removed)"
            ]
        );
    }

    /// Interrupts are recorded in the command's threads only, so `-k irq_handler_entry` may find none.
    #[test]
    fn events_of_the_kernel_that_were_chosen_may_not_have_happened() {
        assert!(why_none(true, true).starts_with("nothing that the kernel was to record happened"));
        assert_eq!(why_none(true, false), "no program that links the crate tracewing joined");
        assert_eq!(why_none(false, true), "nothing that is recorded happened in the processes");
    }

    #[test]
    fn the_next_command_shows_what_was_asked_for() {
        let commands = |readers: &[&'static str]| {
            let asked = Asked { has_rules: false, has_kernel: false, readers: readers.to_vec() };
            commands(Path::new("a b"), &asked)
        };
        assert_eq!(commands(&[]), ["tracewing list -n 20 'a b'"]);
        assert_eq!(commands(&["locks", "profile"]), ["tracewing locks 'a b'", "tracewing profile 'a b'"]);
    }

    #[test]
    fn overwritten_sub_buffers_make_losses_unknown() {
        let stream = |sub_buffers| StreamSummary {
            events: 7,
            packets: 1,
            bytes: 100,
            ..StreamSummary::without_file("uid0_0", Cpu(0), 0, OverwrittenTotal { sub_buffers, bytes: 0 })
        };
        assert!(stream(2).loses_more() && !stream(0).loses_more());
        assert!(StreamSummary { is_lost_unknown: true, ..stream(0) }.loses_more());
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 1, 1000].map(events), ["0 events", "1 event", "1,000 events"]);
        assert_eq!([0, 1023, 1024, 5 << 20].map(bytes), ["0 B", "1023 B", "1.0 KiB", "5.0 MiB"]);
    }
}
