//! Protocols `Smp` and `Local`: the production writers with the production reader.

use loom::thread;
use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_ring::lttng::{self, Access, Local, Smp, interrupts};
use tracewing_ring::{Left, Region, Segment};
use tracewing_units::Tid;

use crate::support::{self, BEFORE, Check, check, payload, region};

/// Returns the number of events written.
fn emit_all<A: Access>(region: &Region, writer: u64, count: u64) -> u64 {
    let emit = |number| {
        let bytes = payload(writer, number);
        // SAFETY: the segment is alive; regions of models live as long as any handle; `Local` models nest.
        unsafe { lttng::write::<A>(region, 0, Tid(writer as i32), 1, &[Segment::of(&bytes)]) }
    };
    (0..count).filter(|number| emit(*number).is_ok()).count() as u64
}

fn smp(overwriting: bool, origin: u64, counts: [u64; 2], looks: u32) {
    let region = region(Protocol::Smp, overwriting, 1, origin);
    assert_eq!(emit_all::<Smp>(&region, 3, BEFORE), BEFORE);
    let (first, second) = (region.clone(), region.clone());
    let first = thread::spawn(move || emit_all::<Smp>(&first, 1, counts[0]));
    let second = thread::spawn(move || emit_all::<Smp>(&second, 2, counts[1]));
    let looking = support::look_meanwhile(&region, looks, !overwriting);
    let written = BEFORE + first.join().unwrap() + second.join().unwrap();
    let (mut reader, mut check) = looking.join().unwrap();
    check.drain(&mut reader);
    assert_eq!(check.events + check.overwritten_events(), written);
    assert!(overwriting || check.overwritten.sub_buffers == 0);
    assert_eq!(region.buffer(0).lost_total() + written, BEFORE + counts[0] + counts[1]);
}

#[test]
fn smp_discard() {
    check(2, || smp(false, 0, [1, 1], 2));
}

#[test]
fn smp_overwrite() {
    check(2, || smp(true, 0, [1, 1], 1));
}

#[test]
fn smp_below_the_wrap() {
    check(2, || smp(false, u64::MAX, [1, 1], 1));
    check(2, || smp(true, u64::MAX - 1, [1, 1], 1));
}

/// Stamps follow the order of the reservations although one clock reading may be below another: each writer
/// reads the clock after the writers whose events precede its own.
#[test]
fn stamps_of_two_processors() {
    check(2, || {
        let region = Region::new(Geometry::new(1, 2, 128).unwrap(), Protocol::Smp, Clock::Tsc, 0);
        let (first, second) = (region.clone(), region.clone());
        let first = thread::spawn(move || emit_all::<Smp>(&first, 1, 2));
        let second = thread::spawn(move || emit_all::<Smp>(&second, 2, 1));
        let written = first.join().unwrap() + second.join().unwrap();
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        check.drain(&mut reader);
        assert_eq!(check.events, written);
    });
}

/// The current sub-buffer is overwritten while the reader copies it. Writers take the short way around the
/// ring: sub-buffers may be left before they are full. Even without preemption the reader sees the old words.
fn a_copy(preemptions: usize, writers: &'static [fn(&Region) -> u64]) {
    check(preemptions, move || {
        let region = region(Protocol::Smp, true, 1, 0);
        let before = emit_all::<Smp>(&region, 1, 4);
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        check.one(&mut reader, false);
        let start = |writer: &fn(&Region) -> u64| {
            let (writer, region) = (*writer, region.clone());
            thread::spawn(move || writer(&region))
        };
        let writers: Vec<_> = writers.iter().map(start).collect();
        let looking = thread::spawn(move || {
            check.one(&mut reader, true);
            (reader, check)
        });
        let written: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        let (mut reader, mut check) = looking.join().unwrap();
        check.drain(&mut reader);
        assert_eq!(check.events + check.overwritten_events(), before + written);
    });
}

fn switch(region: &Region) {
    // SAFETY: as in `emit_all`.
    unsafe { lttng::force_switch::<Smp>(region, 0) };
}

fn go_round(region: &Region) -> u64 {
    switch(region);
    let written = emit_all::<Smp>(region, 2, 1);
    switch(region);
    written
}

#[test]
fn a_copy_that_is_overwritten() {
    a_copy(1, &[|region| go_round(region) + emit_all::<Smp>(region, 3, 1)]);
}

#[test]
fn a_copy_that_another_writer_overwrites() {
    a_copy(0, &[go_round, |region| emit_all::<Smp>(region, 3, 1)]);
}

#[test]
fn a_copy_that_an_event_overwrites_that_opens() {
    fn emit_four(region: &Region) -> u64 {
        switch(region);
        emit_all::<Smp>(region, 2, 4)
    }
    a_copy(0, &[emit_four]);
}

/// A writer that sleeps for a lap before it claims takes nothing away: the sub-buffer that others have opened
/// meanwhile stays in the ring.
#[test]
fn a_claim_of_the_last_lap() {
    check(1, || {
        let region = region(Protocol::Smp, true, 1, 0);
        assert_eq!(emit_all::<Smp>(&region, 1, 1), 1);
        let sleeper = region.clone();
        let sleeper = thread::spawn(move || switch(&sleeper));
        let mut written = 1;
        for writer in 2..5 {
            switch(&region);
            written += emit_all::<Smp>(&region, writer, 1);
        }
        sleeper.join().unwrap();
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        check.drain(&mut reader);
        assert_eq!(check.events + check.overwritten_events(), written);
    });
}

