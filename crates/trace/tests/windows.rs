//! A part of the time holds the same events and losses, however it is read: as a window of the recording, or
//! from a copy of the window in either version of CTF.

mod common;
mod random;

use common::{Event, Packet, class, forget_declared_losses, tick, write_trace};
use random::{Numbers, ORIGIN, Seen, rest, stream};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use tracewing_ctf::model::Version;
use tracewing_trace::{
    Conversion, Converted, Filter, Lost, LostKind, Merge, Recording, Report, Statistics, TimePoint, TimeRange,
};
use tracewing_units::Timestamp;

fn open(folder: &Path) -> Recording {
    Recording::open(&[folder]).unwrap_or_else(|error| panic!("{error}"))
}

fn at(cycles: u64) -> Timestamp {
    Timestamp::from_ns(ORIGIN + cycles.cast_signed())
}

/// From and to these cycles of a clock of 1 GHz, both included.
fn window(from: u64, to: u64) -> Filter {
    let point = |cycles| Some(TimePoint::Absolute(at(cycles)));
    Filter { from: point(from), to: point(to), ..Filter::default() }
}

fn copy(from: &Path, to: &Path, version: Version, explained: bool, filter: &Filter) -> Converted {
    let conversion = Conversion { version: Some(version), filter: filter.clone(), explained };
    let watch = &mut |_| ControlFlow::Continue(());
    conversion.run(&open(from), to, watch).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether packets were lost, how many, and from which cycle to which one.
type Loss = (bool, Option<u64>, Option<(i64, i64)>);

/// Losses in an order that does not depend on how they are stored.
fn sorted(losses: &[Lost]) -> Vec<Loss> {
    let of = |lost: &Lost| {
        let range = lost.range.map(|(begin, end)| (begin.as_ns() - ORIGIN, end.as_ns() - ORIGIN));
        (lost.kind == LostKind::Packets, lost.count, range)
    };
    let mut losses: Vec<_> = losses.iter().map(of).collect();
    losses.sort_unstable();
    losses
}

fn seen(folder: &Path, range: TimeRange) -> Seen {
    rest(&mut Merge::new(&open(folder), range))
}

/// What `info` reports as lost.
fn reported(folder: &Path) -> Vec<Loss> {
    let (report, errors) = Report::new(&open(folder));
    assert!(errors.is_empty(), "{errors:?}");
    let streams = report.traces.iter().flat_map(|trace| &trace.streams);
    let mut losses: Vec<_> = streams
        .flat_map(|stream| &stream.losses)
        .map(|lost| {
            let ns = |time: Option<Timestamp>| time.map(|time| time.as_ns() - ORIGIN);
            (lost.what == "packets", lost.count, ns(lost.begin_ns).zip(ns(lost.end_ns)))
        })
        .collect();
    losses.sort_unstable();
    losses
}

/// Compares a window of `trace` with copies of it.
fn check(trace: &Path, from: u64, to: u64, what: &str) {
    let (events, losses) = seen(trace, TimeRange { begin: at(from), end: at(to) });
    let losses = sorted(&losses);
    let out = tempfile::tempdir().unwrap();
    let filter = window(from, to);
    for (name, version, explained) in
        [("1", Version::V1_8, false), ("2", Version::V2, false), ("extract", Version::V1_8, true)]
    {
        let what = format!("{what}, {from} to {to}, {name}");
        let to = out.path().join(name);
        let converted = copy(trace, &to, version, explained, &filter);
        let (copied, lost) = seen(&to, TimeRange::ALL);
        assert_eq!(copied, events, "{what}");
        assert_eq!(sorted(&lost), losses, "{what}");
        assert_eq!(reported(&to), losses, "{what}");
        let known = |packets| losses.iter().filter(|lost| lost.0 == packets).filter_map(|lost| lost.1).sum();
        assert_eq!((converted.lost_events, converted.lost_packets), (known(false), known(true)), "{what}");
        assert_eq!(converted.unknown_losses, losses.iter().filter(|lost| lost.1.is_none()).count() as u64);
        for (of, filter) in [(trace, &filter), (&to, &Filter::default())] {
            let statistics = Statistics::collect(&open(of), filter).unwrap();
            let lost: u64 = statistics.streams.iter().map(|stream| stream.lost.least_events).sum();
            assert_eq!((statistics.total.events, lost), (events.len() as u64, known(false)), "{what}");
            let is_unknown = losses.iter().any(|lost| lost.0 || lost.1.is_none());
            let has_more = statistics.streams.iter().any(|stream| stream.lost.has_more_events);
            assert_eq!(has_more, is_unknown, "{what}");
        }
    }
    // A copy of the copy is the same.
    let again = out.path().join("again");
    copy(&out.path().join("1"), &again, Version::V2, false, &filter);
    let (copied, lost) = seen(&again, TimeRange::ALL);
    assert_eq!((copied, sorted(&lost)), (events, losses), "{what}, {from} to {to}, again");
}

/// Writes a random trace of three streams.
fn random(folder: &Path, numbers: &mut Numbers, is_late: bool) {
    let mut file = |instance| stream(numbers, instance, 1000 + instance * 150, is_late).0;
    let files = [("s_0", file(0)), ("s_1", file(1)), ("s_2", file(2))];
    write_trace(folder, &class(Some(1), 1_000_000_000), &files);
}

#[test]
fn a_window_and_copies_of_it_hold_the_same() {
    for seed in 1..3_u32 {
        let mut numbers = Numbers(0xD1B5_4A32_D192_ED03_u64.rotate_left(seed));
        let folder = tempfile::tempdir().unwrap();
        random(folder.path(), &mut numbers, false);
        for _ in 0..5 {
            let from = 900 + numbers.below(900);
            check(folder.path(), from, from + numbers.below(300), &format!("seed {seed}"));
        }
        check(folder.path(), 0, 1 << 40, &format!("seed {seed}"));
    }
}

/// Some packets end before their last events, or before they begin.
#[test]
fn a_copy_has_all_events_of_its_window() {
    for seed in 1..3_u32 {
        let mut numbers = Numbers(0xD1B5_4A32_D192_ED03_u64.rotate_left(seed));
        let folder = tempfile::tempdir().unwrap();
        random(folder.path(), &mut numbers, true);
        let copies = tempfile::tempdir().unwrap();
        for number in 0..6 {
            let from = 900 + numbers.below(900);
            let to = from + numbers.below(300);
            let (events, _) = seen(folder.path(), TimeRange { begin: at(from), end: at(to) });
            let out = copies.path().join(number.to_string());
            copy(folder.path(), &out, Version::V1_8, false, &window(from, to));
            assert_eq!(seen(&out, TimeRange::ALL).0, events, "seed {seed}, {from} to {to}");
        }
    }
}

/// Packets from 0 to 100, from 300 to 400 and from 600 to 700. Five events were lost in or before the second
/// one, and three packets before the third.
fn gaps(folder: &Path) {
    let packets = [(0, 0, 0), (1, 5, 300), (5, 5, 600)];
    let packets = packets.into_iter().flat_map(|(seq, discarded, begin)| {
        Packet { seq, discarded, ..Packet::new(1, 0, begin, begin + 100) }
            .bytes(&[tick(begin + 10, 1), tick(begin + 90, 2)])
    });
    write_trace(folder, &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
}

#[test]
fn windows_that_cut_a_loss_have_a_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    gaps(folder.path());
    let (events, packets) = (false, true);
    let cases = [
        // It ends between two packets.
        (0, 200, vec![(events, None, Some((100, 200)))]),
        // It lies between them.
        (150, 200, vec![(events, None, Some((150, 200)))]),
        // It begins between them, or in the packet that counts the loss.
        (200, 500, vec![(events, None, Some((200, 400))), (packets, None, Some((400, 500)))]),
        (350, 400, vec![(events, None, Some((350, 400))), (packets, None, Some((400, 400)))]),
        (450, 500, vec![(packets, None, Some((450, 500)))]),
        // It ends in that packet.
        (100, 350, vec![(events, None, Some((100, 350)))]),
        (401, 650, vec![(packets, None, Some((401, 600)))]),
        // It has all of them.
        (100, 650, vec![(events, Some(5), Some((100, 400))), (packets, Some(3), Some((400, 600)))]),
        // Nothing was lost in it.
        (0, 90, vec![]),
        (601, 700, vec![]),
    ];
    for (from, to, expected) in cases {
        let lost = seen(folder.path(), TimeRange { begin: at(from), end: at(to) }).1;
        assert_eq!(sorted(&lost), expected, "{from} to {to}");
        check(folder.path(), from, to, "gaps");
    }
}

/// The counter of the copy's first packet shows other readers that there is a loss.
#[test]
fn other_readers_see_a_loss_at_the_begin_of_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    gaps(folder.path());
    let to = folder.path().join("copy");
    copy(folder.path(), &to, Version::V1_8, false, &window(200, 500));
    let metadata = std::fs::read_to_string(to.join("metadata")).unwrap();
    let line = metadata.lines().find(|line| line.contains("lost_within")).unwrap_or_default();
    assert!(line.contains(&format!("- {} {} s_0", ORIGIN + 200, ORIGIN + 400)), "{metadata}");
    forget_declared_losses(&to);
    assert_eq!(sorted(&seen(&to, TimeRange::ALL).1), [(false, None, Some((300, 400)))]);
}

