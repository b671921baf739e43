//! Reading from any time returns the same as the end of reading everything, whatever the index says.

mod common;
mod random;

use common::{Packet, class, tick, write_trace};
use random::{Numbers, ORIGIN, rest, stream};
use std::path::Path;
use tracewing_ctf::index::{self, Entry};
use tracewing_ctf::write::PACKET_HEADER_SIZE;
use tracewing_oracle::assert_same_as_babeltrace2;
use tracewing_trace::{Lost, Merge, Message, Recording, TimeRange};
use tracewing_units::{Cycles, Timestamp};

/// Seeks forwards and backwards over all of the trace, and compares with a merge that began at the first
/// packet.
fn check(folder: &Path, what: &str) {
    let recording = Recording::open(&[folder]).unwrap();
    let (events, losses) = rest(&mut Merge::new(&recording, TimeRange::ALL));
    assert!(events.len() > 10, "{what}");
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let (first, last) = (events[0].0, events[events.len() - 1].0);
    let forwards = (0..60).map(|step| first - 20 + (last - first + 40) * step / 60);
    for time in forwards.chain([last, first, first + 77, first + 5]) {
        let expected: Vec<_> = events.iter().copied().filter(|event| event.0 >= time).collect();
        merge.seek(Timestamp::from_ns(time));
        let (found, lost) = rest(&mut merge);
        assert_eq!(found, expected, "{what}, from {}", time - ORIGIN);
        // Losses between packets without stamps belong to no time.
        let timed = |losses: &[Lost]| {
            losses
                .iter()
                .filter(|lost| lost.range.is_some_and(|(_, end)| end >= Timestamp::from_ns(time)))
                .count()
        };
        assert_eq!(timed(&lost), timed(&losses), "{what}, from {}", time - ORIGIN);
    }
}

#[test]
fn from_any_time_with_good_and_bad_indexes() {
    for seed in 1..24_u32 {
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15_u64.rotate_left(seed));
        let folder = tempfile::tempdir().unwrap();
        let streams: Vec<_> =
            (0..3).map(|instance| stream(&mut numbers, instance, 1000 + instance * 150, true)).collect();
        let names = ["s0", "s1", "s2"];
        let files: Vec<_> =
            names.iter().zip(&streams).map(|(name, (bytes, _))| (*name, bytes.clone())).collect();
        write_trace(folder.path(), &class(Some(1), 1_000_000_000), &files);
        check(folder.path(), &format!("seed {seed}, no index"));
        std::fs::create_dir(folder.path().join("index")).unwrap();
        for kind in ["good", "short", "damaged", "another's"] {
            for (at, name) in names.iter().enumerate() {
                let mut index = streams[if kind == "another's" { (at + 1) % 3 } else { at }].1.clone();
                match kind {
                    "short" => index.truncate(index.len() * 2 / 3),
                    "damaged" => {
                        let place = numbers.below(index.len() as u64) as usize;
                        index[place] ^= 1 << numbers.below(8);
                    }
                    _ => {}
                }
                std::fs::write(folder.path().join(format!("index/{name}.idx")), index).unwrap();
            }
            // A wrong stamp in the middle of an index shows only where reading begins there.
            if kind != "damaged" {
                check(folder.path(), &format!("seed {seed}, {kind} index"));
            } else {
                let recording = Recording::open(&[folder.path()]).unwrap();
                rest(&mut Merge::new(
                    &recording,
                    TimeRange { begin: Timestamp::from_ns(ORIGIN + 1100), end: Timestamp::MAX },
                ));
            }
        }
    }
}

#[test]
fn what_lies_before_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bytes, mut index) = (Vec::new(), index::encode_header().to_vec());
    for number in 0..30_u64 {
        let (begin, end) = (1000 + number * 100, 1090 + number * 100);
        let packet = Packet { seq: number, ..Packet::new(1, 0, begin, end) }.bytes(&[tick(begin + 5, 1)]);
        let entry = Entry {
            offset: bytes.len() as u64,
            packet_bits: packet.len() as u64 * 8,
            begin: Cycles(begin),
            end: Cycles(end),
            ..Entry::default()
        };
        index.extend(index::encode_entry(&entry));
        bytes.extend(packet);
    }
    let size = bytes.len() / 30;
    bytes[7 * size..][..PACKET_HEADER_SIZE].fill(0xFF);
    bytes[26 * size..][..PACKET_HEADER_SIZE].fill(0xFF);
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s", bytes)]);
    std::fs::create_dir(folder.path().join("index")).unwrap();
    std::fs::write(folder.path().join("index/s.idx"), index).unwrap();

    let recording = Recording::open(&[folder.path()]).unwrap();
    let mut all = Merge::new(&recording, TimeRange::ALL);
    assert!(
        std::iter::from_fn(|| all.advance().map(|message| message.map(drop)).transpose())
            .any(|one| one.is_err())
    );
    let mut slice = Merge::new(
        &recording,
        TimeRange { begin: Timestamp::from_ns(ORIGIN + 2000), end: Timestamp::from_ns(ORIGIN + 3200) },
    );
    assert_eq!(rest(&mut slice).0.len(), 12);
}

