//! What a recording contains, per trace and per stream: packets, events, bytes, losses, times, and how often
//! each event class occurs.

use crate::Error;
use crate::open::recording::{Recording, Stream};
use crate::stream::cursor::{Item, Lost, Totals};
use crate::stream::losses::Losses;
use crate::time::range::TimeRange;
use std::collections::HashMap;
use tracewing_units::Timestamp;

/// Most losses that are kept one by one for a stream; the rest are only counted.
const MAX_LOSSES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// In the order of [`Recording::traces`].
    pub traces: Vec<TraceSummary>,
    /// What could not be read; everything before it is counted.
    pub errors: Vec<Error>,
}

#[derive(Debug, Default)]
pub(crate) struct TraceSummary {
    /// Its place in [`Recording::traces`].
    pub trace: usize,
    /// Its streams, as in [`Recording::streams`].
    pub streams: Vec<StreamSummary>,
    /// Its event classes, in the order of the metadata.
    pub classes: Vec<ClassSummary>,
}

#[derive(Debug, Default)]
pub(crate) struct StreamSummary {
    /// Its place in [`Recording::streams`].
    pub stream: usize,
    /// The CPU, where all packets name the same one.
    pub cpu: Option<u64>,
    pub packets: u64,
    pub events: u64,
    /// Bytes of its packets.
    pub bytes: u64,
    /// First and last nanosecond since the clock's origin.
    pub range: Option<(Timestamp, Timestamp)>,
    /// Sum of its losses.
    pub lost: Losses,
    /// Losses one by one, up to 10,000.
    pub losses: Vec<Lost>,
}

/// An event class, counted.
#[derive(Debug)]
pub(crate) struct ClassSummary {
    /// The id of its data stream class.
    pub stream_class: u64,
    pub id: u64,
    /// How often it occurs.
    pub count: u64,
}

impl Summary {
    /// Reads all of `recording` and counts.
    pub(crate) fn collect(recording: &Recording) -> Self {
        let mut summary = Summary::default();
        for trace in 0..recording.traces().len() {
            let mut counts = HashMap::new();
            let mut streams = Vec::new();
            for (index, stream) in recording.streams().iter().enumerate() {
                if stream.trace_index() == trace {
                    let (counted, error) = count(recording, index, stream, &mut counts);
                    streams.push(counted);
                    summary.errors.extend(error);
                }
            }
            let classes = &recording.traces()[trace].class().data_stream_classes;
            let classes = classes.iter().flat_map(|stream| {
                stream.event_record_classes.iter().map(|class| (stream.id, class.id)).collect::<Vec<_>>()
            });
            let classes = classes.map(|key| ClassSummary {
                stream_class: key.0,
                id: key.1,
                count: counts.get(&key).copied().unwrap_or(0),
            });
            summary.traces.push(TraceSummary { trace, classes: classes.collect(), streams });
        }
        summary
    }

    /// First and last nanosecond of all streams.
    pub(crate) fn range(&self) -> Option<(Timestamp, Timestamp)> {
        let ranges = self.traces.iter().flat_map(|trace| &trace.streams).filter_map(|stream| stream.range);
        ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
    }
}

fn count(
    recording: &Recording,
    index: usize,
    stream: &Stream,
    counts: &mut HashMap<(u64, u64), u64>,
) -> (StreamSummary, Option<Error>) {
    let mut summary = StreamSummary { stream: index, ..StreamSummary::default() };
    let mut cursor = recording.cursor(stream, Timestamp::MIN);
    let mut events = Totals::default();
    let error = loop {
        match cursor.advance() {
            Ok(Some(Item::Event(stamp))) => {
                summary.events += 1;
                stamp.into_iter().for_each(|stamp| events.stamp(stamp.time));
                *counts.entry((stream.class_id(), cursor.event().class().id)).or_default() += 1;
            }
            Ok(Some(Item::Lost(lost))) => {
                summary.lost.note(&lost);
                if summary.losses.len() < MAX_LOSSES {
                    summary.losses.push(lost);
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    summary.lost = summary.lost.and(recording.lost_besides(stream, TimeRange::ALL));
    if error.is_some() {
        summary.lost = summary.lost.and(Losses::unknown());
    }
    let totals = cursor.totals();
    summary.packets = totals.packets;
    summary.bytes = totals.bytes;
    summary.cpu = totals.cpu.flatten();
    let ranges = [totals.range, events.range].into_iter().flatten();
    summary.range = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    (summary, error)
}
