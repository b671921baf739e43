//! Statistics, which read each stream separately, agree with the merge's events.

use std::collections::BTreeMap;
use tracewing_trace::{Filter, Merge, Message, Recording, Statistics, TimePoint, TimeRange, Zone};
use tracewing_units::Timestamp;

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ctf/tests/data/lttng-ust-kinds");

/// Events by name, and by stream.
fn merged(recording: &Recording, range: TimeRange, name: &str) -> (BTreeMap<String, u64>, Vec<u64>) {
    let mut merge = Merge::new(recording, range);
    let (mut names, mut streams) = (BTreeMap::new(), vec![0; recording.streams().len()]);
    while let Some(message) = merge.advance().unwrap() {
        if let Message::Event(event) = message {
            let class = event.decoded().class().name.clone().unwrap_or_default();
            if name.is_empty() || class == name {
                *names.entry(class).or_default() += 1;
                streams[event.stream_index()] += 1;
            }
        }
    }
    (names, streams)
}

fn counted(recording: &Recording, filter: &Filter) -> (BTreeMap<String, u64>, Vec<u64>) {
    let statistics = Statistics::collect(recording, filter).unwrap();
    assert!(statistics.errors.is_empty(), "{:?}", statistics.errors);
    let names = statistics.events.iter().map(|row| (row.name.clone(), row.count.events)).collect();
    let streams: Vec<_> = statistics.streams.iter().map(|row| row.count.events).collect();
    let processes: u64 = statistics.processes.iter().map(|row| row.count.events).sum();
    assert_eq!(statistics.total.events, streams.iter().sum::<u64>());
    assert_eq!(statistics.total.events, processes);
    (names, streams)
}

#[test]
fn all_some_and_a_slice() {
    let recording = Recording::open(&[TRACE]).unwrap();
    let all = merged(&recording, TimeRange::ALL, "");
    assert!(all.0.len() > 1, "{all:?}");
    assert_eq!(counted(&recording, &Filter::default()), all);

    let name = all.0.keys().next().unwrap();
    let filter = Filter { events: vec![name.clone()], ..Filter::default() };
    assert_eq!(counted(&recording, &filter), merged(&recording, TimeRange::ALL, name));

    // From the second event to the last but one.
    let mut stamps = Vec::new();
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    while let Some(message) = merge.advance().unwrap() {
        if let Message::Event(event) = message {
            stamps.push(event.stamp().unwrap().time);
        }
    }
    let begin = recording.begin().unwrap();
    let point = |at: Timestamp| Some(TimePoint::FromBegin(at - begin));
    let (from, to) = (stamps[1], stamps[stamps.len() - 2]);
    let filter = Filter { from: point(from), to: point(to), zone: Zone::Utc, ..Filter::default() };
    let slice = counted(&recording, &filter);
    assert_eq!(slice, merged(&recording, TimeRange { begin: from, end: to }, ""));
    assert!(slice.1.iter().sum::<u64>() < stamps.len() as u64);
}
