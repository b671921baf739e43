//! Damaged input: what precedes the damage is printed, then an error names file, place and cause. Never a
//! panic.

mod common;

use common::{Packet, class, tick, write_trace};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use tracewing_trace::{Error, Listing, Merge, Message, Recording, Report, TimeRange};

/// What is printed, and the error.
fn list(folder: &Path) -> (String, Option<String>) {
    let mut ours = (Vec::new(), Vec::new());
    let result =
        Recording::open(&[folder]).and_then(|recording| Listing::default().print(&recording, &mut ours));
    (String::from_utf8(ours.0).unwrap(), result.err().map(|error: Error| error.to_string()))
}

/// Two packets of two events each; the first is 148 + 24 bytes long.
fn stream() -> Vec<u8> {
    let mut bytes = Packet::new(1, 0, 1000, 1100).bytes(&[tick(1000, 1), tick(1050, 2)]);
    bytes.extend(Packet { seq: 1, ..Packet::new(1, 0, 1100, 1200) }.bytes(&[tick(1110, 3), tick(1150, 4)]));
    bytes
}

fn damaged(damage: impl FnOnce(&mut Vec<u8>)) -> (String, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = stream();
    damage(&mut bytes);
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
    list(folder.path())
}

#[test]
fn an_undamaged_trace_has_no_error() {
    let (printed, error) = damaged(|_| {});
    assert_eq!((printed.lines().count(), error), (4, None));
}

#[test]
fn a_packet_cut_short() {
    let second = stream().len() / 2;
    // The packet's first event is whole.
    let (printed, error) = damaged(|bytes| bytes.truncate(second + 110));
    assert_eq!(printed.lines().count(), 3, "{printed}");
    let error = error.unwrap();
    for part in ["s0", &format!("byte {second}"), "packet 1 claims"] {
        assert!(error.contains(part), "{error}");
    }
    let (printed, error) = damaged(|bytes| bytes.truncate(second + 10));
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(error.unwrap().contains("packet header"));
}

#[test]
fn a_packet_that_does_not_begin_with_the_magic_number() {
    let second = stream().len() / 2;
    let (printed, error) = damaged(|bytes| bytes[second] ^= 0xFF);
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(error.unwrap().contains(&format!("packet 1 at byte {second}: magic")));
}

#[test]
fn a_content_that_ends_inside_of_an_event() {
    let second = stream().len() / 2;
    // The content size of the second packet, 3 bytes less.
    let (printed, error) = damaged(|bytes| {
        let at = second + 4 + 16 + 4 + 8 + 16;
        let size = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        bytes[at..at + 8].copy_from_slice(&(size - 24).to_le_bytes());
    });
    assert_eq!(printed.lines().count(), 3, "{printed}");
    let error = error.unwrap();
    assert!(error.contains("packet 1") && error.contains("event payload"), "{error}");
}

#[test]
fn an_unknown_event_id() {
    let second = stream().len() / 2;
    let (printed, error) = damaged(|bytes| bytes[second + 84 + 4] = 99);
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(error.unwrap().contains("event id 99"));
}

#[test]
fn other_streams_are_printed_up_to_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = stream();
    let second = bytes.len() / 2;
    bytes[second] ^= 0xFF;
    let other = Packet::new(1, 1, 900, 5000).bytes(&[tick(900, 5), tick(1049, 6), tick(4000, 7)]);
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes), ("s1", other)]);
    let (printed, error) = list(folder.path());
    assert_eq!(printed.lines().count(), 4, "{printed}");
    assert!(error.is_some());
    // A report counts all that can be read.
    let (report, errors) = Report::new(&Recording::open(&[folder.path()]).unwrap());
    assert_eq!((report.traces[0].event_classes[0].count, errors.len()), (5, 1));
}

#[test]
fn metadata_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", stream())]);
    let metadata = fs::read_to_string(folder.path().join("metadata")).unwrap();
    fs::write(folder.path().join("metadata"), metadata.replacen("stream {", "stream ;{", 1)).unwrap();
    let (printed, error) = list(folder.path());
    let error = error.unwrap();
    assert_eq!(printed, "");
    assert!(error.contains("metadata") && error.contains("line"), "{error}");
}

#[test]
fn what_metadata_has_too_much_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", stream())]);
    assert_eq!(Recording::open(&[folder.path()]).unwrap().warnings(), [""; 0]);
    let metadata = folder.path().join("metadata");
    let text = fs::read_to_string(&metadata).unwrap();
    fs::write(&metadata, text.replacen("major = 1;", "major = 1; color = red;", 1)).unwrap();
    let (printed, error) = list(folder.path());
    assert_eq!((printed.lines().count(), error), (4, None));
    let recording = Recording::open(&[folder.path()]).unwrap();
    let [warning] = recording.warnings() else { panic!("{:?}", recording.warnings()) };
    assert!(warning.starts_with(&format!("{}: metadata, line ", metadata.display())), "{warning}");
    assert!(warning.ends_with("unknown attribute `color` of `trace`; it is ignored"), "{warning}");
}

