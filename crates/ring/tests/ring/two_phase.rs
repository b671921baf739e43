//! Protocols `Smp` and `Local` in two phases: reserve, write in place, commit. A reservation hides what comes
//! after it, and nothing else.

use tracewing_abi::region::{Loss, Mode, Protocol};
use tracewing_ring::lttng::{self, Access, Local, Slot, Smp};
use tracewing_ring::{Reader, Region, UpTo};
use tracewing_units::Tid;

use crate::collector::Collector;
use crate::emitter::{Emitter, KINDS, Shape};
use crate::events::payload;

/// Bytes of payload: 64 with the event's header, so six fit a sub-buffer of 512 bytes; a seventh would end on
/// its boundary.
const LEN: usize = 52;
const SLOTS: usize = 4;
const PER_SUB_BUFFER: u32 = 6;

struct Ring {
    region: Region,
    mode: Mode,
}

impl Ring {
    fn reserve<A: Access>(&self) -> Result<Slot<A>, Loss> {
        // SAFETY: the region stays mapped; each test is the only thread that writes to its ring.
        unsafe { lttng::reserve::<A>(&self.region, 0, Tid(1), 1, LEN) }
    }

    fn emit<A: Access>(&self, counter: u32) -> Result<(), Loss> {
        let mut slot = self.reserve::<A>()?;
        slot.put(&payload::<LEN>(1, counter));
        slot.commit();
        Ok(())
    }

    fn reader(&self) -> Reader {
        // SAFETY: tests make one.
        unsafe { self.region.reader(0) }
    }
}

fn for_all(smp: fn(&Ring), local: fn(&Ring)) {
    for kind in KINDS {
        let run = match kind.0 {
            Protocol::Publish => continue,
            Protocol::Smp => smp,
            Protocol::Local => local,
        };
        let emitter = Emitter::new(Shape::new(kind, SLOTS, 512)).expect("needs nothing special");
        run(&Ring { region: emitter.region(), mode: kind.1 });
    }
}

fn hides<A: Access>(ring: &Ring) {
    let mut collector = Collector::new(ring.region);
    ring.emit::<A>(0).unwrap();
    assert_eq!(collector.drain(true).len(), 1);
    let mut slot = ring.reserve::<A>().unwrap();
    assert_eq!(slot.remaining(), LEN);
    ring.emit::<A>(2).unwrap();
    slot.put(&payload::<LEN>(1, 1)[..20]);
    assert_eq!(slot.remaining(), LEN - 20);
    assert_eq!(collector.drain(true), [], "neither the uncommitted event nor what follows it");
    slot.put(&payload::<LEN>(1, 1)[20..]);
    slot.put(&[1, 2, 3]); // does not fit any more and is not written
    assert_eq!(slot.remaining(), 0);
    slot.commit();
    let counters: Vec<_> = collector.drain(true).iter().map(|event| event.counter).collect();
    assert_eq!(counters, [1, 2], "in the order in which they were reserved");
}

#[test]
fn a_reservation_hides_later_events_until_it_is_committed() {
    for_all(hides::<Smp>, hides::<Local>);
}

fn is_zeroed<A: Access>(ring: &Ring) {
    let mut reader = ring.reader();
    let mut slot = ring.reserve::<A>().unwrap();
    slot.put(&[7; 5]);
    drop(slot);
    drop(ring.reserve::<A>().unwrap());
    let chunk = reader.next(UpTo::LastWritten).unwrap().unwrap();
    // SAFETY: the chunk is not released, and no thread writes.
    let bytes = unsafe { std::slice::from_raw_parts(chunk.bytes().as_ptr(), chunk.bytes().len()) };
    let (first, second) = bytes.split_at(bytes.len() / 2);
    assert_eq!(first[12..17], [7; 5]);
    assert_eq!(first[17..], [0; LEN - 5]);
    assert_eq!(second[12..], [0; LEN]);
    reader.release(chunk);
}

#[test]
fn a_slot_that_is_dropped_is_an_event_with_zeroes() {
    for_all(is_zeroed::<Smp>, is_zeroed::<Local>);
}

/// Fully Committed (Equation 3 of the paper): no writer opens a sub-buffer in which another still writes,
/// however often the ring goes around.
fn holds<A: Access>(ring: &Ring) {
    let mut collector = Collector::new(ring.region);
    let mut slot = ring.reserve::<A>().unwrap();
    slot.put(&payload::<LEN>(1, 0));
    let room = SLOTS as u32 * PER_SUB_BUFFER - 1;
    let mut counter = 1;
    while counter < 1000 && ring.emit::<A>(counter).is_ok() {
        counter += 1;
    }
    assert!((room..room + 2 * SLOTS as u32).contains(&counter), "full after {counter} events");
    for lost in 1..100 {
        assert_eq!(ring.emit::<A>(counter), Err(Loss::Full));
        assert_eq!(collector.drain(true), []);
        assert_eq!(collector.lost(), lost + 1);
    }
    // SAFETY: as in `reserve`.
    assert!(!unsafe { lttng::force_switch::<A>(&ring.region, 0) });
    slot.commit();
    let events = collector.drain(true);
    let counters: Vec<_> = events.iter().map(|event| event.counter).collect();
    assert_eq!(counters, (0..counter).collect::<Vec<_>>());
    assert_eq!(collector.overwritten().sub_buffers, 0);
    for counter in counter..counter + 100 {
        let result = ring.emit::<A>(counter);
        assert!(result.is_ok() || ring.mode == Mode::Discard);
    }
}

#[test]
fn a_held_slot_stops_the_ring_but_no_writer_waits() {
    for_all(holds::<Smp>, holds::<Local>);
}

fn too_large<A: Access>(ring: &Ring) {
    // SAFETY: as in `Ring::reserve`.
    let reserve =
        |len| unsafe { lttng::reserve::<A>(&ring.region, 0, Tid(1), 1, len) }.map(|slot| slot.remaining());
    let most = ring.region.geometry().largest_event() - 22; // the extended header and the thread id
    assert_eq!(reserve(most), Ok(most));
    assert_eq!(reserve(most + 1), Err(Loss::TooLarge));
    assert_eq!(reserve(usize::MAX), Err(Loss::TooLarge));
    assert_eq!(ring.region.lost(0), [0, 2, 0, 0, 0, 0, 0]);
}

#[test]
fn what_is_too_large_is_refused() {
    for_all(too_large::<Smp>, too_large::<Local>);
}
