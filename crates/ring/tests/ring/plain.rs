//! One thread that writes and reads, against a plain description of what a ring is: which events it must
//! give, when it is full, and what was overwritten, to the sub-buffer and the byte. Random operations, every
//! protocol and mode, also with numbers that wrap around.

use std::collections::HashSet;

use tracewing_abi::region::{Geometry, Loss, Mode, Protocol, SUB_BUFFER_HEADER};
use tracewing_ring::{Chunk, Overwritten, Reader, Readiness, UpTo};

use crate::emitter::{Emitter, KINDS, NEAR_WRAP, Shape};
use crate::events::{LARGE, decode};
use crate::machine::{self, Random};

/// A number and a length.
type Event = (u32, u64);

/// The ring as it should be. Sub-buffers are numbered from 0.
struct Plain {
    mode: Mode,
    slots: usize,
    /// All sub-buffers since the beginning; the last one is the current one.
    sub_buffers: Vec<Vec<Event>>,
    /// Sub-buffers taken out of the ring permanently.
    released: HashSet<usize>,
    /// The reader's position, as sub-buffer and number of its events; and that of a new reader.
    reader: (usize, usize),
    published: (usize, usize),
    overwritten: Overwritten,
    /// Skipped since the last sub-buffer that was read.
    skipped: Overwritten,
    /// Whether the reader has read nothing yet: until then it does not know how much of a sub-buffer was read
    /// already.
    is_new: bool,
    /// Whether the overwritten bytes are only an upper bound.
    is_bound: bool,
}

impl Plain {
    fn new(shape: Shape) -> Self {
        Self {
            mode: shape.mode,
            slots: shape.sub_buffers,
            sub_buffers: vec![Vec::new()],
            released: HashSet::new(),
            reader: (0, 0),
            published: (0, 0),
            overwritten: Overwritten::default(),
            skipped: Overwritten::default(),
            is_new: false,
            is_bound: false,
        }
    }

    fn current(&self) -> usize {
        self.sub_buffers.len() - 1
    }

    /// Whether the next sub-buffer may not be opened.
    fn is_full(&self) -> bool {
        self.mode == Mode::Discard && self.current() + 1 - self.published.0 >= self.slots
    }

    fn skip(&mut self) {
        let (sub_buffer, events) = self.reader;
        self.skipped.sub_buffers += 1;
        self.skipped.bytes += self.sub_buffers[sub_buffer][events..].iter().map(|event| event.1).sum::<u64>();
        self.is_bound |= self.is_new;
        self.reader = (sub_buffer + 1, 0);
    }

    /// What `Reader::next` must give: the events, and whether they are a sub-buffer's last.
    fn next(&mut self, partial: bool) -> Option<(Vec<Event>, bool)> {
        while self.mode == Mode::Overwrite && self.current() - self.reader.0 >= self.slots {
            self.skip();
        }
        loop {
            let (sub_buffer, events) = self.reader;
            let is_current = sub_buffer == self.current();
            if !is_current && self.released.contains(&sub_buffer) {
                self.skip();
                continue;
            }
            let rest = self.sub_buffers[sub_buffer][events..].to_vec();
            if is_current && (!partial || rest.is_empty()) {
                return None;
            }
            self.is_new = false;
            self.overwritten.sub_buffers += self.skipped.sub_buffers;
            self.overwritten.bytes += std::mem::take(&mut self.skipped).bytes;
            if !rest.is_empty() {
                return Some((rest, !is_current));
            }
            self.reader = (sub_buffer + 1, 0);
            self.published = self.reader;
        }
    }

    fn pass(&mut self, events: usize, is_last: bool) {
        match is_last {
            true => self.reader = (self.reader.0 + 1, 0),
            false => self.reader.1 += events,
        }
    }

    fn release(&mut self, events: usize, is_last: bool) {
        if is_last && self.mode == Mode::Overwrite {
            self.released.insert(self.reader.0);
        }
        self.pass(events, is_last);
        self.published = self.reader;
    }

