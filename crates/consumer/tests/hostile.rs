//! Regions into which a process writes what no program should, and a program that died while emitting.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tracewing_abi::region::{Geometry, Mode, Protocol};
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::trace::UserTrace;
use tracewing_files::Dir;
use tracewing_ring::Segment;
use tracewing_ring::lttng::{self, Smp};
use tracewing_units::Tid;

/// A small generator (xorshift) with a seed that a failure names.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn any_bytes_in_a_region_are_survived() {
    let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
    let mut damaged = 0;
    for seed in 1..200 {
        let mut random = Random(seed);
        let geometry = Geometry::new(1, 4, 4096).unwrap();
        let geometry = if seed % 4 < 2 { geometry } else { geometry.overwriting() };
        let protocol = if seed % 2 == 0 { Protocol::Publish } else { Protocol::Smp };
        let folder = tempfile::tempdir().unwrap();
        let mut trace = UserTrace::new(&Dir::create(folder.path()).unwrap().0, [1; 16]).unwrap();
        let mut drain =
            Drain::new(Backing::Memory, "uid0".into(), geometry, protocol, &clock, [1; 16]).unwrap();
        let region = drain.region();
        let cpu = region.buffer(0);
        let control = cpu.control();
        for _ in 0..20 {
            // Often right, so that the reader gets past the first check.
            let likely = |value: u64, random: &mut Random| match random.next() % 8 {
                0 => random.next(),
                _ => value,
            };
            for physical in 0..geometry.physical_sub_buffers() {
                let header = cpu.header(physical);
                let number = header.sequence.load(Ordering::Relaxed);
                header.sequence.store(likely(number + random.next() % 5, &mut random), Ordering::Relaxed);
                header.begin.store(likely(random.next() % 1000, &mut random), Ordering::Relaxed);
                header.end.store(likely(1000 + random.next() % 1000, &mut random), Ordering::Relaxed);
                header.used.store(likely(random.next() % 5000, &mut random), Ordering::Relaxed);
                header.lost.store(random.next() % 100, Ordering::Relaxed);
            }
            for _ in 0..200 {
                let at = random.next() as usize % (geometry.data_bytes() - 8);
                region.buffer(0).store(0, at, &(random.next() % (1 << 50)).to_le_bytes());
            }
            for counter in &control.lost {
                counter.store(random.next() % 20_000, Ordering::Relaxed);
            }
            for entry in &control.table[..geometry.sub_buffers()] {
                entry.committed.store(random.next() % 20_000, Ordering::Relaxed);
                entry.commit_seq.store(random.next() % 20_000, Ordering::Relaxed);
                let reference = entry.reference.load(Ordering::Relaxed).wrapping_add(random.next() % 600);
                entry.reference.store(likely(reference, &mut random), Ordering::Relaxed);
            }
            let head = control.head.load(Ordering::Relaxed);
            let jump = if random.next().is_multiple_of(8) { random.next() } else { random.next() % 8000 };
            control.head.store(head.wrapping_add(jump), Ordering::Relaxed);
            if geometry.mode() == Mode::Discard || !random.next().is_multiple_of(8) {
                drain.poll(&mut trace, &clock, Duration::ZERO, Duration::ZERO).unwrap();
            } else {
                let path = folder.path().join("snapshot");
                let mut snapshot = Snapshot::begin(&path, [2; 16], &clock).unwrap();
                let writers = if random.next().is_multiple_of(2) { Writers::Dead } else { Writers::Living };
                snapshot.add(&Contents::of(&mut drain, writers), &Firsts::default()).unwrap();
            }
        }
        drain.finish(&mut trace, &clock).unwrap();
        damaged += drain.damages().count();
    }
    assert!(damaged > 50, "the reader did not get far enough to find damage: {damaged}");
}

#[test]
fn what_a_dead_process_had_not_committed_is_counted_lost() {
    let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut trace = UserTrace::new(&Dir::create(folder.path()).unwrap().0, [1; 16]).unwrap();
    let geometry = Geometry::new(1, 4, 4096).unwrap();
    let mut drain =
        Drain::new(Backing::Memory, "pid1".into(), geometry, Protocol::Smp, &clock, [1; 16]).unwrap();
    let region = drain.region();
    let emit = |count: u64| {
        for number in 0..count {
            let payload = number.to_le_bytes();
            let segments = [Segment::of(&payload)];
            // SAFETY: the payload is a live array; the region is a mapped one of protocol `Smp`.
            unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &segments) }.unwrap();
        }
    };
    emit(10);
    drain.poll(&mut trace, &clock, Duration::ZERO, Duration::ZERO).unwrap();
    assert_eq!(drain.summary()[0].events, 10);
    emit(5);
    // An event was reserved, and then its writer was killed.
    region.buffer(0).control().head.fetch_add(20, Ordering::Relaxed);
    emit(3);
    drain.finish(&mut trace, &clock).unwrap();
    let summary = drain.summary();
    assert_eq!((summary[0].events, summary[0].lost), (15, 1), "{summary:?}");
    let losses: Vec<_> = drain.losses().collect();
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].reason, "process died while emitting");
    assert!(losses[0].begin < losses[0].end);
}

#[test]
fn an_impossible_count_of_overwritten_events_is_unknown() {
    let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut trace = UserTrace::new(&Dir::create(folder.path()).unwrap().0, [1; 16]).unwrap();
    let geometry = Geometry::new(1, 4, 4096).unwrap().overwriting();
    let mut drain =
        Drain::new(Backing::Memory, "uid0".into(), geometry, Protocol::Smp, &clock, [1; 16]).unwrap();
    let region = drain.region();
    let emit = || {
        let payload = 7_u64.to_le_bytes();
        let segments = [Segment::of(&payload)];
        // SAFETY: the payload is a live array; the region is a mapped one of protocol `Smp`.
        unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &segments) }.unwrap();
    };
    emit();
    region.buffer(0).control().head.fetch_add(1 << 50, Ordering::Relaxed);
    drain.finish(&mut trace, &clock).unwrap();
    let summary = drain.summary();
    assert!(summary[0].is_lost_unknown, "{summary:?}");
    assert_eq!(summary[0].overwritten.sub_buffers, 0, "{summary:?}");
    assert!(drain.damages().any(|damage| damage.contains("number of lost events unknown")));
}