/// Where packets overlap in time, a loss ends after it begins.
#[test]
fn packets_that_overlap_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let packets = [(0, 0, 100, 500), (2, 3, 300, 400), (3, 5, 500, 600)];
    let packets = packets.into_iter().flat_map(|(seq, discarded, begin, end)| {
        Packet { seq, discarded, ..Packet::new(1, 0, begin, end) }
            .bytes(&[tick(begin, 1), tick(begin + 50, 2)])
    });
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
    let expected = [
        (false, Some(2), Some((400, 600))),
        (false, Some(3), Some((300, 500))),
        (true, Some(1), Some((300, 500))),
    ];
    assert_eq!(reported(folder.path()), expected);
}

/// A packet that ends after a window is followed by others that begin in it.
#[test]
fn windows_of_packets_that_overlap_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let stream = |instance| {
        let packets = [(0, 100, 500), (1, 200, 600), (2, 300, 400), (3, 550, 700)];
        let packets = packets.into_iter().map(|(seq, begin, end)| {
            Packet { seq, ..Packet::new(1, instance, begin, end) }
                .bytes(&[tick(begin + 10 + instance, 1), tick(end - 10, 2)])
        });
        packets.flatten().collect::<Vec<u8>>()
    };
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s_0", stream(0)), ("s_1", stream(1))]);
    let out = tempfile::tempdir().unwrap();
    // Where stamps go back, the order in which streams come depends on what is read.
    let sorted = |folder: &Path, range| {
        let mut events = seen(folder, range).0;
        events.sort_unstable();
        events
    };
    let all = sorted(folder.path(), TimeRange::ALL);
    let windows = [(0, 320, 6), (0, 450, 8), (205, 320, 4), (305, 320, 2), (0, 505, 10), (0, 999, 16)];
    for (from, to, count) in windows {
        let range = TimeRange { begin: at(from), end: at(to) };
        let mut expected = all.clone();
        expected.retain(|event| (range.begin..=range.end).contains(&Timestamp::from_ns(event.0)));
        assert_eq!((expected.len(), &sorted(folder.path(), range)), (count, &expected), "{from} to {to}");
        let copied = out.path().join(format!("{from}-{to}"));
        copy(folder.path(), &copied, Version::V2, false, &window(from, to));
        assert_eq!(sorted(&copied, TimeRange::ALL), expected, "{from} to {to}");
        let statistics = Statistics::collect(&open(folder.path()), &window(from, to)).unwrap();
        assert_eq!(statistics.total.events, count as u64, "{from} to {to}");
    }
}

