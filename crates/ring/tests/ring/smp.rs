//! Protocol `Smp`: every emitted event is read or counted as lost, and what a dead process leaves can be read
//! up to its first uncommitted event.

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, HEADER};
use tracewing_abi::region::{Clock, Geometry, Loss, Protocol, SUB_BUFFER_HEADER};
use tracewing_ring::lttng::{self, Smp};
use tracewing_ring::{Region, Segment};
use tracewing_units::Tid;

use crate::collector::Collector;
use crate::events::{SMALLEST, fill};
use crate::machine::{self, Random};

fn new_region(cpus: usize, sub_buffers: usize, bytes: usize, clock: Clock) -> Region {
    machine::region(Geometry::new(cpus, sub_buffers, bytes).unwrap(), Protocol::Smp, clock)
}

fn emit(region: &Region, cpu: usize, writer: u32, counter: u32) -> Result<(), Loss> {
    let mut random = Random(u64::from(counter) * 3 + u64::from(writer));
    let mut bytes = [0; 107];
    let len = SMALLEST + random.below(bytes.len() - SMALLEST);
    fill(&mut bytes[..len], writer, counter);
    let (head, tail) = bytes[..len].split_at(random.below(len + 1));
    // SAFETY: living segments; regions of tests stay mapped.
    unsafe {
        lttng::write::<Smp>(region, cpu, Tid(writer as i32), 1, &[Segment::of(head), Segment::of(tail)])
    }
}

#[test]
fn threads_write_to_any_cpu() {
    const EACH: u32 = 20_000;
    let clocks = if cfg!(target_arch = "x86_64") {
        vec![Clock::Tsc, Clock::Monotonic]
    } else {
        vec![Clock::Monotonic]
    };
    for (clock, sub_buffers, bytes) in
        clocks.into_iter().flat_map(|clock| [(clock, 2, 256), (clock, 4, 1024), (clock, 8, 4096)])
    {
        let region = new_region(2, sub_buffers, bytes, clock);
        let done = AtomicBool::new(false);
        let (mut collector, lost) = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut collector = Collector::new(region);
                let mut random = Random(4);
                while !done.load(Acquire) {
                    collector.drain(random.below(2) == 0);
                    thread::yield_now();
                }
                collector
            });
            let writers: Vec<_> = (1..5)
                .map(|writer| {
                    let write = move |n| emit(&region, (n / 100 % 2) as usize, writer, n);
                    scope.spawn(move || (0..EACH).filter(|n| write(*n).is_err()).count() as u64)
                })
                .collect();
            let lost: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
            done.store(true, Release);
            (reader.join().unwrap(), lost)
        });
        collector.drain(true);
        assert!(collector.is_drained());
        assert_eq!(collector.lost(), lost);
        assert_eq!(collector.read + lost, u64::from(4 * EACH));
        assert!(collector.read > 0);
    }
}

#[test]
fn a_begin_far_away_takes_the_long_form_and_one_in_the_future_stands_still() {
    for begin in [u64::MAX / 2, 1] {
        let region = new_region(1, 8, 256, Clock::Monotonic);
        emit(&region, 0, 1, 0).unwrap();
        let cpu = region.buffer(0);
        cpu.header(0).begin.store(begin, Relaxed);
        cpu.control().head.store(SUB_BUFFER_HEADER as u64, Relaxed);
        cpu.control().table[0].committed.store(SUB_BUFFER_HEADER as u64, Relaxed);
        for counter in 0..8 {
            emit(&region, 0, 1, counter).unwrap();
        }
        let events = Collector::new(region).drain(true);
        assert_eq!(events.len(), 8);
        assert_eq!(events[0].extended, begin == 1);
        assert_eq!(events.iter().all(|event| event.stamp == begin), begin > 1);
    }
}

/// A thread that has reserved a sub-buffer's first event and stops running before it opens the sub-buffer:
/// the time base of the stamps is then unknown, and all other writers take the long form. So overwritten
/// bytes do not determine the number of events.
#[test]
fn events_are_longer_in_a_sub_buffer_that_its_first_writer_has_not_opened() {
    const SIZE: usize = 1024;
    let geometry = Geometry::new(1, 4, SIZE).unwrap().overwriting();
    let region = machine::region(geometry, Protocol::Smp, Clock::Monotonic);
    let mut payload = [0; SMALLEST];
    let mut counter = 0;
    let mut emit = || {
        let before = region.buffer(0).control().head.load(Relaxed);
        fill(&mut payload, 1, counter);
        counter += 1;
        // SAFETY: a living segment; regions of tests stay mapped.
        unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &[Segment::of(&payload)]) }.ok()?;
        Some(region.buffer(0).control().head.load(Relaxed) - before)
    };
    emit();
    let compact = (HEADER + CONTEXT + SMALLEST) as u64;
    assert_eq!(emit(), Some(compact));
    // The state that a reservation leaves when it begins the next sub-buffer.
    let head = SIZE as u64 + SUB_BUFFER_HEADER as u64 + compact;
    region.buffer(0).control().head.store(head, Relaxed);
    let long = compact + (EXTENDED_HEADER - HEADER) as u64;
    let in_it = (0..).take_while(|_| emit() == Some(long)).count() as u64;
    let room = (SIZE - SUB_BUFFER_HEADER) as u64 - compact;
    assert_eq!(in_it, room / long, "all of that sub-buffer");
    assert!(in_it < room / compact, "what would follow from the bytes");
}

