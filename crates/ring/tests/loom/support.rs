//! What all models share: the checker's settings, an event that proves itself, and the checks of a reader.

use std::collections::HashMap;

use loom::thread;
use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, split_header_word};
use tracewing_abi::region::{Clock, Geometry, Mode, Protocol};
use tracewing_ring::{Chunk, Overwritten, Reader, Region, UpTo};
use tracewing_units::Cycles;

/// Bytes of an event's payload: writer and number.
pub const PAYLOAD: usize = 8;
/// Bytes of an event.
pub const EVENT: usize = HEADER + CONTEXT + PAYLOAD;

/// Events that exist before a model's writers begin: the next but one goes around the ring.
pub const BEFORE: u64 = 5;

/// Checks `model` in all interleavings with at most `preemptions` unforced preemptions, and at most as many
/// as LOOM_MAX_PREEMPTIONS says.
pub fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.preemption_bound =
        Some(builder.preemption_bound.map_or(preemptions, |most| most.min(preemptions)));
    builder.check(model);
}

/// A region with two slots of three events.
pub fn region(protocol: Protocol, overwriting: bool, cpus: usize, origin: u64) -> Region {
    let geometry = Geometry::new(cpus, 2, 128).unwrap();
    let geometry = if overwriting { geometry.overwriting() } else { geometry };
    Region::new(geometry, protocol, Clock::Monotonic, origin)
}

/// The payload of a writer's event.
pub fn payload(writer: u64, number: u64) -> [u8; PAYLOAD] {
    (number << 32 | writer).to_le_bytes()
}

/// What one reader has seen.
#[derive(Default)]
pub struct Check {
    last: HashMap<u64, u64>,
    stamp: Cycles,
    /// Number of events.
    pub events: u64,
    /// The total that the last chunk reported.
    pub overwritten: Overwritten,
}

impl Check {
    /// Checks a chunk's events.
    pub fn look(&mut self, reader: &Reader, chunk: &Chunk) {
        assert!(chunk.begin >= self.stamp && chunk.end >= chunk.begin, "time stamps never go back");
        assert!(chunk.end.0 >> 32 == 0, "stamps are counted from their own sub-buffer's begin");
        let (mut at, mut stamp) = (0, self.stamp.0 as u32);
        while at < chunk.bytes().len() {
            let (low, mut id, length) = split_header_word(reader.word(chunk, at));
            let mut header = HEADER;
            if id == EXTENDED_ID {
                // The writer did not yet know the sub-buffer's beginning.
                header = EXTENDED_HEADER;
                assert_eq!(reader.word(chunk, at + HEADER) as u32, low, "an event has one stamp");
                id = reader.word(chunk, at + HEADER + 8) as u16;
            }
            let whole = header + CONTEXT + PAYLOAD;
            assert_eq!((usize::from(length), id), (whole, 1), "an event's header is complete");
            assert!(low >= stamp, "time stamps never go back");
            stamp = low;
            let tid = reader.word(chunk, at + header) as u32;
            let payload = reader.word(chunk, at + header + CONTEXT);
            let (writer, number) = (payload & 0xffff_ffff, payload >> 32);
            assert_eq!(u64::from(tid), writer, "an event is one writer's");
            let last = self.last.insert(writer, number);
            assert!(last.is_none_or(|last| last < number), "{writer}: {last:?} before {number}");
            self.events += 1;
            at += whole;
        }
        assert_eq!(at, chunk.bytes().len(), "whole events");
        self.stamp = chunk.end;
        assert!(chunk.overwritten.sub_buffers >= self.overwritten.sub_buffers);
        self.overwritten = chunk.overwritten;
    }

    /// Reads and releases everything there is.
    pub fn drain(&mut self, reader: &mut Reader) {
        while let Some(chunk) = reader.next(UpTo::LastWritten).unwrap() {
            self.look(reader, &chunk);
            reader.release(chunk);
        }
    }

    /// Reads and releases one chunk, if there is one.
    pub fn one(&mut self, reader: &mut Reader, partial: bool) {
        let up_to = if partial { UpTo::LastWritten } else { UpTo::LastFull };
        if let Some(chunk) = reader.next(up_to).unwrap() {
            self.look(reader, &chunk);
            reader.release(chunk);
        }
    }

    /// Number of events overwritten unread, computed from their bytes: a few extended events add less than
    /// one event's bytes.
    pub fn overwritten_events(&self) -> u64 {
        self.overwritten.bytes / EVENT as u64
    }
}

/// A reader in a thread of its own, which the checker can run in the middle of a writer at the price of one
/// preemption: it reads `looks` times, with or without parts of sub-buffers.
pub fn look_meanwhile(region: &Region, looks: u32, partial: bool) -> thread::JoinHandle<(Reader, Check)> {
    let (mut reader, mut check) = (reader(region, 0), Check::default());
    if region.geometry().mode() == Mode::Discard {
        check.drain(&mut reader); // so that it looks where the writers are
    }
    thread::spawn(move || {
        for _ in 0..looks {
            check.one(&mut reader, partial);
        }
        (reader, check)
    })
}

pub fn reader(region: &Region, cpu: usize) -> Reader {
    // SAFETY: each model makes one reader at a time.
    unsafe { region.reader(cpu) }
}