#[test]
fn what_is_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "text").unwrap();
    assert!(list(folder.path()).1.unwrap().contains("no trace found"));
    assert!(list(&folder.path().join("file")).1.unwrap().contains("not a trace"));
    fs::write(folder.path().join("metadata"), [0_u8, 1, 2]).unwrap();
    assert!(list(folder.path()).1.is_some());
}

#[test]
fn stamps_that_go_back_are_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = Packet::new(1, 0, 1000, 3000).bytes(&[tick(1000, 1), tick(2000, 2)]);
    let second =
        Packet { seq: 1, ..Packet::new(1, 0, 500, 1500) }.bytes(&[tick(500, 3), tick(600, 4), tick(590, 5)]);
    let offset = first.len();
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", [first, second].concat())]);
    let mut lines = (Vec::new(), Vec::new());
    let mut listing = Listing::default();
    listing.style.clock.seconds = true;
    listing.print(&Recording::open(&[folder.path()]).unwrap(), &mut lines).unwrap();
    assert_eq!(String::from_utf8(lines.0).unwrap().lines().count(), 5);
    let warning = String::from_utf8(lines.1).unwrap();
    let place = format!("in the packet at byte {offset} of {}/s0", folder.path().display());
    let range = "from [1795235140.123458789] to [1795235140.123457289]";
    assert!(warning.lines().count() == 1 && warning.contains(range) && warning.contains(&place), "{warning}");
}

#[test]
fn a_packet_of_any_size_is_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = stream();
    let second = bytes.len() / 2;
    let size = 1_u64 << 40;
    // Content size and packet size of the second packet.
    for at in [second + 48, second + 56] {
        bytes[at..at + 8].copy_from_slice(&(size * 8).to_le_bytes());
    }
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
    let file = fs::File::options().write(true).open(folder.path().join("s0")).unwrap();
    file.set_len(second as u64 + size).unwrap();
    let recording = Recording::open(&[folder.path()]).unwrap();
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    // The packet's hole is many events of zeros.
    for _ in 0..400_000 {
        assert!(matches!(merge.advance(), Ok(Some(_))));
    }
    // Without so many bytes it is cut short.
    file.set_len(second as u64 + 6_000_000).unwrap();
    let error = loop {
        match merge.advance() {
            Ok(message) => assert!(message.is_some()),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("became shorter"), "{error}");
}

#[test]
fn a_file_that_becomes_shorter_is_reported() {
    for left in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let packets = [stream(), stream()].concat();
        let length = packets.len() as u64;
        write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", packets)]);
        let recording = Recording::open(&[folder.path()]).unwrap();
        let mut merge = Merge::new(&recording, TimeRange::ALL);
        assert!(matches!(merge.advance(), Ok(Some(_))));
        let file = fs::File::options().write(true).open(folder.path().join("s0")).unwrap();
        file.set_len(left * length / 8).unwrap();
        let error = loop {
            match merge.advance() {
                Ok(message) => assert!(message.is_some(), "{left}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("packet 1: the file became shorter"), "{error}");
    }
}

/// Every byte of the trace is damaged in turn, and the trace is cut at every byte.
#[test]
fn no_damage_makes_it_panic() {
    let folder = tempfile::tempdir().unwrap();
    let class = class(Some(1), 1_000_000_000);
    let whole = stream();
    for at in 0..whole.len() {
        for damage in [0x01, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[at] ^= damage;
            write_trace(folder.path(), &class, &[("s0", bytes)]);
            let (printed, _) = list(folder.path());
            assert!(printed.lines().count() <= 8, "byte {at}: {printed}");
        }
        write_trace(folder.path(), &class, &[("s0", whole[..at].to_vec())]);
        let _ = list(folder.path());
    }
}

/// What readers of [`a_packet_that_ends_before_it_begins`] remark.
static REMARKS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Losses are counted in the packet after them: when they were lost is unknown if its end is.
#[test]
fn a_packet_that_ends_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Packet::new(1, 0, 1000, 1100).bytes(&[tick(1000, 1), tick(1050, 2)]);
    let second = bytes.len();
    let open = Packet { seq: 1, discarded: 7, ..Packet::new(1, 0, 1100, 0) };
    bytes.extend(open.bytes(&[tick(1110, 3), tick(1150, 4)]));
    bytes.extend(Packet { seq: 2, discarded: 9, ..Packet::new(1, 0, 1200, 1100) }.bytes(&[tick(1210, 5)]));
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
    let recording = Recording::open(&[folder.path()]).unwrap();
    recording.say_remarks(|remark| REMARKS.lock().unwrap().push(remark.to_owned()));
    for _ in 0..2 {
        let mut merge = Merge::new(&recording, TimeRange::ALL);
        let (mut events, mut losses) = (0, Vec::new());
        while let Some(message) = merge.advance().unwrap() {
            match message {
                Message::Event(_) => events += 1,
                Message::Lost(lost, ..) => losses.push((lost.count, lost.range)),
            }
        }
        assert_eq!((events, losses), (5, vec![(Some(7), None), (Some(2), None)]));
    }
    let remarks = REMARKS.lock().unwrap();
    let [remark] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(remark.contains(&format!("s0: packet 1 at byte {second} ends before it begins")), "{remark}");
}
