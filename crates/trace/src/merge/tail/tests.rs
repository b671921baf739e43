//! Files that grow, at times that the tests give.

use super::*;

const HOLD: Duration = Duration::from_secs(1);
use common::{Event, Packet, class, tick, write_trace};
use tracewing_units::Timestamp;

#[allow(unreachable_pub)]
#[path = "../../../tests/common/mod.rs"]
mod common;

/// Nanoseconds since the origin at cycle 0 of the traces here.
const ORIGIN: Timestamp = Timestamp::from_ns(1_795_235_140_123_456_789);

fn packet(instance: u64, begin: u64, event: Event) -> Vec<u8> {
    Packet::new(1, instance, begin, begin + 500).bytes(&[event])
}

#[test]
fn events_wait_for_slower_streams_but_not_without_limit() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("a", packet(0, 1000, tick(1000, 1))), ("b", packet(1, 2000, tick(2000, 2)))];
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &files);
    let recording = Recording::open(&[folder.path()]).unwrap();
    let (mut tails, begin) = (Tails::new(HOLD), Instant::now());
    tails.open(&recording);
    assert!(tails.look(begin) && !tails.look(begin));
    let mut after = |time: Duration| tails.until(&recording, begin + time);
    assert_eq!(after(SETTLE / 2), Timestamp::MIN);
    assert_eq!(after(SETTLE), ORIGIN + tracewing_units::Duration::from_ns(1499));
    assert_eq!(after(HOLD), ORIGIN + tracewing_units::Duration::from_ns(2500));
}

#[test]
fn a_late_packet_is_waited_for_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let whole = packet(0, 1000, tick(1000, 1));
    let broken = packet(0, 2000, Event { id: 77, ..tick(2000, 2) });
    let (begin, path) = (Instant::now(), folder.path().join("a"));
    let write = |length: usize| {
        let bytes = [&whole[..], &broken[..length]].concat();
        write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("a", bytes)]);
    };
    write(broken.len() / 2);
    let recording = Recording::open(&[folder.path()]).unwrap();
    let mut tails = Tails::new(HOLD);
    tails.open(&recording);
    assert!(tails.look(begin));
    assert!(!tails.look(begin + 10 * PATIENCE));
    assert_eq!(tails.whole(&path), whole.len() as u64);
    write(broken.len());
    assert!(!tails.look(begin + 11 * PATIENCE));
    assert!(tails.look(begin + 13 * PATIENCE), "it is damaged");
    assert_eq!(tails.whole(&path), u64::MAX);
}