#[test]
fn a_full_buffer_loses_and_continues() {
    let region = new_region(1, 2, 256, Clock::Monotonic);
    let mut collector = Collector::new(region);
    let mut lost = 0;
    for counter in 0..2000 {
        match emit(&region, 0, 1, counter) {
            Ok(()) => {}
            Err(loss) => {
                assert_eq!(loss, Loss::Full);
                lost += 1;
                collector.drain(counter % 2 == 0);
            }
        }
    }
    collector.drain(true);
    assert_eq!(collector.read + lost, 2000);
    assert_eq!(region.lost(0), [lost, 0, 0, 0, 0, 0, 0]);
    // SAFETY: a living segment; regions of tests stay mapped.
    let large = unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &[Segment::of(&[0; 107])]) };
    assert_eq!(large, Err(Loss::TooLarge));
}

/// Space that was reserved and never committed: in the middle, at the end, and in a sub-buffer that was never
/// opened.
#[test]
fn an_uncommitted_event_hides_only_the_rest_of_its_sub_buffer() {
    let region = new_region(1, 4, 512, Clock::Monotonic);
    let mut collector = Collector::new(region);
    let head = || region.buffer(0).control().head.load(Relaxed);
    emit(&region, 0, 1, 0).unwrap();
    emit(&region, 0, 1, 1).unwrap();
    region.buffer(0).control().head.fetch_add(40, Relaxed); // reserved, and then nothing
    let mut counter = 2;
    let geometry = region.geometry();
    while geometry.sequence(head()) == 0 {
        emit(&region, 0, 1, counter).unwrap(); // the last of these is in sub-buffer 1
        counter += 1;
    }
    let last = counter - 1;
    assert_eq!(collector.drain(true), [], "what is uncommitted is waited for");
    region.buffer(0).control().head.store(geometry.position(2, 2, SUB_BUFFER_HEADER + 30), Relaxed); // never opened
    let (events, unfinished) = collector.finalise(0);
    assert_eq!(events.iter().map(|event| event.counter).collect::<Vec<_>>(), [0, 1, last]);
    assert_eq!(
        unfinished.len(),
        3,
        "after event 1, the unclosed rest of sub-buffer 1, the unopened sub-buffer 2"
    );
    assert_eq!(geometry.sequence(region.buffer(0).control().consumed.load(Relaxed)), 3);
    assert_eq!(collector.finalise(0), (Vec::new(), Vec::new()));
}

/// Children are killed at many instructions between reserving and committing, most of them inside.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_process_killed_while_it_writes_leaves_whole_events_before() {
    use crate::tracer::{Tracee, accept};
    const BEFORE: u32 = 5;
    let mut inside = 0;
    for crosses in [false, true] {
        for extra in (0..).step_by(397) {
            let region = new_region(1, 4, 1024, Clock::Monotonic);
            for counter in 0..BEFORE {
                emit(&region, 0, 1, counter).unwrap();
            }
            let cpu = region.buffer(0);
            if crosses {
                // So full that the next event opens sub-buffer 1. SAFETY: living segments; regions of tests
                // stay mapped.
                let write = |bytes: &[u8]| unsafe {
                    lttng::write::<Smp>(&region, 0, Tid(2), 1, &[Segment::of(bytes)])
                };
                while 1024 - region.geometry().at(cpu.control().head.load(Relaxed)) > 21 + 100 {
                    let counter = 1 + cpu.control().head.load(Relaxed) as u32;
                    write(&crate::events::payload::<8>(2, counter)).unwrap();
                }
            }
            let earlier = cpu.control().head.load(Relaxed);
            let tracee = Tracee::new(|| {
                accept();
                let bytes: [u8; 110] = crate::events::payload(3, 0);
                // SAFETY: a living segment; regions of tests stay mapped.
                unsafe { lttng::write::<Smp>(&region, 0, Tid(3), 1, &[Segment::of(&bytes)]) }.is_err().into()
            });
            while cpu.control().head.load(Relaxed) == earlier {
                assert_eq!(tracee.step(), None);
            }
            let ended = (0..extra).any(|_| tracee.step().is_some());
            if !ended {
                tracee.kill();
            }
            let mut collector = Collector::new(region);
            let mut events = collector.drain(true);
            let (rest, unfinished) = collector.finalise(0);
            events.extend(rest);
            assert!((0..BEFORE).all(|counter| collector.has(1, counter)), "all that was in front");
            let written = collector.has(3, 0);
            assert!(written || !unfinished.is_empty(), "{extra} instructions after the reservation");
            inside += unfinished.len().min(1);
            if ended {
                assert!(written && unfinished.is_empty());
                break;
            }
        }
    }
    assert!(inside > 5, "{inside} children were killed in the middle");
}

/// The clock stepped back between what was read last and the next sub-buffer: nothing is lost, and time
/// stands still.
#[test]
fn a_clock_that_stepped_back_between_sub_buffers_loses_nothing() {
    let region = new_region(1, 8, 256, Clock::Monotonic);
    let mut collector = Collector::new(region);
    emit(&region, 0, 1, 0).unwrap();
    let earlier = region.buffer(0).header(0).begin.load(Relaxed);
    let before = collector.drain(true);
    assert_eq!(before.len(), 1);
    let mut counter = 1;
    let geometry = region.geometry();
    while geometry.sequence(region.buffer(0).control().head.load(Relaxed)) < 2 {
        emit(&region, 0, 1, counter).unwrap();
        counter += 1;
    }
    region.buffer(0).header(1).begin.store(earlier - 1000, Relaxed);
    let events = collector.drain(true);
    assert_eq!(events.len() as u32 + 1, counter);
    assert_eq!(collector.lost(), 0);
}
