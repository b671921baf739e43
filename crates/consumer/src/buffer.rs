//! One CPU's buffer and the stream that it is written to: chunks become packets, losses become ranges of time.
//!
//! When to look at it, and how the buffers of a region belong together, is [`crate::drain`]'s.

use std::time::{Duration, Instant};

use tracewing_abi::event;
use tracewing_abi::region::{Loss, Protocol};
use tracewing_ring::{Chunk, Damaged, Overwritten, Reader, Region};

use crate::Error;
use crate::clock::TraceClock;
use crate::drain::{LossRange, OverwrittenRange, StreamSummary, UserTrace};
use crate::memory::SharedMemory;
use crate::output::Output;
use crate::stream::PacketTimes;
use crate::writer::Tally;

/// Why events are lost besides what [`Loss`] says.
const DAMAGED: &str = "buffer damaged";
const UNFINISHED: &str = "process died while emitting";
const UNWRITTEN: &str = "trace could not be written";
/// How often, and how long each time, the end of a recording waits for living writers to finish the event they are at.
const COMMIT_ATTEMPTS: u32 = 20;
const COMMIT_WAIT: Duration = Duration::from_millis(1);
/// Loss ranges kept apart per buffer; from then on the last one grows.
const MOST_LOSS_RANGES: usize = 256;

/// Where a buffer's events lie and where they go.
pub(crate) struct Target<'a> {
    pub(crate) trace: &'a mut UserTrace,
    /// Of the stream, without `_CPU`.
    pub(crate) name: &'a str,
    pub(crate) region: Region,
    pub(crate) memory: &'a SharedMemory,
}

/// A buffer's only reader and what it has come to.
pub(crate) struct Buffer {
    pub(crate) cpu: usize,
    pub(crate) reader: Reader,
    stream: Option<Output>,
    /// No event that waits was emitted before.
    pub(crate) waiting_since: Instant,
    /// The writers' counters as they were last seen.
    lost: [u64; Loss::COUNT],
    /// Losses that the reader found itself; each at least one event.
    found_lost: u64,
    pub(crate) ranges: Vec<LossRange>,
    /// What was overwritten unread, as it was last seen.
    overwritten: Overwritten,
    pub(crate) overwritten_ranges: Vec<OverwrittenRange>,
    /// The clock when the buffer was made.
    origin: u64,
    /// Damages found, and what the first one was.
    pub(crate) damages: u64,
    pub(crate) damage: Option<Damaged>,
    /// Its write position makes no sense: nothing more can be read.
    pub(crate) is_dead: bool,
}

impl Buffer {
    /// Nothing read yet.
    pub(crate) fn new(cpu: usize, reader: Reader, now: Instant, origin: u64) -> Self {
        Self {
            cpu,
            reader,
            stream: None,
            waiting_since: now,
            lost: [0; Loss::COUNT],
            found_lost: 0,
            ranges: Vec::new(),
            overwritten: Overwritten::default(),
            overwritten_ranges: Vec::new(),
            origin,
            damages: 0,
            damage: None,
            is_dead: false,
        }
    }

