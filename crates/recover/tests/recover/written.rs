//! Buffers that no thread writes to any more.

use std::mem::offset_of;

use tracewing_abi::region::{CONTROL, Geometry, Mode, Protocol, RegionHeader, SubBufferHeader};
use tracewing_recover::{DamageCause, Region as Found};
use tracewing_ring::UpTo;
use tracewing_ring::lttng::{self, Smp};
use tracewing_units::{Cpu, Tid};

use crate::{Recovered, Written, emit, recover};

fn found(bytes: &[u8], cpu: usize) -> Recovered {
    recover(&Found::open(&bytes, 0, bytes.len() as u64).unwrap(), cpu)
}

fn geometries() -> impl Iterator<Item = Geometry> {
    [(2, 256), (4, 512), (8, 4096)].into_iter().flat_map(|(sub_buffers, bytes)| {
        let discard = Geometry::new(2, sub_buffers, bytes).unwrap();
        [discard, discard.overwriting()]
    })
}

/// The newest events, without a gap, and as many as the ring must hold.
fn check(geometry: Geometry, recovered: &Recovered, emitted: &[u64]) {
    assert_eq!(recovered.damages, [], "{geometry:?} {emitted:?}");
    assert!(emitted.ends_with(&recovered.numbers), "{:?} of {emitted:?}", recovered.numbers);
    // The ring may be in its last sub-buffer's first event, and an event has at most 12 + 58 bytes.
    let least = (geometry.sub_buffers() - 1) * (geometry.sub_buffer_bytes() - 64 - 70) / 70;
    assert!(recovered.numbers.len() >= least.min(emitted.len()), "{} events", recovered.numbers.len());
}

#[test]
fn what_was_emitted_is_found() {
    for (geometry, origin) in geometries().flat_map(|geometry| [(geometry, 0), (geometry, u64::MAX - 2)]) {
        for count in [0, 1, 2, 5, 20, 100, 1000] {
            let written = Written::new(geometry, Protocol::Smp, origin);
            let (kept, lost): (Vec<u64>, Vec<u64>) =
                (0..count).partition(|number| emit(&written.region, 1, *number));
            let mut bytes = written.bytes();
            for protocol in [Protocol::Smp, Protocol::Local, Protocol::Publish] {
                bytes[offset_of!(RegionHeader, protocol)] = protocol as u8;
                let recovered = found(&bytes, 1);
                check(geometry, &recovered, &kept);
                assert_eq!(recovered.lost, lost.len() as u64);
                if geometry.mode() == Mode::Discard {
                    assert_eq!(recovered.numbers, kept, "nothing overwrites what was kept");
                }
            }
            assert!(found(&bytes, 0).numbers.is_empty());
        }
    }
}

/// A recorder reads meanwhile, in parts too: what it has read is found until it is overwritten, and so is
/// what it holds when everything is killed. In overwrite mode it may have reused its sub-buffer since, unless
/// it gave it back.
#[test]
fn a_recorder_removes_no_events() {
    for geometry in geometries() {
        for stop in 0..40 {
            let written = Written::new(geometry, Protocol::Smp, 0);
            // SAFETY: the only reader.
            let mut reader = unsafe { written.region.reader(0) };
            let (mut kept, mut held) = (Vec::new(), None);
            for number in 0..300 + stop {
                if emit(&written.region, 0, number) {
                    kept.push(number);
                }
                if number % 7 == 0 {
                    held.take().into_iter().for_each(|chunk| match geometry.mode() {
                        Mode::Overwrite => reader.give_back(chunk),
                        Mode::Discard => reader.release(chunk),
                    });
                    let reach = if number % 2 == 0 { UpTo::LastWritten } else { UpTo::LastFull };
                    held = reader.next(reach).unwrap();
                }
            }
            check(geometry, &found(&written.bytes(), 0), &kept);
        }
    }
}

#[test]
fn what_a_dead_writer_began_hides_what_follows() {
    let geometry = Geometry::new(1, 4, 4096).unwrap();
    for before in [0, 3, 200] {
        let written = Written::new(geometry, Protocol::Smp, 0);
        let kept: Vec<u64> = (0..before).filter(|number| emit(&written.region, 0, *number)).collect();
        // SAFETY: the region outlives the slot.
        let slot = unsafe { lttng::reserve::<Smp>(&written.region, 0, Tid(7), 3, 16) }.ok();
        std::mem::forget(slot.expect("there is room"));
        (before..before + 3).for_each(|number| assert!(emit(&written.region, 0, number)));
        let recovered = found(&written.bytes(), 0);
        assert_eq!(recovered.numbers, kept);
        let [damage] = recovered.damages[..] else { panic!("{:?}", recovered.damages) };
        assert_eq!(damage.cause, DamageCause::Unfinished);
        assert!(damage.bytes >= 28 && damage.bytes < 300, "{damage}");
    }
}

#[test]
fn a_sub_buffer_larger_than_it_can_be() {
    let geometry = Geometry::new(1, 4, 256).unwrap();
    let written = Written::new(geometry, Protocol::Smp, 0);
    let kept = (0..).take_while(|number| emit(&written.region, 0, *number)).count();
    let mut bytes = written.bytes();
    let used = geometry.control_offset(0) + CONTROL + offset_of!(SubBufferHeader, used);
    for size in [257_u64, 63, u64::MAX] {
        bytes[used..used + 8].copy_from_slice(&size.to_le_bytes());
        let recovered = found(&bytes, 0);
        let [damage] = recovered.damages[..] else { panic!("{:?}", recovered.damages) };
        assert_eq!((damage.sequence, damage.cause), (0, DamageCause::Size));
        assert!(!recovered.numbers.is_empty() && recovered.numbers.len() < kept);
    }
}

#[test]
fn a_part_of_the_memory_is_missing() {
    let geometry = Geometry::new(2, 4, 4096).unwrap();
    let written = Written::new(geometry, Protocol::Smp, 0);
    (0..200).for_each(|number| assert!(emit(&written.region, 0, number)));
    let bytes = written.bytes();
    let mut most = 0;
    for len in (0..bytes.len()).step_by(1024) {
        let memory = &bytes[..len];
        let Ok(region) = Found::open(&memory, 0, bytes.len() as u64) else { continue };
        let Some(buffer) = region.buffer(Cpu(0)) else { continue };
        let events: usize = buffer.sub_buffers().flatten().map(|one| one.events().count()).sum();
        assert!(events >= most, "more memory, more events");
        most = events;
    }
    assert_eq!(most, 200);
}
