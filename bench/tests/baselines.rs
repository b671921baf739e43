//! The schemes that tracewing is compared with do what they are measured for: everything written is read
//! back.
#![cfg(not(loom))]

use baseline::Scheme;
use baseline::cas::{CasBuffer, Local, Locked};
use baseline::event::{Event, LENGTH};
use baseline::geometry::Geometry;
use baseline::k42::K42;
use baseline::memory::Bytes;
use baseline::mutex::MutexBuffer;
use baseline::seqlock::SeqlockBuffer;

const GEOMETRY: Geometry = Geometry::new(1024, 4096);
const EVENTS: u64 = 30_000;

/// Events of one thread with the other values that it was asked to write, in stored order.
fn of_thread(events: &[Event], tid: u32) -> Vec<[u64; 2]> {
    events.iter().filter(|event| event.tid == tid).map(|event| event.values).collect()
}

fn expected() -> Vec<[u64; 2]> {
    (0..EVENTS).map(|i| [i, !i]).collect()
}

fn write(scheme: &impl Scheme, tid: u32) {
    for [first, second] in expected() {
        scheme.log(tid, [first, second]);
    }
}

/// Four threads, whose events must all be there, in each thread's order.
fn several_threads<S: Scheme>(scheme: S, read: impl FnOnce(S) -> Vec<Event>) {
    std::thread::scope(|scope| {
        for tid in 1..=4 {
            let scheme = &scheme;
            scope.spawn(move || write(scheme, tid));
        }
    });
    let events = read(scheme);
    assert_eq!(events.len() as u64, 4 * EVENTS);
    for tid in 1..=4 {
        assert_eq!(of_thread(&events, tid), expected(), "thread {tid}");
    }
    for event in events {
        assert_eq!(event.header >> 48, LENGTH as u64, "{event:x?}");
    }
}

#[test]
fn mutex() {
    several_threads(MutexBuffer::new(GEOMETRY), MutexBuffer::into_events);
}

#[test]
fn seqlock() {
    several_threads(SeqlockBuffer::new(GEOMETRY), |buffer| buffer.into_events().expect("uncommitted bytes"));
}

#[test]
fn seqlock_switched_off_writes_nothing() {
    let buffer = SeqlockBuffer::new(GEOMETRY);
    buffer.log(1, [1, 1]);
    buffer.control(false, 0);
    buffer.log(1, [2, 2]);
    buffer.control(true, 0);
    buffer.log(1, [3, 3]);
    assert_eq!(of_thread(&buffer.into_events().expect("uncommitted bytes"), 1), [[1, 1], [3, 3]]);
}

#[test]
fn locked_cas() {
    several_threads(CasBuffer::<Locked>::new(GEOMETRY), |buffer| {
        buffer.into_events().expect("uncommitted bytes")
    });
}

/// One thread: threads of several CPUs do not exclude each other.
#[test]
fn local_cas() {
    let buffer = CasBuffer::<Local>::new(GEOMETRY);
    write(&buffer, 1);
    assert_eq!(of_thread(&buffer.into_events().expect("uncommitted bytes"), 1), expected());
}

/// One thread: with several, a buffer's count may be zeroed after another's commit, which `into_events` would
/// notice.
#[test]
fn k42() {
    let k42 = K42::new(GEOMETRY, Bytes::new(GEOMETRY));
    write(&k42, 1);
    let mut complete = 0;
    while k42.completed() == Some(complete) {
        k42.consumed();
        complete += 1;
    }
    assert_eq!(complete, k42.reserved() / GEOMETRY.sub_buffer(), "every buffer that was left is complete");
    assert_eq!(of_thread(&k42.into_events().expect("uncommitted bytes"), 1), expected());
}