/// An event with the extended header, whose stamp has 64 bits.
fn whole_tick(stamp: u32) -> Event {
    let (high, id, tid) = ([0; 4], [0; 2], 7_i32.to_le_bytes());
    let payload = [&high[..], &id, &tid, &stamp.to_le_bytes()].concat();
    Event { stamp: stamp.into(), id: u16::MAX, tid: stamp.cast_signed(), payload }
}

/// barectf before 2.3.1 stamps events before their packet, and LTTng before 2.11 after it.
#[test]
fn events_outside_of_the_times_of_their_packets() {
    let folder = tempfile::tempdir().unwrap();
    let packets = [(100, 200, [50, 150]), (300, 400, [310, 450]), (500, 600, [510, 560])];
    let packets = packets.into_iter().zip(0..).flat_map(|((begin, end, events), seq)| {
        Packet { seq, ..Packet::new(1, 0, begin, end) }.bytes(&events.map(whole_tick))
    });
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
    for (from, to, count) in
        [(0, 60, 1), (40, 99, 1), (201, 299, 0), (401, 499, 1), (420, 460, 1), (0, 1000, 6)]
    {
        assert_eq!(seen(folder.path(), TimeRange { begin: at(from), end: at(to) }).0.len(), count);
        check(folder.path(), from, to, "outside");
    }
}

