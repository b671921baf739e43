//! All CPU buffers of one region: what is due is written, what was lost is noted with the time in which it was lost.
//!
//! The drain is driven by a timer that its owner keeps: programs never wake their consumer. Full sub-buffers are
//! written at once; a partly filled one only when its oldest event would otherwise reach the disk too late.
//!
//! The region may be written by hostile processes. The worst that they can do is to lose events and to fill the trace with
//! nonsense: the `ring` crate's reader bounds everything that it hands out, what it finds damaged is skipped and counted as
//! a loss, and events are checked to follow each other before they are written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use tracewing_abi::event;
use tracewing_abi::region::{Geometry, Loss, Protocol};
use tracewing_ctf::model::Uuid;
use tracewing_ring::{Chunk, Damaged, Reader, Region};

use crate::Error;
use crate::clock::TraceClock;
use crate::memory::SharedMemory;
use crate::stream::{Events, PacketTimes, Stream};

/// Why events are lost besides what [`Loss`] says.
const DAMAGED: &str = "buffer damaged";
const UNFINISHED: &str = "process died while emitting";
const UNWRITTEN: &str = "trace could not be written";
/// How often, and how long each time, the end of a recording waits for living writers to finish the event they are at.
const COMMIT_ATTEMPTS: u32 = 20;
const COMMIT_WAIT: Duration = Duration::from_millis(1);

/// Loss ranges kept apart per buffer; from then on the last one grows.
const MOST_LOSS_RANGES: usize = 256;

/// The user trace that streams are added to.
pub struct UserTrace {
    folder: PathBuf,
    recording: Uuid,
    streams: u64,
}

impl UserTrace {
    /// The trace in `folder`, whose `index` folder is made here.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, recording: Uuid) -> Result<Self, Error> {
        let index = folder.join("index");
        fs::create_dir_all(&index).map_err(Error::file("create", &index))?;
        Ok(Self { folder: folder.to_owned(), recording, streams: 0 })
    }

    /// Identity of the recording.
    pub fn recording(&self) -> Uuid {
        self.recording
    }

    fn stream(&mut self, name: &str, cpu: usize) -> Result<Stream, Error> {
        let stream = Stream::create(&self.folder, name, self.recording, self.streams, cpu as u32)?;
        self.streams += 1;
        Ok(stream)
    }
}

/// What a finished or running stream amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// File name in the trace's folder; also for a buffer that lost everything and has no file.
    pub name: String,
    /// CPU.
    pub cpu: u32,
    /// Events written.
    pub events: u64,
    /// Packets written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events lost.
    pub lost: u64,
}

/// Events lost in one buffer, for one reason, within a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossRange {
    /// Name of the stream.
    pub stream: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub events: u64,
    /// The buffer had lost none of them then, cycles.
    pub begin: u64,
    /// The buffer had lost all of them then, cycles.
    pub end: u64,
}

/// What a look at the buffers found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Found {
    /// How full the fullest buffer was, 0 to 1.
    pub fullest: f64,
    /// Bytes written to files.
    pub written: u64,
}

/// The one consumer of a region.
pub struct Drain {
    name: String,
    buffers: Vec<Buffer>,
    region: Region,
    polled: Instant,
    stamp: u64,
    // Last, so that it is unmapped after all that points into it.
    memory: SharedMemory,
}

struct Buffer {
    cpu: usize,
    reader: Reader,
    stream: Option<Stream>,
    /// No event that waits was emitted before.
    waiting_since: Instant,
    events: u64,
    /// The writers' counters as they were last seen.
    lost: [u64; Loss::COUNT],
    /// Losses that the reader found itself; each at least one event.
    found_lost: u64,
    ranges: Vec<LossRange>,
    /// Damages found, and what the first one was.
    damages: u64,
    damage: Option<Damaged>,
    /// Its write position makes no sense: nothing more can be read.
    is_dead: bool,
}