    /// # Errors
    /// A packet could not be written, as is known only now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.stream.as_ref().map_or(Ok(()), Output::check)
    }

    /// Writes what is full, or with `partial` everything up to now, as far as it need not wait for the disk; gives the
    /// bytes written.
    pub(crate) fn write(&mut self, target: &mut Target<'_>, partial: bool) -> Result<u64, Error> {
        let geometry = target.region.geometry();
        let mut bytes = 0;
        // Writers go on meanwhile: never more than the buffer can hold at once, so that every buffer gets its turn.
        for _ in 0..=geometry.sub_buffers() {
            if self.is_dead || !target.trace.has_room(geometry.sub_buffer_bytes()) {
                break;
            }
            match self.reader.next(partial) {
                Ok(Some(chunk)) => bytes += self.write_chunk(target, chunk)?,
                Ok(None) => break,
                Err(damaged) => self.damaged(target.name, damaged),
            }
        }
        Ok(bytes)
    }

    /// Writes everything up to now, and waits for the disk where it must.
    fn write_all(&mut self, target: &mut Target<'_>) -> Result<(), Error> {
        for _ in 0..=target.region.geometry().sub_buffers() {
            target.trace.wait_for_room(target.region.geometry().sub_buffer_bytes());
            if self.write(target, true)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Writes a chunk as a packet and releases it.
    fn write_chunk(&mut self, target: &mut Target<'_>, chunk: Chunk) -> Result<u64, Error> {
        let name = target.name;
        let lost = chunk.lost.saturating_add(self.found_lost);
        let skipped = chunk.overwritten.sub_buffers;
        self.note_overwritten(name, chunk.overwritten, chunk.begin);
        let times = PacketTimes { begin: chunk.begin, end: chunk.end, lost, skipped };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = none.insert(target.trace.output(&format!("{name}_{}", self.cpu), self.cpu)?);
                if lost > 0 || skipped > 0 {
                    // Readers compare the counts with the packet's before, so losses need a packet without any.
                    stream.write_empty(PacketTimes::empty(self.origin.min(chunk.begin), 0, 0))?;
                }
                stream
            }
        };
        let len = stream.write(target.memory, &chunk, times)?;
        let rest = chunk.len - len;
        self.reader.release(chunk);
        if rest > 0 {
            self.damaged(name, Damaged { bytes: rest as u64, cause: "event with an impossible length" });
        }
        Ok(len as u64)
    }

    /// Takes note of a loss that is a damage.
    fn damaged(&mut self, name: &str, damaged: Damaged) {
        self.is_dead |= damaged.bytes == 0;
        self.damage.get_or_insert(damaged);
        self.damages += 1;
        self.found_lost += 1;
        let stamp = self.stream.as_ref().map_or(0, Output::end);
        self.extend_range(name, DAMAGED, 1, stamp, stamp);
    }

    pub(crate) fn note_losses(&mut self, name: &str, lost: [u64; Loss::COUNT], begin: u64, end: u64) {
        for loss in Loss::ALL {
            let events = lost[loss as usize].wrapping_sub(self.lost[loss as usize]);
            // A counter that went back is nonsense.
            if events != 0 && events <= u64::MAX / 2 {
                self.lost[loss as usize] = lost[loss as usize];
                self.extend_range(name, loss.reason(), events, begin, end);
            }
        }
    }

    /// Takes note of what was overwritten in front of `end`, since the last packet.
    fn note_overwritten(&mut self, name: &str, overwritten: Overwritten, end: u64) {
        let sub_buffers = overwritten.sub_buffers.saturating_sub(self.overwritten.sub_buffers);
        let bytes = overwritten.bytes.saturating_sub(self.overwritten.bytes);
        if sub_buffers == 0 {
            return;
        }
        self.overwritten = overwritten;
        let begin = self.stream.as_ref().map_or(self.origin, Output::end);
        let crowded = self.overwritten_ranges.len() >= MOST_LOSS_RANGES;
        match self.overwritten_ranges.last_mut() {
            Some(range) if crowded => {
                range.sub_buffers = range.sub_buffers.saturating_add(sub_buffers);
                range.bytes = range.bytes.saturating_add(bytes);
                range.end = range.end.max(end);
            }
            _ => {
                let stream = format!("{name}_{}", self.cpu);
                let new = Overwritten { sub_buffers, bytes };
                self.overwritten_ranges.push(OverwrittenRange::new(&stream, new, begin, end));
            }
        }
    }

    /// Adds a loss to the last range of its reason, where the two touch or there are many; else begins a new range.
    fn extend_range(&mut self, name: &str, reason: &str, events: u64, begin: u64, end: u64) {
        let crowded = self.ranges.len() >= MOST_LOSS_RANGES;
        match self.ranges.iter_mut().rev().find(|range| range.reason == reason) {
            Some(range) if crowded || range.end >= begin => {
                range.events = range.events.saturating_add(events);
                range.end = range.end.max(end);
            }
            _ => {
                let (stream, reason) = (format!("{name}_{}", self.cpu), reason.to_owned());
                self.ranges.push(LossRange { stream, reason, events, begin, end });
            }
        }
    }

    pub(crate) fn finish(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: u64,
    ) -> Result<(), Error> {
        let Target { name, region, .. } = *target;
        self.write_all(target)?;
        if region.protocol() == Protocol::Smp {
            for _ in 0..COMMIT_ATTEMPTS {
                if self.reader.waiting() == 0 || self.is_dead {
                    break;
                }
                std::thread::sleep(COMMIT_WAIT);
                self.write_all(target)?;
            }
            self.finalise(target, clock)?;
        }
        let now = clock.now();
        self.note_losses(name, region.lost(self.cpu), since, now);
        self.note_overwritten(name, self.reader.overwritten(), now);
        let (lost, skipped) = (self.lost_total(), self.overwritten.sub_buffers);
        if lost > self.stream.as_ref().map_or(0, Output::lost)
            || skipped > self.stream.as_ref().map_or(0, Output::skipped)
        {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                none => {
                    let stream = none.insert(target.trace.output(&format!("{name}_{}", self.cpu), self.cpu)?);
                    stream.write_empty(PacketTimes::empty(since, 0, 0))?;
                    stream
                }
            };
            stream.write_empty(PacketTimes::empty(now, lost, skipped))?;
        }
        self.settle(name, since, now);
        self.check()
    }

    /// Waits until everything is written, and counts as lost what could not be.
    fn settle(&mut self, name: &str, since: u64, now: u64) {
        let Some(stream) = &self.stream else { return };
        let (unwritten, end) = (stream.settle(), stream.end());
        self.lose_unwritten(name, unwritten, since.min(end), now);
    }

    fn lose_unwritten(&mut self, name: &str, events: u64, begin: u64, end: u64) {
        if events > 0 {
            self.found_lost = self.found_lost.saturating_add(events);
            self.extend_range(name, UNWRITTEN, events, begin, end);
        }
    }

    /// Takes what complete events stand between and behind those that were never committed.
    fn finalise(&mut self, target: &mut Target<'_>, clock: &TraceClock) -> Result<(), Error> {
        let Target { name, region, .. } = *target;
        // A sub-buffer gives at most one chunk and one skipped stretch.
        for _ in 0..=2 * region.geometry().sub_buffers() {
            target.trace.wait_for_room(region.geometry().sub_buffer_bytes());
            match self.reader.finalise() {
                _ if self.is_dead => break,
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => {
                    self.write_chunk(target, chunk)?;
                }
                Ok(Some(Err(unfinished))) => {
                    self.found_lost += 1;
                    self.extend_range(name, UNFINISHED, 1, unfinished.after, clock.now());
                }
                Err(damaged) => self.damaged(name, damaged),
            }
        }
        Ok(())
    }

    pub(crate) fn abandon(&mut self, name: &str, region: Region, clock: &TraceClock, since: u64) {
        self.settle(name, since, clock.now());
        let mut unwritten = 0;
        for _ in 0..=region.geometry().sub_buffers() {
            match self.reader.next(true) {
                Ok(Some(chunk)) => {
                    // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not released yet.
                    unwritten += unsafe { whole_events(chunk.start, chunk.len, |_| {}) }.0;
                    self.reader.release(chunk);
                }
                Ok(None) => break,
                Err(damaged) => self.damaged(name, damaged),
            }
        }
        let now = clock.now();
        self.note_losses(name, region.lost(self.cpu), since, now);
        let end = self.stream.as_ref().map_or(since, Output::end);
        self.lose_unwritten(name, unwritten, end, now);
    }

    fn lost_total(&self) -> u64 {
        self.lost.iter().fold(self.found_lost, |sum, lost| sum.saturating_add(*lost))
    }

    pub(crate) fn summary(&self, name: &str) -> Option<StreamSummary> {
        let lost = self.lost_total();
        let stream = self.stream.as_ref().map(Output::tally);
        let Tally { events, packets, bytes, .. } = stream.unwrap_or_default();
        (stream.is_some() || lost > 0 || self.overwritten.sub_buffers > 0).then(|| StreamSummary {
            name: format!("{name}_{}", self.cpu),
            cpu: self.cpu as u32,
            events,
            packets,
            bytes,
            lost,
            begin: stream.map(|stream| stream.begin),
            overwritten: self.overwritten.into(),
        })
    }
}

/// Events that follow each other from `start` on by their length fields, and the bytes that they take: all `len` unless
/// some process wrote nonsense. `note` is told their classes' ids.
///
/// # Safety
/// `len` bytes from `start` are mapped and readable. They may change meanwhile.
pub(crate) unsafe fn whole_events(start: *const u8, len: usize, note: impl Fn(u16)) -> (u64, usize) {
    const SMALLEST: usize = event::HEADER + event::CONTEXT;
    const LARGE: usize = event::EXTENDED_HEADER + event::CONTEXT;
    // SAFETY: called for two bytes in front of `len`, which need no alignment; volatile reads are never repeated.
    let number = |at: usize| unsafe { u16::from_le_bytes(start.add(at).cast::<[u8; 2]>().read_volatile()) };
    let (mut at, mut events) = (0, 0);
    while at + SMALLEST <= len {
        let length = usize::from(number(at + 6));
        if length < SMALLEST || at + length > len {
            break;
        }
        match number(at + 4) {
            event::EXTENDED_ID if length < LARGE => break,
            event::EXTENDED_ID => note(number(at + event::HEADER + 8)),
            id => note(id),
        }
        at += length;
        events += 1;
    }
    (events, at)
}
