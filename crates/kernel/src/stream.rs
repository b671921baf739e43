//! Converts one CPU's raw pages into CTF packets.
//!
//! Leaves to others where pages come from ([`crate::reader`]) and where packets go ([`crate::folder`]).
//!
//! Losses. The instance is in discard mode: when its buffer is full the kernel drops what comes and counts it, until
//! pages are read. So all that was dropped before a drain happened between the last event that was in the buffer and
//! the drain's begin, and the boundary is found by time: the first event stamped at or after the drain's begin comes
//! after the gap. There the packet is ended, and the next one carries the count in `events_discarded`. Pages on which
//! the kernel says that events before them were overwritten (somebody switched the instance to overwrite mode) are a
//! gap at their own begin.

use crate::class::{Class, Program};
use crate::losses::{LossRange, Losses};
use crate::page::Page;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tracewing_ctf::index::Entry;
use tracewing_ctf::model::Uuid;
use tracewing_ctf::write::{EXTENDED_ID, PACKET_HEADER_SIZE, PacketHeader};

/// Size at which a packet is ended, in bytes.
const PACKET_SIZE: usize = 256 * 1024;
/// Class id in [`Programs`] of what was not chosen.
const NONE: u16 = u16::MAX;

/// The event of a program that was executed; its payload begins with the file's path.
const EXEC: &str = "sched_process_exec";
/// Paths that are told.
const MOST_EXECUTED: usize = 10_000;

/// The programs of all chosen events, found by the kernel's event number.
#[derive(Debug)]
pub(crate) struct Programs {
    by_kernel_id: Vec<u16>,
    programs: Vec<Program>,
    /// Of which there was an event.
    met: Vec<Cell<bool>>,
    /// That of [`EXEC`], if it was chosen.
    exec: u16,
    executed: RefCell<Executed>,
}

/// Files that were executed.
#[derive(Debug, Default)]
struct Executed {
    all: HashSet<Vec<u8>>,
    /// Those of which nobody was told yet, and by which process.
    new: Vec<(i32, PathBuf)>,
}

impl Programs {
    /// `classes` in the order of their ids in the trace; fewer than 65535.
    pub(crate) fn new(classes: &[Class]) -> Self {
        let size = classes.iter().map(|class| usize::from(class.kernel_id) + 1).max().unwrap_or(0);
        let mut by_kernel_id = vec![NONE; size];
        for (id, class) in (0..NONE).zip(classes) {
            by_kernel_id[usize::from(class.kernel_id)] = id;
        }
        let programs = classes.iter().map(|class| class.program.clone()).collect();
        let is_exec = |class: &Class| class.record.name.as_deref() == Some(EXEC);
        let exec = classes.iter().position(is_exec).map_or(NONE, |id| id as u16);
        let met = vec![Cell::new(false); classes.len()];
        Self { by_kernel_id, programs, met, exec, executed: RefCell::default() }
    }

    /// Files that were executed since the last call, each told once, and by which process.
    pub(crate) fn executed(&self) -> Vec<(i32, PathBuf)> {
        std::mem::take(&mut self.executed.borrow_mut().new)
    }

    #[cold]
    fn note_executed(&self, program: &Program, record: &[u8]) {
        let Some((tid, path)) = program.tid(record).zip(program.text(record)) else { return };
        let Executed { all, new } = &mut *self.executed.borrow_mut();
        if all.len() < MOST_EXECUTED && !all.contains(path) {
            all.insert(path.to_owned());
            new.push((tid, OsStr::from_bytes(path).into()));
        }
    }

    /// The thread that has recorded an event.
    pub(crate) fn tid(&self, record: &[u8]) -> Option<i32> {
        self.find(record).and_then(|(_, program)| program.tid(record))
    }

    /// Whether an event of this class was converted.
    pub(crate) fn has_met(&self, id: usize) -> bool {
        self.met.get(id).is_some_and(Cell::get)
    }

    #[inline]
    fn find(&self, record: &[u8]) -> Option<(u16, &Program)> {
        let kernel_id = u16::from_ne_bytes(*record.first_chunk()?);
        let id = *self.by_kernel_id.get(usize::from(kernel_id))?;
        Some((id, self.programs.get(usize::from(id))?))
    }
}

/// A finished packet.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    /// All its bytes.
    pub(crate) bytes: &'a [u8],
    /// Its index entry; the offset is the writer's to fill in.
    pub(crate) entry: Entry,
}