impl Drain {
    /// A new region in new memory. `name` is what its streams are called, with `_CPU` behind it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Result<Self, Error> {
        let memory = SharedMemory::new(geometry.size())?;
        // SAFETY: the memory is new, zeroed, mapped at a page and as large as the geometry says; `Drain` keeps it mapped
        // while it has the region and its readers.
        let region = unsafe { Region::create(memory.base(), geometry, protocol, clock.kind(), recording) };
        let polled = Instant::now();
        let buffers = (0..geometry.cpus())
            .map(|cpu| Buffer {
                cpu,
                // SAFETY: the region is new, so these are its first readers, and it gets no others.
                reader: unsafe { region.reader(cpu) },
                stream: None,
                waiting_since: polled,
                events: 0,
                lost: [0; Loss::COUNT],
                found_lost: 0,
                ranges: Vec::new(),
                damages: 0,
                damage: None,
                is_dead: false,
            })
            .collect();
        Ok(Self { name, buffers, region, polled, stamp: clock.now(), memory })
    }

    /// What its streams are called, without `_CPU`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The region.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The memory that it lies in, to be passed to other processes.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Writes full sub-buffers, and those parts of the others that would be older than `flush` at a next look
    /// `interval` from now.
    ///
    /// # Errors
    /// A file could not be written; what was not written stays in the buffers.
    pub fn poll(
        &mut self,
        trace: &mut UserTrace,
        clock: &TraceClock,
        flush: Duration,
        interval: Duration,
    ) -> Result<Found, Error> {
        let (now, stamp) = (Instant::now(), clock.now());
        let capacity = self.region.geometry().data_bytes() as f64;
        let mut found = Found::default();
        for buffer in &mut self.buffers {
            let waiting = buffer.reader.waiting();
            buffer.note_losses(&self.name, self.region.lost(buffer.cpu), self.stamp, stamp);
            if waiting == 0 || buffer.is_dead {
                buffer.waiting_since = now;
                continue;
            }
            found.fullest = found.fullest.max(waiting as f64 / capacity);
            let full = buffer.write(trace, &self.name, self.region.geometry(), false)?;
            if full > 0 {
                // What is left was emitted after the sub-buffer that was current at the last look had been closed.
                buffer.waiting_since = self.polled.max(buffer.waiting_since);
            }
            found.written += full;
            if now.duration_since(buffer.waiting_since) + interval >= flush {
                found.written += buffer.write(trace, &self.name, self.region.geometry(), true)?;
                buffer.waiting_since = now;
            }
        }
        (self.polled, self.stamp) = (now, stamp);
        Ok(found)
    }

    /// Closes the region for its writers.
    pub fn close(&self) {
        self.region.close();
    }

    /// Writes all that is left, and a last packet where events were lost since the one before. Call it once nobody
    /// writes any more, or after [`Drain::close`]; what is emitted meanwhile is not waited for. With protocol `Smp`, what a
    /// dead process has reserved and not committed is skipped and counted lost.
    ///
    /// # Errors
    /// A file could not be written; what was for it is counted lost, and the other buffers are written all the same.
    pub fn finish(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        let mut result = Ok(());
        for buffer in &mut self.buffers {
            let written = buffer.finish(trace, &self.name, self.region, clock, self.stamp);
            if written.is_err() {
                buffer.abandon(&self.name, self.region, clock, self.stamp);
            }
            result = result.and(written);
        }
        self.stamp = clock.now();
        result
    }

    /// In place of [`Drain::finish`] when the trace cannot be written: counts what is left in the buffers as lost.
    pub fn abandon(&mut self, clock: &TraceClock) {
        for buffer in &mut self.buffers {
            buffer.abandon(&self.name, self.region, clock, self.stamp);
        }
        self.stamp = clock.now();
    }

    /// One line per buffer that had events or losses.
    pub fn summary(&self) -> Vec<StreamSummary> {
        self.buffers.iter().filter_map(|buffer| buffer.summary(&self.name)).collect()
    }

    /// What was lost and when, in the order of CPUs and times.
    pub fn losses(&self) -> impl Iterator<Item = &LossRange> {
        self.buffers.iter().flat_map(|buffer| &buffer.ranges)
    }

    /// Buffers in which some process wrote nonsense, a line each.
    pub fn damages(&self) -> impl Iterator<Item = String> + '_ {
        self.buffers.iter().filter_map(|buffer| {
            let more = match buffer.damages {
                0 | 1 => String::new(),
                count => format!(", and {} more times", count - 1),
            };
            buffer.damage.map(|damage| format!("user/{}_{}: {damage}{more}", self.name, buffer.cpu))
        })
    }
}

impl Buffer {
    /// Writes what is full, or with `partial` everything up to now; gives the bytes written.
    fn write(
        &mut self,
        trace: &mut UserTrace,
        name: &str,
        geometry: Geometry,
        partial: bool,
    ) -> Result<u64, Error> {
        let mut bytes = 0;
        // Writers go on meanwhile: never more than the buffer can hold at once, so that every buffer gets its turn.
        for _ in 0..=geometry.sub_buffers() {
            match self.reader.next(partial) {
                Ok(Some(chunk)) => bytes += self.write_chunk(trace, name, chunk)?,
                Ok(None) => break,
                Err(damaged) => self.damaged(name, damaged),
            }
            if self.is_dead {
                break;
            }
        }
        Ok(bytes)
    }