    fn rewind(&mut self) {
        self.overwritten = Overwritten::default();
        self.skipped = Overwritten::default();
        (self.reader, self.is_new, self.is_bound) = ((0, 0), false, false);
        while self.current() - self.reader.0 >= self.slots {
            self.skip();
        }
    }

    fn restart(&mut self) {
        self.reader = self.published;
        self.overwritten = Overwritten::default();
        self.skipped = Overwritten::default();
        (self.is_new, self.is_bound) = (true, false);
    }

    fn readiness(&self) -> Readiness {
        match self.current() - self.reader.0 {
            0 => Readiness::Nothing,
            ahead if ahead + 1 < self.slots => Readiness::Ready,
            _ => Readiness::Urgent,
        }
    }
}

/// The real ring and the plain one.
struct Both {
    emitter: Emitter,
    geometry: Geometry,
    cpu: usize,
    reader: Reader,
    plain: Plain,
    writer: u32,
    counter: u32,
    lost: u64,
}

impl Both {
    fn new(shape: Shape, is_large: bool) -> Option<Self> {
        let cpu = machine::usable_cpus()[0];
        machine::run_on(&[cpu]);
        let emitter = Emitter::new(shape)?;
        let writer = if is_large { LARGE | 1 } else { 1 };
        emitter.enter(writer);
        // SAFETY: the region's only reader.
        let reader = unsafe { emitter.region().reader(cpu) };
        let (geometry, plain) = (shape.geometry(), Plain::new(shape));
        Some(Self { emitter, geometry, cpu, reader, plain, writer, counter: 0, lost: 0 })
    }

    /// The write position as sub-buffer, counted from 0, and offset.
    fn head(&self) -> (usize, usize) {
        let region = self.emitter.region();
        let head = region.buffer(self.cpu).control().head.load(std::sync::atomic::Ordering::Relaxed);
        let number = self.geometry.distance(region.origin(), self.geometry.sequence(head));
        (number as usize, self.geometry.at(head))
    }

    fn emit(&mut self) {
        let counter = self.counter;
        self.counter += 1;
        let before = self.head();
        let result = self.emitter.emit(self.writer, counter, self.cpu);
        let after = self.head();
        if result == Err(Loss::Full) {
            assert!(self.plain.is_full() && before == after);
            self.lost += 1;
            return;
        }
        result.unwrap();
        let from = if after.0 == before.0 { before.1.max(SUB_BUFFER_HEADER) } else { SUB_BUFFER_HEADER };
        if after.0 != before.0 {
            assert!(!self.plain.is_full() && after.0 == before.0 + 1);
            self.plain.sub_buffers.push(Vec::new());
        }
        self.plain.sub_buffers.last_mut().unwrap().push((counter, (after.1 - from) as u64));
    }

    fn force_switch(&mut self) {
        let is_empty = self.plain.sub_buffers.last().unwrap().is_empty();
        let expected = !is_empty && !self.plain.is_full();
        assert_eq!(self.emitter.force_switch(self.cpu), expected);
        if expected {
            self.plain.sub_buffers.push(Vec::new());
        }
    }

    fn next(&mut self, partial: bool) -> Option<(Chunk, Vec<Event>, bool)> {
        let up_to = if partial { UpTo::LastWritten } else { UpTo::LastFull };
        let found = self.reader.next(up_to).expect("undamaged");
        let expected = self.plain.next(partial);
        assert_eq!(found.is_some(), expected.is_some(), "the plain ring has {expected:?}");
        let (chunk, (events, is_last)) = found.zip(expected)?;
        self.check(&chunk, &events);
        let (reported, plain) = (chunk.overwritten, self.plain.overwritten);
        assert_eq!(reported.sub_buffers, plain.sub_buffers);
        assert!(
            reported.bytes == plain.bytes || self.plain.is_bound && reported.bytes > plain.bytes,
            "{reported:?} {plain:?}"
        );
        Some((chunk, events, is_last))
    }