/// Takes finished packets.
pub(crate) trait Sink {
    /// Why it could not.
    type Error;
    /// Takes one. After an error the packet must have left no trace.
    fn packet(&mut self, cpu: u32, packet: &Packet<'_>) -> Result<(), Self::Error>;
}

/// Events that are lost somewhere ahead of an event that is still to come.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Where it begins at the earliest, if not at the last event before it.
    begin: Option<u64>,
    /// The first event stamped so or later comes after it.
    at: u64,
    events: u64,
}

/// What a stream has come to so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// The CPU.
    pub cpu: u32,
    /// Events written.
    pub events: u64,
    /// Packets written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events lost.
    pub losses: Losses,
    /// Events from before the first one that is here, which a flight recorder's buffer no longer holds.
    pub overwritten: Option<LossRange>,
    /// Records of kinds that were not chosen (somebody else enabled them in the instance); left out.
    pub foreign: u64,
    /// Pages or records that could not be decoded; each counts as one lost event at least.
    pub damaged: u64,
}

/// One CPU's conversion.
#[derive(Debug)]
pub(crate) struct Stream {
    uuid: Uuid,
    summary: StreamSummary,
    out: Vec<u8>,
    /// Events in `out`.
    pending: u64,
    begin: u64,
    last: u64,
    discarded: u64,
    /// In order of `at`.
    gaps: Vec<Gap>,
}

impl Stream {
    pub(crate) fn new(cpu: u32, uuid: Uuid) -> Self {
        let mut out = Vec::with_capacity(PACKET_SIZE + 8192);
        out.resize(PACKET_HEADER_SIZE, 0);
        let summary = StreamSummary { cpu, ..StreamSummary::default() };
        Self { uuid, summary, out, pending: 0, begin: 0, last: 0, discarded: 0, gaps: Vec::new() }
    }

    pub(crate) fn summary(&self) -> &StreamSummary {
        &self.summary
    }

    /// Stamp of the last event, 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Events lost so far, those included whose place is not known yet.
    pub(crate) fn lost(&self) -> u64 {
        self.gaps.iter().fold(self.summary.losses.events, |sum, gap| sum.saturating_add(gap.events))
    }

    /// Converts a page. All of it also where a packet could not be written, whose events are counted as lost then; the
    /// first such error is returned.
    pub(crate) fn page<S: Sink>(
        &mut self,
        page: &Page<'_>,
        programs: &Programs,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let mut written = Ok(());
        let mut gap_at = self.next_gap();
        for record in page.records() {
            let Ok(record) = record else {
                self.damage();
                break;
            };
            if record.stamp >= gap_at {
                written = written.and(self.close_gaps(record.stamp, sink));
                gap_at = self.next_gap();
            }
            match programs.find(record.data) {
                None => self.summary.foreign += 1,
                Some((id, program)) => {
                    programs.met[usize::from(id)].set(true);
                    if id == programs.exec {
                        programs.note_executed(program, record.data);
                    }
                    if !self.append(record.stamp, id, |out| program.run(record.data, out)) {
                        self.damage();
                        gap_at = self.next_gap();
                    }
                    if self.out.len() >= PACKET_SIZE {
                        written = written.and(self.end_packet(sink));
                    }
                }
            }
        }
        written
    }

    /// Takes an event that is not the kernel's: class, context and payload as they are in the trace.
    pub(crate) fn event<S: Sink>(
        &mut self,
        stamp: u64,
        id: u16,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let closed = if stamp >= self.next_gap() { self.close_gaps(stamp, sink) } else { Ok(()) };
        self.append(stamp, id, |out| {
            out.extend_from_slice(body);
            true
        });
        closed.and(if self.out.len() >= PACKET_SIZE { self.end_packet(sink) } else { Ok(()) })
    }

