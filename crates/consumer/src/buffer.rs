//! One CPU's buffer and the stream that it is written to: chunks become packets, losses become intervals.
//!
//! [`crate::drain`] decides when to look at it, and combines the buffers of a region.

use std::time::{Duration, Instant};

use tracewing_abi::region::{Loss, Protocol};
use tracewing_ring::{Chunk, Damaged, Left, Overwritten, Reach, Reader, Region};
use tracewing_streams::PacketTimes;
use tracewing_units::{Cpu, Cycles};

use crate::Error;
use crate::children::ChildLosses;
use crate::clock::TraceClock;
use crate::memory::SharedMemory;
use crate::output::{Appended, Output};
use crate::outside::Insider;
use crate::summary::{LossRange, OverwrittenRange, StreamSummary};
use crate::trace::{UNWRITTEN, UserTrace};
use crate::whole_events::whole_events;

/// Reasons of losses besides those of [`Loss`].
const DAMAGED: &str = "buffer damaged";
const UNFINISHED: &str = "process died while emitting";
pub(crate) const UNDESCRIBED: &str = "first event of a class, or process, that is not known";
/// Time within which the description of a class must be found after its first event.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);
/// Number of attempts, and pause between them, for which the end of a recording waits for live writers to
/// finish their events.
const COMMIT_ATTEMPTS: u32 = 20;
const COMMIT_WAIT: Duration = Duration::from_millis(1);
/// More lost events than a CPU's buffer can plausibly count.
const MOST_LOST: u64 = 1 << 48;
/// Maximum number of loss ranges per buffer; beyond it the last one grows.
const MOST_LOSS_RANGES: usize = 256;
/// More bytes per nanosecond than a program can write: the widest stores have 64 bytes, and a CPU completes
/// fewer than 10 per nanosecond.
const MOST_BYTES_PER_NS: u128 = 1000;

/// Where a buffer's events lie and where they go.
pub(crate) struct Target<'a> {
    pub(crate) trace: &'a mut UserTrace,
    /// Label of the stream, without number and `_CPU`.
    pub(crate) label: &'a str,
    pub(crate) region: Region,
    pub(crate) memory: &'a SharedMemory,
    /// The process of another PID namespace that writes them.
    pub(crate) insider: Option<&'a Insider>,
}

impl<'a> Target<'a> {
    pub(crate) fn new(
        trace: &'a mut UserTrace,
        label: &'a str,
        region: Region,
        memory: &'a SharedMemory,
        insider: Option<&'a Insider>,
    ) -> Self {
        Self { trace, label, region, memory, insider }
    }
}

/// A buffer's only reader and its state.
pub(crate) struct Buffer {
    pub(crate) cpu: Cpu,
    pub(crate) reader: Reader,
    stream: Option<Output>,
    /// No waiting event was emitted earlier.
    pub(crate) waiting_since: Instant,
    /// Page on which children without buffers count; only with the region's first buffer, to whose losses
    /// theirs are added.
    pub(crate) children: Option<ChildLosses>,
    /// Last seen counters of the writers and the children, and the clock before they were read.
    counters: [[u64; Loss::COUNT]; 2],
    counted_at: Cycles,
    /// Plausible losses that they have counted.
    lost: [u64; Loss::COUNT],
    /// The counters were overwritten with nonsense: the number of lost events is unknown.
    pub(crate) is_lost_unknown: bool,
    /// Losses that the reader has found itself; each at least one event.
    found_lost: u64,
    pub(crate) ranges: Vec<LossRange>,
    /// Last seen amount of data that was overwritten unread.
    overwritten: Overwritten,
    pub(crate) overwritten_ranges: Vec<OverwrittenRange>,
    /// Clock and time at which the buffer was made.
    origin: Cycles,
    made: Instant,
    /// Number of damages found, and the first of them.
    pub(crate) damages: u64,
    pub(crate) damage: Option<Damaged>,
    /// The recording ends, so nothing is waited for any more.
    is_ending: bool,
    /// A chunk with the first event of an unknown class, and since when it has waited for the description.
    held: Option<(Chunk, Instant)>,
    /// The write position is invalid: nothing more can be read.
    pub(crate) is_dead: bool,
}

impl Buffer {
    /// A buffer from which nothing has been read.
    pub(crate) fn new(cpu: Cpu, reader: Reader, now: Instant, origin: Cycles) -> Self {
        Self {
            cpu,
            reader,
            stream: None,
            waiting_since: now,
            children: None,
            counters: [[0; Loss::COUNT]; 2],
            counted_at: origin,
            lost: [0; Loss::COUNT],
            is_lost_unknown: false,
            found_lost: 0,
            ranges: Vec::new(),
            overwritten: Overwritten::default(),
            overwritten_ranges: Vec::new(),
            origin,
            made: now,
            damages: 0,
            damage: None,
            is_ending: false,
            held: None,
            is_dead: false,
        }
    }

