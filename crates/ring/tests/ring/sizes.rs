//! Protocol `Publish` at its edges: events that just fit, stamps that need the long form, a clock that
//! stepped back, attachments that are gone.

use std::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, HEADER};
use tracewing_abi::region::{Loss, SUB_BUFFER_HEADER};
use tracewing_ring::publish::{Opened, Outcome};
use tracewing_ring::{EnableWord, Segment, thread};
use tracewing_units::Cpu;

use crate::collector::Collector;
use crate::events::payload;
use crate::machine;
use crate::publisher::{Publisher, SLOT};

/// Pins the calling thread to its current CPU, and returns that CPU.
fn stay() -> usize {
    let cpu = machine::usable_cpus()[0];
    machine::run_on(&[cpu]);
    cpu
}

fn now() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Writes events of `LEN` bytes and a last one of every size around the remaining space, by both sequences.
fn fill_exactly<const LEN: usize>(by_fixed: bool) {
    const S: u64 = 256;
    for gap in -2_i64..=2 {
        let Some(publisher) = Publisher::new(2, S as usize) else { return };
        let cpu = stay();
        publisher.enter(1);
        let bytes = payload::<LEN>(1, 1);
        let length = (HEADER + CONTEXT + LEN) as u64;
        // A first event that makes the second `gap` bytes too large or too small.
        let first = (S as i64 - SUB_BUFFER_HEADER as i64 - length as i64 + gap) as usize - HEADER - CONTEXT;
        let mut space = [0; 256];
        crate::events::fill(&mut space[..first], 1, 0);
        let segment = [Segment::of(&space[..first])];
        let Outcome::Full { cpu: full, head: 0 } = publisher.gather(1, &segment, false) else { panic!() };
        assert_eq!(full.index(), cpu);
        assert_eq!(publisher.open(full, 0), Opened::Retry);
        assert_eq!(publisher.gather(1, &segment, false), Outcome::Written);
        let at = publisher.region.buffer(cpu).control().head.load(Relaxed);
        assert_eq!(at as i64, S as i64 - length as i64 + gap);
        let written = if by_fixed {
            publisher.fixed::<LEN, false>(2, &bytes)
        } else {
            match publisher.gather(2, &[Segment::of(&bytes)], false) {
                Outcome::Written => true,
                Outcome::Full { head, .. } if head == at => false,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(written, gap < 0, "at + length = S{gap:+}");
        let head = publisher.region.buffer(cpu).control().head.load(Relaxed);
        assert_eq!(head, if written { at + length } else { at });
        if !written {
            publisher.emit(2, &[Segment::of(&bytes)]).unwrap();
        }
        let events = Collector::new(publisher.region).drain(true);
        assert_eq!(events.iter().map(|event| event.counter).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(events.iter().map(|event| event.len).collect::<Vec<_>>(), [first, LEN]);
    }
}

#[test]
fn an_event_never_ends_on_the_boundary() {
    for by_fixed in [false, true] {
        fill_exactly::<8>(by_fixed);
        fill_exactly::<33>(by_fixed);
        fill_exactly::<100>(by_fixed);
    }
}

fn every_size<const LEN: usize>(publisher: &Publisher) {
    let counter = LEN as u32;
    publisher.emit_fixed::<LEN, false>(1, &payload(1, counter)).unwrap();
    publisher.emit_fixed::<LEN, true>(2, &payload(2, counter)).unwrap();
    let bytes = payload::<LEN>(3, counter);
    let segments: Vec<_> = bytes.chunks(1 + LEN / 3).map(Segment::of).collect();
    publisher.emit(3, &segments).unwrap();
    assert_eq!(publisher.gather(4, &[Segment::of(&payload::<LEN>(4, counter))], true), Outcome::Written);
}

#[test]
fn every_remainder_of_eight_is_copied_whole() {
    let Some(publisher) = Publisher::new(4, 16384) else { return };
    stay();
    publisher.enter(-5);
    every_size::<8>(&publisher);
    every_size::<9>(&publisher);
    every_size::<10>(&publisher);
    every_size::<11>(&publisher);
    every_size::<12>(&publisher);
    every_size::<13>(&publisher);
    every_size::<14>(&publisher);
    every_size::<15>(&publisher);
    every_size::<16>(&publisher);
    every_size::<1031>(&publisher);
    let mut collector = Collector::new(publisher.region);
    let events = collector.drain(true);
    assert_eq!(events.len(), 40);
    assert!(events.iter().all(|event| event.tid == -5 && event.id == event.writer as u16));
    assert!(events.iter().all(|event| event.extended == (event.id == 4)));
    for at in 0..=50 {
        let pieces = payload::<50>(9, at as u32);
        let (left, right) = pieces.split_at(at);
        publisher.emit(1, &[Segment::of(left), Segment::of(&[]), Segment::of(right)]).unwrap();
        assert_eq!(collector.drain(true)[0].len, 50, "split at {at}");
    }
}

#[test]
fn what_is_too_large_is_lost_and_counted() {
    let Some(publisher) = Publisher::new(2, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    let bytes = payload::<107>(1, 0);
    assert_eq!(publisher.emit(1, &[Segment::of(&bytes)]), Err(Loss::TooLarge));
    assert_eq!(publisher.region.lost(cpu), [0, 1, 0, 0, 0, 0, 0]);
    publisher.emit(1, &[Segment::of(&payload::<106>(1, 1))]).unwrap();
}

#[test]
fn a_full_buffer_loses_the_new_event_until_the_reader_gives_back() {
    let Some(publisher) = Publisher::new(2, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    let mut collector = Collector::new(publisher.region);
    let mut counter = 0;
    let mut until_full = |publisher: &Publisher| {
        loop {
            counter += 1;
            assert!(counter < 1000, "never full");
            if publisher.emit_fixed::<16, false>(1, &payload(1, counter)).is_err() {
                return counter;
            }
        }
    };
    assert_eq!(until_full(&publisher), 13, "6 events of 28 bytes in each of two sub-buffers");
    assert_eq!(collector.drain(false).len(), 6, "the other is not full before something opens the next");
    for round in 1..20 {
        let lost = until_full(&publisher);
        assert_eq!(publisher.region.lost(cpu), [round + 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(collector.drain(false).len(), 6);
        assert!(!collector.has(1, lost));
        // It was the current one, and full, until the next one was opened: what was lost then is not later.
        assert_eq!(collector.reported(cpu), round);
    }
    collector.drain(true);
    assert_eq!(collector.read + collector.lost(), u64::from(counter));
}

#[test]
fn stamps_long_after_the_begin_take_the_long_form() {
    const WRAP: u64 = 1 << 32;
    // Distance of the first event from its sub-buffer's beginning, and whether it needs the long form.
    for (age, extends) in [(WRAP / 2, false), (WRAP - (1 << 28), false), (WRAP, true), (5 * WRAP + 99, true)]
    {
        let Some(publisher) = Publisher::new(16, 256) else { return };
        let cpu = stay();
        publisher.enter(1);
        publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
        let mut collector = Collector::new(publisher.region);
        publisher.region.buffer(cpu).header(0).begin.store(now() - age, Relaxed);
        publisher.region.buffer(cpu).control().head.store(SUB_BUFFER_HEADER as u64, Relaxed);
        let before = now();
        assert_eq!(publisher.fixed::<8, false>(1, &payload(1, 0)), !extends);
        if extends {
            assert_eq!(publisher.gather(1, &[Segment::of(&payload::<8>(1, 0))], false), Outcome::Extend);
            publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
        }
        publisher.emit_fixed::<30, false>(2, &payload(1, 1)).unwrap();
        let after = now();
        let events = collector.drain(true);
        assert_eq!(events.len(), 2);
        for event in events {
            assert!((before..=after).contains(&event.stamp), "{event:?} not in {before} to {after}");
            assert_eq!(event.extended, extends);
        }
        // More sub-buffers are opened after it, as usual.
        for counter in 2..20 {
            publisher.emit_fixed::<30, true>(2, &payload(1, counter)).unwrap();
        }
        assert_eq!(collector.drain(true).len(), 18);
    }
}

#[test]
fn low_halves_wrap_within_a_sub_buffer() {
    let Some(publisher) = Publisher::new(2, 4096) else { return };
    let cpu = stay();
    publisher.enter(1);
    publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
    // A beginning whose low half is just below its wrap: the largest that is not in the future.
    let begin = ((now() >> 32) << 32) - 1;
    publisher.region.buffer(cpu).header(0).begin.store(begin, Relaxed);
    let before = now();
    publisher.emit_fixed::<8, false>(1, &payload(1, 1)).unwrap();
    let events = Collector::new(publisher.region).drain(true);
    assert!(events[0].stamp <= before && before <= events[1].stamp && events[1].stamp <= now());
}

#[test]
fn a_clock_that_stepped_back_stands_still() {
    let Some(publisher) = Publisher::new(16, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
    let future = now() + (1 << 40);
    publisher.region.buffer(cpu).header(0).begin.store(future, Relaxed);
    publisher.region.buffer(cpu).control().head.store(SUB_BUFFER_HEADER as u64, Relaxed);
    for counter in 0..20 {
        publisher.emit_fixed::<30, false>(1, &payload(1, counter)).unwrap();
    }
    assert_eq!(publisher.region.buffer(cpu).header(1).begin.load(Relaxed), future);
    let events = Collector::new(publisher.region).drain(true);
    assert_eq!(events.len(), 20, "in this and in the sub-buffers opened after it");
    assert!(events.iter().all(|event| event.stamp == future && event.extended));
}

#[test]
fn a_detached_thread_writes_nothing() {
    let Some(publisher) = Publisher::new(2, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
    let head = publisher.region.buffer(cpu).control().head.load(Relaxed);
    let refused = |what: &str| {
        let bytes = payload::<8>(1, 1);
        assert!(!publisher.fixed::<8, false>(1, &bytes), "{what}");
        assert_eq!(publisher.gather(1, &[Segment::of(&bytes)], false), Outcome::Detached, "{what}");
        assert_eq!(publisher.open(Cpu::at(cpu), head), Opened::Retry, "{what}");
        assert_eq!(publisher.region.buffer(cpu).control().head.load(Relaxed), head, "{what}");
    };
    let key = publisher.attachment().key();
    publisher.attachment().detach();
    assert_eq!(publisher.attachment().key(), 0);
    refused("detached");
    assert_eq!(publisher.attachment().attach(&publisher.region, key + 2), key + 2);
    refused("attached under another key");
    assert_eq!(publisher.attachment().attach(&publisher.region, key + 4), key + 2, "the first one wins");
    thread::with(|mark| mark.entries[SLOT].key.store(key + 2, Relaxed));
    assert!(publisher.fixed::<8, false>(1, &payload(1, 1)), "the thread has entered the new one");
}

#[test]
fn a_disabled_class_is_not_written() {
    let Some(publisher) = Publisher::new(2, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    publisher.emit_fixed::<8, false>(1, &payload(1, 0)).unwrap();
    let head = || publisher.region.buffer(cpu).control().head.load(Relaxed);
    let (before, bytes) = (head(), payload::<8>(1, 1));
    let segments = [Segment::of(&bytes)];
    // As for an event that began before its class was disabled, or before the word was given to another
    // class.
    for enabled in [EnableWord::none(), EnableWord::of(2, 0)] {
        assert!(!publisher.fixed_if::<8>(&enabled, 1, &bytes));
        assert_eq!(publisher.gather_if(&enabled, 1, &segments), Outcome::Disabled);
        assert_eq!(head(), before);
    }
    publisher.region.majors().store(!(1 << 5), Relaxed);
    let (off, on) = (EnableWord::of(1, 5), EnableWord::of(1, 6));
    assert!(publisher.fixed_if::<8>(&off, 1, &bytes), "there is nothing left to do");
    assert_eq!(publisher.gather_if(&off, 1, &segments), Outcome::Disabled);
    assert_eq!(head(), before);
    assert!(publisher.fixed_if::<8>(&on, 1, &bytes));
    assert_eq!(publisher.gather_if(&on, 1, &segments), Outcome::Written);
    assert_ne!(head(), before);
}

#[test]
fn an_old_write_position_opens_nothing_and_loses_nothing() {
    let Some(publisher) = Publisher::new(2, 256) else { return };
    let cpu = stay();
    publisher.enter(1);
    let mut collector = Collector::new(publisher.region);
    for counter in 0..100 {
        publisher.emit_fixed::<16, false>(1, &payload(1, counter)).unwrap();
        collector.drain(true);
    }
    let head = publisher.region.buffer(cpu).control().head.load(Relaxed);
    let geometry = publisher.region.geometry();
    let back = |by: u64| {
        let sequence = geometry.sequence(head) - by;
        geometry.position(sequence, geometry.entry(sequence), 100)
    };
    for old in [0, 100, geometry.position(1, 1, 100), back(2), back(1), head - 28] {
        assert_eq!(publisher.open(Cpu::at(cpu), old), Opened::Retry, "{old}");
    }
    let other = (cpu + 1) % publisher.region.geometry().cpus();
    if other != cpu {
        assert_eq!(publisher.open(Cpu::at(other), 0), Opened::Retry, "another CPU's");
        assert_eq!(publisher.region.buffer(other).control().head.load(Relaxed), 0);
    }
    assert_eq!(publisher.region.buffer(cpu).control().head.load(Relaxed), head);
    assert_eq!(collector.lost(), 0);
}