/// A writer that commits late is done before another one writes to the same place, a lap later.
#[test]
fn a_late_commit() {
    check(2, || {
        let region = region(Protocol::Smp, true, 1, 0);
        // SAFETY: as in `emit_all`.
        let slot = unsafe { lttng::reserve::<Smp>(&region, 0, Tid(1), 1, support::PAYLOAD) };
        let mut slot = slot.expect("an empty ring has room");
        switch(&region);
        let mut written = 1 + emit_all::<Smp>(&region, 2, 1);
        let opener = region.clone();
        let late = thread::spawn(move || {
            slot.put(&payload(1, 0));
            slot.commit();
        });
        let opener = thread::spawn(move || switch(&opener));
        written += emit_all::<Smp>(&region, 3, 1);
        late.join().unwrap();
        opener.join().unwrap();
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        check.drain(&mut reader);
        assert_eq!(check.events + check.overwritten_events(), written);
    });
}

/// A writer that closes a sub-buffer knows the bytes that its opener counted before it.
#[test]
fn an_opener_and_a_closer() {
    check(1, || {
        let region = region(Protocol::Smp, true, 1, 0);
        let mut written = emit_all::<Smp>(&region, 1, 1);
        let (opener, writer) = (region.clone(), region.clone());
        let opener = thread::spawn(move || switch(&opener));
        let writer = thread::spawn(move || emit_all::<Smp>(&writer, 2, 1));
        switch(&region);
        opener.join().unwrap();
        written += writer.join().unwrap();
        for writer in 3..5 {
            written += emit_all::<Smp>(&region, writer, 1);
            switch(&region);
        }
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        written += emit_all::<Smp>(&region, 5, 1);
        check.drain(&mut reader);
        assert_eq!(check.events + check.overwritten_events(), written);
    });
}

/// A handler interrupts the writer at each access, and emits.
#[test]
fn local() {
    for (overwriting, at) in [false, true].into_iter().flat_map(|mode| (0..10).map(move |at| (mode, at))) {
        check(2, move || {
            let region = region(Protocol::Local, overwriting, 1, 0);
            assert_eq!(emit_all::<Local>(&region, 3, BEFORE), BEFORE);
            let writer = region.clone();
            let writer = thread::spawn(move || {
                let interrupted = writer.clone();
                interrupts::interrupt(at, move || {
                    emit_all::<Local>(&interrupted, 2, 1);
                });
                emit_all::<Local>(&writer, 1, 2);
                // An access so late that it never happened.
                if interrupts::is_pending() { 2 } else { 3 }
            });
            let looking = support::look_meanwhile(&region, 1, true);
            let emitted = BEFORE + writer.join().unwrap();
            let (mut reader, mut check) = looking.join().unwrap();
            check.drain(&mut reader);
            let lost = region.buffer(0).lost_total();
            assert_eq!(check.events + check.overwritten_events() + lost, emitted);
        });
    }
}

/// A writer dies after it has reserved: the events before that are readable, the rest is counted.
#[test]
fn a_dead_writer() {
    check(2, || {
        let region = region(Protocol::Smp, false, 1, 0);
        let writer = region.clone();
        emit_all::<Smp>(&region, 1, 1);
        let dead = region.clone();
        let dead = thread::spawn(move || {
            // SAFETY: as in `emit_all`.
            let slot = unsafe { lttng::reserve::<Smp>(&dead, 0, Tid(3), 1, support::PAYLOAD) };
            let reserved = slot.is_ok();
            std::mem::forget(slot);
            u64::from(reserved)
        });
        let writer = thread::spawn(move || emit_all::<Smp>(&writer, 2, 2));
        let unfinished = dead.join().unwrap();
        let written = 1 + writer.join().unwrap();
        let (mut reader, mut check) = (support::reader(&region, 0), Check::default());
        check.drain(&mut reader);
        let mut gaps = 0;
        loop {
            match reader.finalise().unwrap() {
                Left::Nothing => break,
                Left::Chunk(chunk) => {
                    check.look(&reader, &chunk);
                    reader.release(chunk);
                }
                Left::Unfinished(_) => gaps += 1,
            }
        }
        assert!(check.events >= 1 && check.events <= written, "what came first is there");
        assert!(gaps >= unfinished && (check.events == written || gaps > 0));
    });
}

/// A writer that commits last, after a dead writer's reservation, does not vouch for that reservation.
#[test]
fn writers_after_a_dead_one() {
    check(2, || {
        let region = region(Protocol::Smp, false, 1, 0);
        // SAFETY: as in `emit_all`.
        std::mem::forget(unsafe { lttng::reserve::<Smp>(&region, 0, Tid(3), 1, support::PAYLOAD) });
        let (first, second) = (region.clone(), region.clone());
        let first = thread::spawn(move || emit_all::<Smp>(&first, 1, 1));
        let second = thread::spawn(move || emit_all::<Smp>(&second, 2, 1));
        assert_eq!(first.join().unwrap() + second.join().unwrap(), 2);
        let mut reader = support::reader(&region, 0);
        assert!(matches!(reader.finalise().unwrap(), Left::Unfinished(_)), "the first event is missing");
        assert!(matches!(reader.finalise().unwrap(), Left::Nothing));
    });
}