/// Gives stamps of packets other names, and takes them from the clock.
fn forget_stamps(folder: &Path, names: &[&str]) {
    let path = folder.join("metadata");
    let metadata = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let changed = metadata.lines().map(|line| match names.iter().find(|name| line.contains(**name)) {
        Some(name) => line.replace("map = clock.tsc.value;", "").replace(name, &name.replace("stamp", "")),
        None => line.to_owned(),
    });
    std::fs::write(&path, changed.collect::<Vec<_>>().join("\n")).unwrap();
}

/// A loss of unknown time comes before the next event: after one that is later than the window, it is
/// outside.
#[test]
fn losses_without_times_after_a_window_are_in_no_copy_of_it() {
    for unstamped in [&["timestamp_begin"][..], &["timestamp_begin", "timestamp_end"]] {
        let folder = tempfile::tempdir().unwrap();
        gaps(folder.path());
        forget_stamps(folder.path(), unstamped);
        for (from, to) in [(0, 50), (0, 200), (0, 350), (320, 350), (0, 650), (0, 1000)] {
            check(folder.path(), from, to, &format!("{unstamped:?}"));
        }
    }
}

/// Nothing is left out where packets do not say when they begin: they have no index.
#[test]
fn packets_without_stamps_are_not_said_to_have_late_events() {
    for unstamped in [&["timestamp_begin"][..], &["timestamp_end"], &["timestamp_begin", "timestamp_end"]] {
        let folder = tempfile::tempdir().unwrap();
        let packets = [(100, 200, 150), (300, 400, 450), (500, 600, 560)];
        let packets = packets.into_iter().zip(0..).flat_map(|((begin, end, stamp), seq)| {
            Packet { seq, ..Packet::new(1, 0, begin, end) }.bytes(&[tick(stamp, 1)])
        });
        write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
        forget_stamps(folder.path(), unstamped);
        let recording = open(folder.path());
        recording.say_remarks(|remark| panic!("{remark}"));
        for begin in [Timestamp::MIN, at(440)] {
            let (events, _) = rest(&mut Merge::new(&recording, TimeRange { begin, end: Timestamp::MAX }));
            assert_eq!(events.len(), if begin == Timestamp::MIN { 3 } else { 2 }, "{unstamped:?}");
        }
    }
}

/// What the reader of [`events_that_an_index_does_not_show`] remarks.
static REMARKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn events_that_an_index_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let packets = [(100, 200, 150), (300, 400, 950), (500, 600, 560)];
    let packets = packets.into_iter().zip(0..).flat_map(|((begin, end, stamp), seq)| {
        Packet { seq, ..Packet::new(1, 0, begin, end) }.bytes(&[tick(stamp, 1)])
    });
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
    let recording = open(folder.path());
    recording.say_remarks(|remark| REMARKS.lock().unwrap().push(remark.to_owned()));
    rest(&mut Merge::new(&recording, TimeRange { begin: at(250), end: Timestamp::MAX }));
    let remarks = REMARKS.lock().unwrap();
    let [remark] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(remark.contains("s_0: events of packet 1 are later than its end"), "{remark}");
}
