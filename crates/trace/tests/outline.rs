//! The outline of a recording: where it has how many bytes, from the headers of its packets.

mod common;
#[path = "common/switches.rs"]
mod switches;

use common::{Packet, class, tick, write_trace};
use std::fs;
use std::ops::ControlFlow;
use tracewing_trace::{Outline, Recording};
use tracewing_units::Timestamp;

fn outline(recording: &Recording, parts: usize) -> Option<Outline> {
    recording.outline(parts, &mut || ControlFlow::Continue(()))
}

#[test]
fn it_has_all_bytes_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    switches::write_switches(folder.path(), 30_000);
    let recording = Recording::open(&[folder.path()]).unwrap();
    let found = outline(&recording, 60).unwrap();
    assert_eq!(found.parts.iter().sum::<u64>(), recording.bytes());
    // From a third of the events to two thirds, there are twice as many: from 2/5 of the time to 3/5.
    let mean = |from: usize, to: usize| found.parts[from..to].iter().sum::<u64>() as f64 / (to - from) as f64;
    let (first, dense, last) = (mean(1, 23), mean(25, 35), mean(37, 59));
    assert!((1.8..2.2).contains(&(dense / first)) && (1.8..2.2).contains(&(dense / last)), "{found:?}");
}

#[test]
fn idle_time_has_nothing_and_no_event_is_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let class = class(Some(1), 1_000_000_000);
    let packet = |begin, end, seq| Packet { seq, ..Packet::new(1, 0, begin, end) };
    let [first, last] = [packet(1_000, 2_000, 0), packet(9_000, 11_000, 1)];
    let mut bytes = first.bytes(&[tick(1_500, 1)]);
    // What follows the header means nothing.
    bytes[100..].fill(0xff);
    bytes.extend(last.bytes(&[tick(9_500, 2)]));
    write_trace(folder.path(), &class, &[("stream_0", bytes.clone())]);
    let recording = Recording::open(&[folder.path()]).unwrap();
    let found = outline(&recording, 10).unwrap();
    let size = bytes.len() as u64 / 2;
    assert_eq!(found.end - found.begin, tracewing_units::Duration::from_ns(10_000));
    assert_eq!(found.parts.iter().sum::<u64>(), 2 * size);
    assert_eq!(found.parts[2..8], [0; 6]);
    assert!(found.parts[0] > 0 && found.parts[9] > 0, "{found:?}");
    assert!(found.begin > Timestamp::MIN);
}

#[test]
fn without_packets_there_is_none_and_it_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    switches::write_switches(folder.path(), 2_000);
    let recording = Recording::open(&[folder.path()]).unwrap();
    assert_eq!(recording.outline(10, &mut || ControlFlow::Break(())), None);
    for cpu in 0..2 {
        fs::write(folder.path().join(format!("kernel_{cpu}")), "").unwrap();
    }
    assert_eq!(outline(&recording, 10), None);
}
