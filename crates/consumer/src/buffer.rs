//! One CPU's buffer and the stream that it is written to: chunks become packets, losses become intervals.
//!
//! [`crate::drain`] decides when to look at it, and combines the buffers of a region.

mod ends;
mod losses;
mod rotate;

use losses::MOST_LOST;
use rotate::Archived;
use std::time::{Duration, Instant};

use tracewing_abi::region::{Loss, Mode};
use tracewing_ctf::write::PACKET_HEADER_SIZE;
use tracewing_ring::{Chunk, Contradiction, Damaged, Overwritten, Reader, Region, UpTo};
use tracewing_streams::PacketTimes;
use tracewing_units::{Cpu, Cycles};

use crate::Error;
use crate::archive::without_file;
use crate::children::ChildLosses;
use crate::clock::TraceClock;
use crate::memory::SharedMemory;
use crate::output::{Appended, Output};
use crate::outside::Insider;
use crate::summary::{LossRange, OverwrittenRange, StreamSummary};
use crate::trace::UserTrace;
pub(crate) const UNDESCRIBED: &str = "first event of a class, or process, that is not known";
/// Time within which the description of a class must be found after its first event.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);
/// Where a buffer's events lie and where they go.
pub(crate) struct Target<'a> {
    pub(crate) trace: &'a mut UserTrace,
    /// Label of the stream, without number and `_CPU`.
    pub(crate) label: &'a str,
    pub(crate) region: Region,
    pub(crate) memory: &'a SharedMemory,
    /// The process of another PID namespace that writes them.
    pub(crate) insider: Option<&'a Insider>,
    pub(crate) clock: &'a TraceClock,
}

impl<'a> Target<'a> {
    pub(crate) fn new(
        trace: &'a mut UserTrace,
        label: &'a str,
        region: Region,
        memory: &'a SharedMemory,
        insider: Option<&'a Insider>,
        clock: &'a TraceClock,
    ) -> Self {
        Self { trace, label, region, memory, insider, clock }
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
    /// The counters were overwritten with nonsense since the archive began: the number of lost events is
    /// unknown.
    pub(crate) is_lost_unknown: bool,
    /// What earlier archives have of its losses.
    archived: Archived,
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
    /// The last packet is written, and ends later than its events: no more can follow.
    is_closed: bool,
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
            archived: Archived::default(),
            found_lost: 0,
            ranges: Vec::new(),
            overwritten: Overwritten::default(),
            overwritten_ranges: Vec::new(),
            origin,
            made: now,
            damages: 0,
            damage: None,
            is_ending: false,
            is_closed: false,
            held: None,
            is_dead: false,
        }
    }

    /// # Errors
    /// An earlier packet could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.stream.as_ref().map_or(Ok(()), Output::check)
    }

    /// Writes what `up_to` says, without waiting for the disk; returns the bytes written.
    pub(crate) fn write(&mut self, target: &mut Target<'_>, up_to: UpTo) -> Result<u64, Error> {
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
                None => (self.reader.next(up_to), Instant::now()),
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
            if self.write(target, UpTo::LastWritten)? == 0 {
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

    /// Whether its next packet is the first one of the region in a file.
    fn is_first(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| !stream.is_open())
    }

    /// The stream; its next packet does not begin before `begin`.
    fn stream(&mut self, target: &mut Target<'_>, begin: Cycles) -> Result<&mut Output, Error> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = target.trace.output(target.label, self.cpu, begin);
                self.ranges.iter_mut().for_each(|range| range.stream = stream.name().to_owned());
                self.overwritten_ranges.iter_mut().for_each(|range| range.stream = stream.name().to_owned());
                stream
            }
        };
        let opened = if stream.is_open() { Ok(()) } else { target.trace.open(&mut stream) };
        let stream = self.stream.insert(stream);
        opened.map(|()| stream)
    }

    /// Returns the stream, for another region to continue, with the losses of this region.
    pub(crate) fn retire(&mut self, trace: &mut UserTrace, label: &str) {
        let (lost, is_whole) = (self.lost_here(), self.damages == 0);
        trace.lose(&self.name(label), &lost);
        let is_unknown = self.is_lost_unknown || self.archived.is_lost_unknown;
        if let Some(stream) = self.stream.take() {
            // Counters that a hostile process has filled with nonsense must not affect another process's
            // stream.
            trace.give_back(label, stream, is_whole && self.lost_total() <= MOST_LOST && !is_unknown);
        }
    }

    /// Writes a chunk as a packet and releases it. Keeps it and returns `None` while the class of one of its
    /// first events is unknown; its program describes the class at the same time. If it does not, that event
    /// is lost. Leaves one in its place, and also returns `None`, if events were lost between its own: until
    /// its sub-buffer is full, or the recording ends.
    fn write_chunk(
        &mut self,
        target: &mut Target<'_>,
        chunk: Chunk,
        since: Instant,
    ) -> Result<Option<u64>, Error> {
        let is_last = self.is_ending || since.elapsed() > DESCRIBED_WITHIN;
        let label = target.label;
        if self.is_closed {
            self.leave_out(target, chunk);
            return Ok(None);
        }
        let has_gaps = chunk.is_open && self.counted_by_writers(target.region) > chunk.lost;
        if has_gaps && !self.is_ending && target.region.geometry().mode() == Mode::Discard {
            return Ok(None);
        }
        // Counted before the clock is read: the last packet ends after all of them.
        let counted = self.counted().saturating_add(self.uncounted(target.region));
        self.is_closed = has_gaps && self.is_ending;
        let (lost, end) = match self.is_closed {
            true => (counted, chunk.end.max(target.clock.now())),
            false => (chunk.lost.min(counted), chunk.end),
        };
        let lost = lost.saturating_add(self.found_lost);
        let (begin, skipped) = (chunk.begin, chunk.overwritten.sub_buffers);
        self.note_overwritten(label, chunk.overwritten, begin);
        let times = PacketTimes { begin, end, lost, skipped };
        let (is_first, origin) = (self.is_first(), self.origin.min(begin));
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
        target.trace.count_given(PACKET_HEADER_SIZE + len);
        let rest = chunk.bytes().len() - len;
        self.reader.release(chunk);
        if rest > 0 {
            self.damaged(label, Damaged { bytes: rest as u64, cause: Contradiction::EventLength });
        }
        Ok(Some(len as u64))
    }

    /// The summary of the current archive.
    pub(crate) fn summary(&self, label: &str) -> Option<StreamSummary> {
        let lost = self.lost_here();
        let written = self.stream.as_ref().and_then(|stream| stream.summary(lost.events, lost.overwritten));
        if let Some(summary) = written {
            return Some(StreamSummary { is_lost_unknown: lost.is_unknown, ..summary });
        }
        (!lost.is_nothing()).then(|| without_file(&self.name(label), &lost))
    }
}
