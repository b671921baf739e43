//! Equal stamps in several streams and traces, clocks of several kinds, files that overlap: as babeltrace2
//! has them.

mod common;

use common::{Event, Packet, class, tick, write_trace};
use std::fs;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_oracle::{assert_always_same_as_babeltrace2, assert_same_as_babeltrace2};
use tracewing_trace::{Listing, Recording};

fn lines(folder: &std::path::Path) -> usize {
    let mut ours = (Vec::new(), Vec::new());
    Listing::default().print(&Recording::open(&[folder]).unwrap(), &mut ours).unwrap();
    ours.0.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn equal_stamps_go_by_trace_then_stream() {
    let folder = tempfile::tempdir().unwrap();
    // Stream ids against the order of file names, and UUIDs against that of folders.
    for (trace, uuid) in [("a", 9), ("b", 3), ("c/d", 5)] {
        let files: Vec<_> = [("s0", 2), ("s1", 0), ("s2", 1)]
            .into_iter()
            .map(|(name, instance)| {
                let events: Vec<_> =
                    (0..20).map(|number| tick(100 + u64::from(number) / 4 * 10, number)).collect();
                (name, Packet::new(uuid, instance, 100, 150).bytes(&events))
            })
            .collect();
        write_trace(&folder.path().join(trace), &class(Some(uuid), 1_000_000_000), &files);
    }
    assert_always_same_as_babeltrace2(folder.path());
    assert_eq!(lines(folder.path()), 180);
}

#[test]
fn equal_stamps_in_traces_that_cannot_be_distinguished() {
    // Without UUID, and given one by one, so that neither has a name: the event classes decide.
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (trace, first) in [("a", 1_u16), ("b", 0), ("c", 2)] {
        let mut class = class(None, 1_000_000_000);
        let payload = StructureClass::new().with("n", FieldClass::unsigned(32));
        let stream = &mut class.data_stream_classes[0];
        for id in 1..4 {
            stream
                .event_record_classes
                .push(EventRecordClass::new(id, format!("test:{id}")).with_payload(payload.clone()));
        }
        let event =
            |index: u16| Event { id: (first + index) % 4, ..tick(200 + u64::from(index / 2), index.into()) };
        let events: Vec<_> = (0..8).map(event).collect();
        let mut packet = Packet::new(0, 0, 200, 300);
        packet.uuid = [0; 16];
        let path = folder.path().join(trace);
        write_trace(&path, &class, &[("s", packet.bytes(&events))]);
        paths.push(path);
    }
    let mut ours = (Vec::new(), Vec::new());
    Listing::default().print(&Recording::open(&paths).unwrap(), &mut ours).unwrap();
    let Ok(theirs) = std::process::Command::new("babeltrace2").args(&paths).output() else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return;
    };
    assert_eq!(String::from_utf8_lossy(&ours.0), String::from_utf8_lossy(&theirs.stdout));
}

#[test]
fn a_clock_that_does_not_tick_in_nanoseconds() {
    let folder = tempfile::tempdir().unwrap();
    let begin = 7_777_777_777_777_777_u64;
    let mut state = 1_u64;
    let mut stamp = begin;
    let events: Vec<_> = (0..2000)
        .map(|number| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            stamp += state >> 40;
            tick(stamp, number)
        })
        .collect();
    let bytes = Packet::new(1, 0, begin, stamp).bytes(&events);
    write_trace(folder.path(), &class(Some(1), 2_599_998_000), &[("s", bytes)]);
    assert_always_same_as_babeltrace2(folder.path());
    assert_eq!(lines(folder.path()), 2000);
}

#[test]
fn losses_between_and_before_packets() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |begin, seq, discarded| Packet { seq, discarded, ..Packet::new(1, 0, begin, begin + 50) };
    let mut bytes = packet(1000, 4, 3).bytes(&[tick(1000, 1), tick(1010, 2)]);
    bytes.extend(packet(1100, 5, 3).bytes(&[tick(1100, 3)]));
    bytes.extend(packet(1200, 8, 4).bytes(&[]));
    bytes.extend(packet(1300, 9, 14).bytes(&[tick(1310, 4)]));
    let other =
        Packet { discarded: 1, ..Packet::new(1, 1, 1000, 1400) }.bytes(&[tick(1005, 5), tick(1350, 6)]);
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes), ("s1", other)]);
    assert_always_same_as_babeltrace2(folder.path());
    let base = 1_795_235_140_123_456_789_i64;
    let at = |ns: i64| format!("{}.{:09}", (base + ns) / 1_000_000_000, (base + ns) % 1_000_000_000);
    for (begin, end) in [(1000, 1350), (1010, 1310), (1011, 1309), (1120, 1240), (1250, 1250), (1400, 1500)] {
        let (begin, end) = (format!("--begin={}", at(begin)), format!("--end={}", at(end)));
        assert_same_as_babeltrace2(folder.path(), &[&begin, &end]);
        assert_same_as_babeltrace2(folder.path(), &[&begin]);
        assert_same_as_babeltrace2(folder.path(), &[&end]);
    }
    for options in
        [["--begin=04:25:40", "--clock-gmt"], ["--end=2026-11-21 04:25:40.123457795", "--clock-gmt"]]
    {
        assert_same_as_babeltrace2(folder.path(), &options);
    }
}

#[test]
fn files_of_one_stream_are_joined_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |begin, seq| Packet { seq, ..Packet::new(1, 0, begin, begin + 50) };
    let bytes =
        |begin: u64, seq: u64| packet(begin, seq).bytes(&[tick(begin, seq as u32), tick(begin + 50, 0)]);
    let class = class(Some(1), 1_000_000_000);
    // Chunks out of order; then a snapshot that repeats packets of both.
    write_trace(&folder.path().join("1"), &class, &[("late", [bytes(3000, 2), bytes(4000, 3)].concat())]);
    write_trace(&folder.path().join("2"), &class, &[("early", [bytes(1000, 0), bytes(2000, 1)].concat())]);
    write_trace(&folder.path().join("3"), &class, &[("again", [bytes(2000, 1), bytes(3000, 2)].concat())]);
    assert_always_same_as_babeltrace2(folder.path());
    assert_eq!(lines(folder.path()), 8);
    assert_eq!(Recording::open(&[folder.path()]).unwrap().streams().len(), 1);
}

#[test]
fn traces_in_many_folders_next_to_other_files() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..30_u8 {
        let bytes = Packet::new(number, 0, 10, 20).bytes(&[tick(10 + u64::from(number % 3), number.into())]);
        let path = folder.path().join(format!("host{}/trace{number}", number % 4));
        write_trace(&path, &class(Some(number), 1_000_000_000), &[("s", bytes)]);
        fs::write(path.join(".hidden"), "not a stream").unwrap();
        fs::write(path.join("empty"), "").unwrap();
        fs::create_dir(path.join("index")).unwrap();
    }
    assert_always_same_as_babeltrace2(folder.path());
    assert_eq!(lines(folder.path()), 30);
}