    fn check(&self, chunk: &Chunk, events: &[Event]) {
        let read: Vec<_> = decode(chunk).iter().map(|event| event.counter).collect();
        assert_eq!(read, events.iter().map(|event| event.0).collect::<Vec<_>>());
        assert_eq!(chunk.bytes().len() as u64, events.iter().map(|event| event.1).sum::<u64>());
        assert!(chunk.lost <= self.lost);
    }

    fn random_steps(&mut self, random: &mut Random, steps: u32) {
        let has_switch = self.emitter.shape().protocol != Protocol::Publish;
        let is_recorder = self.emitter.shape().mode == Mode::Overwrite && random.one_in(2);
        for _ in 0..steps {
            match random.below(12) {
                0 if has_switch => self.force_switch(),
                1 if is_recorder => {
                    self.reader.rewind();
                    self.plain.rewind();
                }
                1 if random.one_in(3) => {
                    // SAFETY: the previous reader is not used any more.
                    self.reader = unsafe { self.emitter.region().reader(self.cpu) };
                    self.plain.restart();
                }
                2..4 => {
                    let Some((chunk, events, is_last)) = self.next(random.one_in(2)) else { continue };
                    // Writers may go around the ring any number of times: the chunk belongs to the reader.
                    for _ in 0..random.below(30) {
                        self.emit();
                    }
                    self.check(&chunk, &events);
                    if is_recorder && !random.one_in(10) {
                        self.reader.give_back(chunk);
                        self.plain.pass(events.len(), is_last);
                    } else {
                        self.reader.release(chunk);
                        self.plain.release(events.len(), is_last);
                    }
                }
                4 => assert_eq!(self.reader.poll(), self.plain.readiness()),
                _ => self.emit(),
            }
            assert!(self.reader.waiting() <= self.geometry.capacity());
        }
        assert_eq!(self.emitter.region().buffer(self.cpu).lost_total(), self.lost);
    }
}

#[test]
fn every_ring_does_what_a_plain_one_does() {
    for kind in KINDS {
        for seed in 0..60 {
            let mut random = Random(seed);
            let (sub_buffers, bytes) = [(2, 256), (4, 256), (8, 512), (2, 4096)][random.below(4)];
            let origin = if random.one_in(2) { NEAR_WRAP } else { random.next() };
            let shape = Shape { origin, ..Shape::new(kind, sub_buffers, bytes) };
            let Some(mut both) = Both::new(shape, random.one_in(2)) else { break };
            println!("seed {seed}, {shape:?}");
            both.random_steps(&mut random, 600);
        }
    }
}

/// A flight recorder's promise, stated once more as an explicit example.
#[test]
fn snapshots_overlap_and_are_complete() {
    for kind in KINDS.into_iter().filter(|kind| kind.1 == Mode::Overwrite) {
        for origin in [0, NEAR_WRAP] {
            let Some(mut both) = Both::new(Shape { origin, ..Shape::new(kind, 4, 256) }, true) else { break };
            let snapshot = |both: &mut Both| {
                both.reader.rewind();
                both.plain.rewind();
                let mut events = Vec::new();
                while let Some((chunk, found, is_last)) = both.next(true) {
                    events.extend(found.iter().map(|event| event.0));
                    both.reader.give_back(chunk);
                    both.plain.pass(found.len(), is_last);
                }
                events
            };
            let mut earlier = snapshot(&mut both);
            assert_eq!(earlier, []);
            for round in 1..40 {
                both.emit();
                both.emit();
                let now = snapshot(&mut both);
                let last = 2 * round - 1;
                let first = now[0];
                assert_eq!(now, (first..=last).collect::<Vec<_>>(), "without a gap, to the newest event");
                // Two events per sub-buffer: three full ones, and the current one.
                assert!(now.len() >= 7 || first == 0, "{now:?}");
                assert!(
                    earlier.iter().filter(|counter| **counter >= first).all(|counter| now.contains(counter))
                );
                earlier = now;
            }
        }
    }
}