    /// # Errors
    /// An earlier packet could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.stream.as_ref().map_or(Ok(()), Output::check)
    }

    /// Writes what `reach` says, without waiting for the disk; returns the bytes written.
    pub(crate) fn write(&mut self, target: &mut Target<'_>, reach: Reach) -> Result<u64, Error> {
        let geometry = target.region.geometry();
        let mut bytes = 0;
        // Writers continue in the meantime: at most a full buffer is written, so that every buffer gets its
        // turn.
        for _ in 0..=geometry.sub_buffers() {
            if self.is_dead || !target.trace.has_room(geometry.sub_buffer_bytes()) {
                break;
            }
            let (next, since) = match self.held.take() {
                Some((chunk, since)) => (Ok(Some(chunk)), since),
                None => (self.reader.next(reach), Instant::now()),
            };
            match next {
                Ok(Some(chunk)) => match self.write_chunk(target, chunk, since)? {
                    Some(written) => bytes += written,
                    None => break,
                },
                Ok(None) => break,
                Err(damaged) => self.damaged(target.label, damaged),
            }
        }
        Ok(bytes)
    }

    /// Writes everything up to now; waits for the disk if necessary.
    fn write_all(&mut self, target: &mut Target<'_>) -> Result<(), Error> {
        for _ in 0..=target.region.geometry().sub_buffers() {
            target.trace.wait_for_room(target.region.geometry().sub_buffer_bytes());
            if self.write(target, Reach::Written)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The name of the stream's file.
    pub(crate) fn name(&self, label: &str) -> String {
        self.stream
            .as_ref()
            .map_or_else(|| format!("{label}_{}", self.cpu), |stream| stream.name().to_owned())
    }

    /// The stream; its next packet does not begin before `begin`.
    fn stream(&mut self, target: &mut Target<'_>, begin: Cycles) -> Result<&mut Output, Error> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = target.trace.output(target.label, self.cpu, begin)?;
                self.ranges.iter_mut().for_each(|range| range.stream = stream.name().to_owned());
                self.overwritten_ranges.iter_mut().for_each(|range| range.stream = stream.name().to_owned());
                stream
            }
        };
        Ok(self.stream.insert(stream))
    }

    /// Returns the stream, for another region to continue, with the losses of this region.
    pub(crate) fn retire(&mut self, trace: &mut UserTrace, label: &str) {
        let (lost, overwritten, is_whole) = (self.lost_total(), self.overwritten.into(), self.damages == 0);
        trace.lose(&self.name(label), self.cpu, lost, self.is_lost_unknown, overwritten);
        if let Some(stream) = self.stream.take() {
            // Counters that a hostile process has filled with nonsense must not affect another process's
            // stream.
            trace.give_back(label, stream, is_whole && lost <= MOST_LOST && !self.is_lost_unknown);
        }
    }

    /// Writes a chunk as a packet and releases it. Keeps it and returns `None` while the class of one of its
    /// first events is unknown; its program describes the class at the same time. If it does not, that event
    /// is lost.
    fn write_chunk(
        &mut self,
        target: &mut Target<'_>,
        chunk: Chunk,
        since: Instant,
    ) -> Result<Option<u64>, Error> {
        let is_last = self.is_ending || since.elapsed() > DESCRIBED_WITHIN;
        let label = target.label;
        let counted = self.counted().saturating_add(self.uncounted(target.region));
        let lost = chunk.lost.min(counted).saturating_add(self.found_lost);
        let skipped = chunk.overwritten.sub_buffers;
        let (begin, end) = (Cycles(chunk.begin), Cycles(chunk.end));
        self.note_overwritten(label, chunk.overwritten, begin);
        let times = PacketTimes { begin, end, lost, skipped };
        let (is_first, origin) = (self.stream.is_none(), self.origin.min(begin));
        let stream = self.stream(target, origin)?;
        if is_first && (lost > 0 || skipped > 0) {
            // Readers compare a packet's counts with those of the previous packet, so losses need a previous
            // packet without any.
            stream.write_empty(PacketTimes::empty(origin, 0, 0))?;
        }
        let Some(Appended { len, lost }) =
            stream.write(target.memory, target.insider, &chunk, times, is_last)?
        else {
            self.held = Some((chunk, since));
            return Ok(None);
        };
        if lost > 0 {
            self.found_lost = self.found_lost.saturating_add(lost);
            self.extend_range(label, UNDESCRIBED, lost, times.begin, times.end);
        }
        let rest = chunk.bytes().len() - len;
        self.reader.release(chunk);
        if rest > 0 {
            self.damaged(label, Damaged { bytes: rest as u64, cause: "event with an impossible length" });
        }
        Ok(Some(len as u64))
    }

    /// Records damage as a loss.
    fn damaged(&mut self, label: &str, damaged: Damaged) {
        self.is_dead |= damaged.bytes == 0;
        self.damage.get_or_insert(damaged);
        self.damages += 1;
        self.found_lost += 1;
        let stamp = self.stream.as_ref().map_or(Cycles::ZERO, Output::end).max(self.origin);
        self.extend_range(label, DAMAGED, 1, stamp, stamp);
    }

    /// Reads the writers' counters; new losses happened between `begin` and `end`.
    pub(crate) fn note_losses(
        &mut self,
        label: &str,
        region: Region,
        clock: &TraceClock,
        begin: Cycles,
        end: Cycles,
    ) {
        let before = clock.now();
        let by_children = self.children.as_ref().map(ChildLosses::lost).unwrap_or_default();
        let (counters, after) = ([region.lost(self.cpu.index()), by_children], clock.now());
        // Counting a loss takes more than a cycle or a nanosecond. A larger increase, or a decrease, was not
        // counted by a writer.
        let possible = after.since(self.counted_at).0;
        for (source, loss) in (0..counters.len()).flat_map(|source| Loss::ALL.map(|loss| (source, loss))) {
            let at = loss as usize;
            let events = counters[source][at].wrapping_sub(self.counters[source][at]);
            self.counters[source][at] = counters[source][at];
            if events > possible {
                self.is_lost_unknown = true;
            } else if events > 0 {
                self.lost[at] = self.lost[at].saturating_add(events);
                self.extend_range(label, loss.reason(), events, begin, end);
            }
        }
        self.counted_at = before;
    }

    /// Losses that writers have counted since the last look at their counters.
    fn uncounted(&self, region: Region) -> u64 {
        let now = region.lost(self.cpu.index());
        let since = Loss::ALL.map(|loss| now[loss as usize].wrapping_sub(self.counters[0][loss as usize]));
        let sum = since.into_iter().fold(0, u64::saturating_add);
        if sum <= MOST_LOST { sum } else { 0 }
    }

    /// Losses that writers have counted.
    pub(crate) fn counted(&self) -> u64 {
        self.lost.iter().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    /// Whether enough time has passed since the buffer was made to write this many sub-buffers; if not, a
    /// process has overwritten the position.
    pub(crate) fn can_have_written(&self, sub_buffers: u64) -> bool {
        let bytes = u128::from(sub_buffers) * self.reader.sub_buffer_bytes() as u128;
        bytes <= self.made.elapsed().as_nanos() * MOST_BYTES_PER_NS
    }

    /// Records data that was overwritten before `end`, since the last packet.
    fn note_overwritten(&mut self, label: &str, overwritten: Overwritten, end: Cycles) {
        let sub_buffers = overwritten.sub_buffers.saturating_sub(self.overwritten.sub_buffers);
        let bytes = overwritten.bytes.saturating_sub(self.overwritten.bytes);
        if sub_buffers == 0 {
            return;
        }
        if !self.can_have_written(overwritten.sub_buffers) {
            self.is_lost_unknown = true;
            return;
        }
        self.overwritten = overwritten;
        let begin = self.stream.as_ref().map_or(self.origin, Output::end).max(self.origin);
        let crowded = self.overwritten_ranges.len() >= MOST_LOSS_RANGES;
        match self.overwritten_ranges.last_mut() {
            Some(range) if crowded => {
                range.sub_buffers = range.sub_buffers.saturating_add(sub_buffers);
                range.bytes = range.bytes.saturating_add(bytes);
                range.end = range.end.max(end);
            }
            _ => {
                let stream = self.name(label);
                let new = Overwritten { sub_buffers, bytes };
                self.overwritten_ranges.push(OverwrittenRange::new(&stream, new, begin, end));
            }
        }
    }

    /// Adds a loss to the last range of its reason if the two touch or there are too many ranges; otherwise
    /// begins a new range.
    fn extend_range(&mut self, label: &str, reason: &str, events: u64, begin: Cycles, end: Cycles) {
        let crowded = self.ranges.len() >= MOST_LOSS_RANGES;
        match self.ranges.iter_mut().rev().find(|range| range.reason == reason) {
            Some(range) if crowded || range.end >= begin => {
                range.events = range.events.saturating_add(events);
                range.end = range.end.max(end);
            }
            _ => {
                let (stream, reason) = (self.name(label), reason.to_owned());
                self.ranges.push(LossRange { stream, reason, events, begin, end });
            }
        }
    }

    pub(crate) fn finish(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: Cycles,
    ) -> Result<(), Error> {
        self.write_rest(target, clock, since)?;
        self.settle(target.label, since, clock.now());
        self.check()
    }

    /// Writes all remaining events, and a last packet if events were lost since the one before.
    pub(crate) fn write_rest(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: Cycles,
    ) -> Result<(), Error> {
        let Target { label, region, .. } = *target;
        self.is_ending = true;
        self.write_all(target)?;
        if !self.is_dead && self.reader.is_passed_back() {
            self.damaged(label, Damaged { bytes: 0, cause: "write position before what was read" });
        }
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
        self.note_losses(label, region, clock, since, now);
        self.note_overwritten(label, self.reader.overwritten(), now);
        let (lost, skipped) = (self.lost_total(), self.overwritten.sub_buffers);
        if lost > self.stream.as_ref().map_or(0, Output::lost)
            || skipped > self.stream.as_ref().map_or(0, Output::skipped)
        {
            let is_first = self.stream.is_none();
            let stream = self.stream(target, since)?;
            if is_first {
                stream.write_empty(PacketTimes::empty(since, 0, 0))?;
            }
            stream.write_empty(PacketTimes::empty(now, lost, skipped))?;
        }
        Ok(())
    }

    /// Waits until everything is written, and counts events that could not be written as lost.
    fn settle(&mut self, label: &str, since: Cycles, now: Cycles) {
        let Some(stream) = &self.stream else { return };
        let (unwritten, end) = (stream.settle(), stream.end());
        self.lose_unwritten(label, unwritten, since.min(end), now);
    }

    fn lose_unwritten(&mut self, label: &str, events: u64, begin: Cycles, end: Cycles) {
        if events > 0 {
            self.found_lost = self.found_lost.saturating_add(events);
            self.extend_range(label, UNWRITTEN, events, begin, end);
        }
    }

    /// Reads the complete events between and after those that were never committed.
    fn finalise(&mut self, target: &mut Target<'_>, clock: &TraceClock) -> Result<(), Error> {
        let Target { label, region, .. } = *target;
        // A sub-buffer yields at most one chunk and one skipped stretch.
        for _ in 0..=2 * region.geometry().sub_buffers() {
            target.trace.wait_for_room(region.geometry().sub_buffer_bytes());
            match self.reader.finalise() {
                _ if self.is_dead => break,
                Ok(Left::Nothing) => break,
                Ok(Left::Chunk(chunk)) => {
                    self.write_chunk(target, chunk, Instant::now())?;
                }
                Ok(Left::Unfinished(unfinished)) => {
                    self.found_lost += 1;
                    self.extend_range(label, UNFINISHED, 1, Cycles(unfinished.after), clock.now());
                }
                Err(damaged) => self.damaged(label, damaged),
            }
        }
        Ok(())
    }

    pub(crate) fn abandon(&mut self, label: &str, region: Region, clock: &TraceClock, since: Cycles) {
        self.settle(label, since, clock.now());
        let mut unwritten = 0;
        if let Some((chunk, _)) = self.held.take() {
            // SAFETY: as below.
            unwritten += unsafe { whole_events(chunk.bytes(), |_| {}) }.0;
            self.reader.release(chunk);
        }
        for _ in 0..=region.geometry().sub_buffers() {
            match self.reader.next(Reach::Written) {
                Ok(Some(chunk)) => {
                    // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not
                    // released yet.
                    unwritten += unsafe { whole_events(chunk.bytes(), |_| {}) }.0;
                    self.reader.release(chunk);
                }
                Ok(None) => break,
                Err(damaged) => self.damaged(label, damaged),
            }
        }
        let now = clock.now();
        self.note_losses(label, region, clock, since, now);
        let end = self.stream.as_ref().map_or(since, Output::end);
        self.lose_unwritten(label, unwritten, end, now);
    }

    fn lost_total(&self) -> u64 {
        self.counted().saturating_add(self.found_lost)
    }

    pub(crate) fn summary(&self, label: &str) -> Option<StreamSummary> {
        let lost = self.lost_total();
        if let Some(stream) = &self.stream {
            let summary = stream.summary(lost, self.overwritten.into());
            return Some(StreamSummary { is_lost_unknown: self.is_lost_unknown, ..summary });
        }
        (lost > 0 || self.is_lost_unknown || self.overwritten.sub_buffers > 0).then(|| StreamSummary {
            name: self.name(label),
            cpu: self.cpu,
            events: 0,
            packets: 0,
            bytes: 0,
            lost,
            is_lost_unknown: self.is_lost_unknown,
            begin: None,
            overwritten: self.overwritten.into(),
        })
    }
}