#[test]
fn a_stream_in_several_files_that_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let packets: Vec<_> = (0..24_u64)
        .map(|number| {
            let begin = 1000 + number * 100;
            let events: Vec<_> = (0..4).map(|event| tick(begin + event * 20, event as u32)).collect();
            Packet { seq: number, discarded: number / 5, ..Packet::new(1, 4, begin, begin + 70) }
                .bytes(&events)
        })
        .collect();
    let part = |from: usize, to: usize| packets[from..to].concat();
    let class = class(Some(1), 1_000_000_000);
    for (name, bytes) in [("one", part(0, 10)), ("two", part(6, 18)), ("three", part(18, 24))] {
        write_trace(&folder.path().join(name), &class, &[("s", bytes)]);
    }
    check(folder.path(), "chunks");
}

/// The same trace with its metadata changed.
fn with_metadata(change: impl Fn(String) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(12345);
    let streams: Vec<_> =
        (0..2).map(|instance| stream(&mut numbers, instance, 1000 + instance * 40, true)).collect();
    let files: Vec<_> =
        ["s0", "s1"].into_iter().zip(streams.iter().map(|(bytes, _)| bytes.clone())).collect();
    write_trace(folder.path(), &class(Some(1), 2_445_000_123), &files);
    let path = folder.path().join("metadata");
    let metadata = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let changed = change(metadata.clone());
    std::fs::write(path, &changed).unwrap();
    std::fs::create_dir(folder.path().join("index")).unwrap();
    for (name, (_, index)) in ["s0", "s1"].into_iter().zip(streams) {
        std::fs::write(folder.path().join(format!("index/{name}.idx")), index).unwrap();
    }
    folder
}

#[test]
fn clocks_of_other_frequencies_and_packets_without_stamps() {
    check(with_metadata(|text| text).path(), "2.445 GHz");
    // A field of another name that is mapped to the clock would move it.
    let without = |name: &'static str| {
        move |text: String| {
            let line = |line: &str| match line.contains(name) {
                true => line.replace("map = clock.tsc.value;", "").replace(name, &name.replace("stamp", "")),
                false => line.to_owned(),
            };
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        }
    };
    check(with_metadata(without("timestamp_begin")).path(), "no begin stamps");
    check(with_metadata(without("timestamp_end")).path(), "no end stamps");
    let neither = with_metadata(|text| without("timestamp_begin")(without("timestamp_end")(text)));
    check(neither.path(), "no stamps of packets");
}

#[test]
fn without_a_clock_there_is_only_the_begin() {
    let unmapped = |text: String| {
        let (before, clock) = text.split_once("clock {").unwrap();
        let (_, after) = clock.split_once("};").unwrap();
        // What is called a time stamp gets a clock of its own.
        [before, after].concat().replace("map = clock.tsc.value;", "").replace("timestamp", "moment")
    };
    let folder = with_metadata(unmapped);
    let recording = Recording::open(&[folder.path()]).unwrap();
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let mut count = || {
        let mut count = 0;
        while let Some(message) = merge.advance().unwrap() {
            count += u32::from(matches!(message, Message::Event(event) if event.stamp().is_none()));
        }
        merge.seek(Timestamp::from_ns(ORIGIN + 5000));
        count
    };
    let all = count();
    assert!(all > 10);
    assert_eq!(count(), all);
}

#[test]
fn slices_are_those_of_babeltrace2() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(99);
    let mut stream = |instance: u64| {
        let mut time = 1000 + instance * 170;
        let packet = |seq: u64| {
            let begin = time;
            let events: Vec<_> = (0..numbers.below(5))
                .map(|number| {
                    time += numbers.below(40);
                    tick(time, number as u32)
                })
                .collect();
            let (seq, discarded) = (seq + seq / 9, seq / 4);
            Packet { seq, discarded, ..Packet::new(1, instance, begin, time) }.bytes(&events)
        };
        (0..30).flat_map(packet).collect::<Vec<_>>()
    };
    let files: Vec<_> = ["s0", "s1", "s2"].into_iter().zip((0..3).map(&mut stream)).collect();
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &files);
    for begin in (0..12).map(|step| ORIGIN + 900 + step * 211) {
        let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let [begin, end] =
            [("--begin", begin), ("--end", begin + 500)].map(|(name, at)| format!("{name}={}", seconds(at)));
        assert_same_as_babeltrace2(folder.path(), &["--clock-seconds", &begin, &end]);
    }
}
