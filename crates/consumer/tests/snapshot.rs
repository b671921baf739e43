//! What a snapshot makes of buffers in which writers were faster than it, and that it leaves them as they
//! were.

use std::path::Path;
use std::sync::atomic::Ordering;

use tracewing_abi::region::{Geometry, Protocol, Reference};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::{Calibration, ClockChoice, TraceClock};
use tracewing_consumer::description::{BufferDescription, Description, Removed, SnapshotDescription};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::metadata::clock_class;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::summary::StreamSummary;
use tracewing_ring::Segment;
use tracewing_ring::lttng::{self, Smp};
use tracewing_units::Tid;

/// Bytes of an event: header, thread id, one u64.
const EVENT: u64 = 20;

struct Recorder {
    clock: TraceClock,
    begin: Calibration,
    classes: Classes,
    drain: Drain,
    taken: u8,
}

impl Recorder {
    fn new() -> Self {
        let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
        let begin = clock.calibrate();
        let class = clock_class(&clock, &begin, [9; 16]);
        let classes = Classes::new(&[], [7; 16], class).unwrap();
        let geometry = Geometry::new(1, 8, 4096).unwrap().overwriting();
        let drain =
            Drain::new(Backing::Memory, "uid0".to_owned(), geometry, Protocol::Smp, &clock, [7; 16]).unwrap();
        Self { clock, begin, classes, drain, taken: 0 }
    }

    fn emit(&self, events: u64) {
        for number in 0..events {
            let payload = number.to_le_bytes();
            let segments = [Segment::of(&payload)];
            // SAFETY: the payload is a live array; the region is a mapped one of protocol `Smp`.
            unsafe { lttng::write::<Smp>(&self.drain.region(), 0, Tid(9), 1, &segments) }.unwrap();
        }
    }

    fn snapshot(&mut self, folder: &Path) -> StreamSummary {
        self.snapshot_before(folder, 0)
    }

    /// Takes a snapshot after the beginning of which so many events are emitted.
    fn snapshot_before(&mut self, folder: &Path, events: u64) -> StreamSummary {
        self.taken += 1;
        let path = folder.join(self.taken.to_string());
        let mut snapshot = Snapshot::begin(&path, [self.taken; 16], &self.clock).unwrap();
        self.emit(events);
        snapshot.add(&Contents::of(&mut self.drain, Writers::Living), &Firsts::default()).unwrap();
        let buffers = BufferDescription {
            sub_buffer_bytes: 4096,
            sub_buffers: 8,
            per_process: false,
            overwrite: true,
            flush_ms: None,
        };
        let removed = Removed::default();
        let about =
            SnapshotDescription { number: 1, reason: String::new(), taken: snapshot.taken(), removed };
        let description = Description::new(&self.clock, self.begin, buffers);
        let description = snapshot.finish(&self.classes, about, description).unwrap();
        assert!(path.join("user/metadata").is_file() && path.join("tracewing.json").is_file());
        description.user_streams.into_iter().next().unwrap()
    }
}

#[test]
fn snapshots_repeat_each_other_and_count_what_is_not_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new();
    recorder.emit(1000);
    let first = recorder.snapshot(folder.path());
    assert_eq!((first.events, first.overwritten.sub_buffers, first.lost), (1000, 0, 0));
    assert_eq!(recorder.snapshot(folder.path()), first);
    recorder.emit(9000);
    let later = recorder.snapshot(folder.path());
    assert_eq!(later.events * EVENT + later.overwritten.bytes, 10_000 * EVENT);
    assert_eq!((later.packets, later.lost), (8, 0));
    assert_eq!(recorder.snapshot(folder.path()), later);
}

#[test]
fn events_after_the_beginning_are_left_to_the_next_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new();
    recorder.emit(300);
    let snapshot = recorder.snapshot_before(folder.path(), 200);
    // Of the second packet, a part.
    assert_eq!((snapshot.events, snapshot.packets, snapshot.lost), (300, 2, 0));
    assert_eq!(snapshot.overwritten.sub_buffers, 0);
    assert_eq!(recorder.snapshot(folder.path()).events, 500);
    // All that was there is overwritten since: what is there instead is kept.
    let newer = recorder.snapshot_before(folder.path(), 9_500);
    assert_eq!(newer.packets, 8);
    assert_eq!(newer.events * EVENT + newer.overwritten.bytes, 10_000 * EVENT);
}

#[test]
fn what_lies_before_a_gap_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new();
    recorder.emit(1500);
    let whole = recorder.snapshot(folder.path());
    assert_eq!((whole.events, whole.packets), (1500, 8));
    // As if it had been overwritten when the snapshot reached it.
    let cpu = recorder.drain.region().buffer(0);
    let entry = Reference::unpack(cpu.control().table[4].reference.load(Ordering::Relaxed));
    cpu.header(entry.physical).sequence.store(0, Ordering::Relaxed);
    let rest = recorder.snapshot(folder.path());
    assert_eq!((rest.packets, rest.overwritten.sub_buffers), (3, 5));
    assert_eq!(rest.events * EVENT + rest.overwritten.bytes, 1500 * EVENT);
}

#[test]
fn a_snapshot_that_is_not_finished_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new();
    recorder.emit(10);
    let place = folder.path().join("s");
    let mut snapshot = Snapshot::begin(&place, [1; 16], &recorder.clock).unwrap();
    snapshot.add(&Contents::of(&mut recorder.drain, Writers::Living), &Firsts::default()).unwrap();
    assert!(!place.exists(), "a program that waits for it would find it empty");
    drop(snapshot);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(recorder.snapshot(folder.path()).events, 10);
}