    /// Appends what `write` writes; nothing if it says `false`.
    #[inline]
    fn append(&mut self, stamp: u64, id: u16, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        // Readers take a smaller stamp for a wrap of the clock. The kernel's do not go back within a CPU.
        let stamp = stamp.max(self.last);
        let before = self.out.len();
        if self.pending == 0 || stamp - self.last < 1 << 32 {
            let [a, b] = id.to_le_bytes();
            let [c, d, e, f] = (stamp as u32).to_le_bytes();
            self.out.extend_from_slice(&[a, b, c, d, e, f]);
        } else {
            self.out.extend_from_slice(&EXTENDED_ID.to_le_bytes());
            self.out.extend_from_slice(&(stamp as u32).to_le_bytes());
            self.out.extend_from_slice(&stamp.to_le_bytes());
            self.out.extend_from_slice(&id.to_le_bytes());
        }
        if !write(&mut self.out) {
            self.out.truncate(before);
            return false;
        }
        if self.pending == 0 {
            self.begin = stamp;
        }
        self.pending += 1;
        self.last = stamp;
        true
    }

    /// Announces `events` lost between `begin` (or the last event) and the first event stamped `at` or later.
    pub(crate) fn expect_gap(&mut self, begin: Option<u64>, at: u64, events: u64) {
        if events == 0 {
            return;
        }
        match self.gaps.last_mut() {
            Some(gap) if (gap.begin, gap.at) == (begin, at) => gap.events = gap.events.saturating_add(events),
            _ => {
                let place = self.gaps.partition_point(|gap| gap.at <= at);
                self.gaps.insert(place, Gap { begin, at, events });
            }
        }
    }

    /// The stamp from which on an event lies behind a gap.
    fn next_gap(&self) -> u64 {
        self.gaps.first().map_or(u64::MAX, |gap| gap.at)
    }

    /// Counts a page or a record that could not be decoded.
    pub(crate) fn damage(&mut self) {
        self.summary.damaged += 1;
        self.expect_gap(None, self.last, 1);
    }

    /// Ends the packet and counts the gaps that lie before an event of this stamp.
    fn close_gaps<S: Sink>(&mut self, stamp: u64, sink: &mut S) -> Result<(), S::Error> {
        let ended = self.end_packet(sink);
        let behind = self.gaps.partition_point(|gap| gap.at <= stamp);
        let closed = self.gaps.drain(..behind).map(|gap| (gap.begin.unwrap_or(self.last), gap.events));
        if let Some((begin, events)) = closed.reduce(|a, b| (a.0.min(b.0), a.1.saturating_add(b.1))) {
            self.lose(LossRange { begin: begin.min(stamp), end: stamp, events });
        }
        ended
    }

    fn lose(&mut self, range: LossRange) {
        self.discarded = self.discarded.saturating_add(range.events);
        self.summary.losses.add(range);
    }

    /// Ends the packet, if there is an event in it.
    pub(crate) fn end_packet<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        if self.pending > 0 { self.write(sink) } else { Ok(()) }
    }

    /// Ends the stream at the time `now`: what is lost at its end is told by a packet without events.
    pub(crate) fn finish<S: Sink>(&mut self, now: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut written = self.end_packet(sink);
        if let Some(gap) = self.gaps.last() {
            let now = now.max(self.last).max(gap.at);
            written = written.and(self.close_gaps(now, sink));
            (self.begin, self.last) = (now, now);
            written = written.and(self.write(sink));
        }
        written
    }

    fn write<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        let bytes = self.out.len() as u64;
        let header = PacketHeader {
            uuid: self.uuid,
            stream_id: 0,
            stream_instance_id: u64::from(self.summary.cpu),
            begin: self.begin,
            end: self.last,
            content_bytes: bytes,
            packet_bytes: bytes,
            seq: self.summary.packets,
            discarded: self.discarded,
            cpu: self.summary.cpu,
        };
        self.out[..PACKET_HEADER_SIZE].copy_from_slice(&header.encode());
        let entry = Entry {
            offset: 0,
            packet_bits: bytes * 8,
            content_bits: bytes * 8,
            begin: header.begin,
            end: header.end,
            discarded: header.discarded,
            stream_id: 0,
            stream_instance_id: Some(header.stream_instance_id),
            seq: Some(header.seq),
        };
        let result = sink.packet(self.summary.cpu, &Packet { bytes: &self.out, entry });
        let events = std::mem::take(&mut self.pending);
        match result {
            Ok(()) => {
                self.summary.events += events;
                self.summary.packets += 1;
                self.summary.bytes += bytes;
            }
            Err(_) => self.lose(LossRange { begin: self.begin, end: self.last, events }),
        }
        self.out.truncate(PACKET_HEADER_SIZE);
        result
    }
}

#[cfg(test)]
mod tests;