    /// Writes a chunk as a packet and releases it.
    fn write_chunk(&mut self, trace: &mut UserTrace, name: &str, chunk: Chunk) -> Result<u64, Error> {
        let lost = chunk.lost.saturating_add(self.found_lost);
        let times = PacketTimes { begin: chunk.begin, end: chunk.end, lost };
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = none.insert(trace.stream(&format!("{name}_{}", self.cpu), self.cpu)?);
                if lost > 0 {
                    // Readers compare the count with the packet's before, so losses need a packet without any.
                    stream.write_empty(PacketTimes { begin: chunk.begin, end: chunk.begin, lost: 0 })?;
                }
                stream
            }
        };
        // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not released yet.
        let (events, len) = unsafe { whole_events(chunk.start, chunk.len) };
        // SAFETY: as above, and `len` is at most the chunk's.
        unsafe { stream.write(Events { start: chunk.start, len }, times)? };
        self.events += events;
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
        let stamp = self.stream.as_ref().map_or(0, Stream::end);
        self.extend_range(name, DAMAGED, 1, stamp, stamp);
    }

    fn note_losses(&mut self, name: &str, lost: [u64; Loss::COUNT], begin: u64, end: u64) {
        for loss in Loss::ALL {
            let events = lost[loss as usize].wrapping_sub(self.lost[loss as usize]);
            // A counter that went back is nonsense.
            if events != 0 && events <= u64::MAX / 2 {
                self.lost[loss as usize] = lost[loss as usize];
                self.extend_range(name, loss.reason(), events, begin, end);
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

    fn finish(
        &mut self,
        trace: &mut UserTrace,
        name: &str,
        region: Region,
        clock: &TraceClock,
        since: u64,
    ) -> Result<(), Error> {
        self.write(trace, name, region.geometry(), true)?;
        if region.protocol() == Protocol::Smp {
            for _ in 0..COMMIT_ATTEMPTS {
                if self.reader.waiting() == 0 || self.is_dead {
                    break;
                }
                std::thread::sleep(COMMIT_WAIT);
                self.write(trace, name, region.geometry(), true)?;
            }
            self.finalise(trace, name, region.geometry(), clock)?;
        }
        let now = clock.now();
        self.note_losses(name, region.lost(self.cpu), since, now);
        let lost = self.lost_total();
        if lost > self.stream.as_ref().map_or(0, Stream::lost) {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                none => {
                    let stream = none.insert(trace.stream(&format!("{name}_{}", self.cpu), self.cpu)?);
                    stream.write_empty(PacketTimes { begin: since, end: since, lost: 0 })?;
                    stream
                }
            };
            stream.write_empty(PacketTimes { begin: now, end: now, lost })?;
        }
        Ok(())
    }

    /// Takes what complete events stand between and behind those that were never committed.
    fn finalise(
        &mut self,
        trace: &mut UserTrace,
        name: &str,
        geometry: Geometry,
        clock: &TraceClock,
    ) -> Result<(), Error> {
        // A sub-buffer gives at most one chunk and one skipped stretch.
        for _ in 0..=2 * geometry.sub_buffers() {
            match self.reader.finalise() {
                _ if self.is_dead => break,
                Ok(None) => break,
                Ok(Some(Ok(chunk))) => {
                    self.write_chunk(trace, name, chunk)?;
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

    fn abandon(&mut self, name: &str, region: Region, clock: &TraceClock, since: u64) {
        let mut unwritten = 0;
        for _ in 0..=region.geometry().sub_buffers() {
            match self.reader.next(true) {
                Ok(Some(chunk)) => {
                    // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not released yet.
                    unwritten += unsafe { whole_events(chunk.start, chunk.len) }.0;
                    self.reader.release(chunk);
                }
                Ok(None) => break,
                Err(damaged) => self.damaged(name, damaged),
            }
        }
        let now = clock.now();
        self.note_losses(name, region.lost(self.cpu), since, now);
        if unwritten > 0 {
            self.found_lost = self.found_lost.saturating_add(unwritten);
            let end = self.stream.as_ref().map_or(since, Stream::end);
            self.extend_range(name, UNWRITTEN, unwritten, end, now);
        }
    }

    fn lost_total(&self) -> u64 {
        self.lost.iter().fold(self.found_lost, |sum, lost| sum.saturating_add(*lost))
    }

    fn summary(&self, name: &str) -> Option<StreamSummary> {
        let lost = self.lost_total();
        let stream = self.stream.as_ref();
        (stream.is_some() || lost > 0).then(|| StreamSummary {
            name: format!("{name}_{}", self.cpu),
            cpu: self.cpu as u32,
            events: self.events,
            packets: stream.map_or(0, Stream::packets),
            bytes: stream.map_or(0, Stream::bytes),
            lost,
        })
    }
}

/// Events that follow each other from `start` on by their length fields, and the bytes that they take: all `len` unless
/// some process wrote nonsense.
///
/// # Safety
/// `len` bytes from `start` are mapped and readable. They may change meanwhile.
unsafe fn whole_events(start: *const u8, len: usize) -> (u64, usize) {
    const SMALLEST: usize = event::HEADER + event::CONTEXT;
    let (mut at, mut events) = (0, 0);
    while at + SMALLEST <= len {
        // SAFETY: `at + 8 <= len`; single bytes need no alignment, and volatile reads are never repeated.
        let length = unsafe { [start.add(at + 6).read_volatile(), start.add(at + 7).read_volatile()] };
        let length = usize::from(u16::from_le_bytes(length));
        if length < SMALLEST || at + length > len {
            break;
        }
        at += length;
        events += 1;
    }
    (events, at)
}
