//! Converts one CPU's raw pages into CTF packets.
//!
//! Leaves to others where pages come from ([`crate::reader`]) and where packets go ([`crate::folder`]).
//!
//! Losses. In discard mode, when its buffer is full the kernel drops what comes and counts it, until pages
//! are read. So all that was dropped before a drain happened between the last event that was in the buffer
//! and the drain's begin, and the boundary is found by time: the first event stamped at or after the drain's
//! begin comes after the gap. There the packet is ended, and the next one carries the count in
//! `events_discarded`. In overwrite mode, pages on which the kernel says that events before them were
//! overwritten are a gap at their own begin.

use crate::class::{Class, Program};
use crate::losses::{LossRange, Losses};
use crate::page::Page;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use tracewing_ctf::write::PACKET_HEADER_SIZE;
use tracewing_streams::{Gathered, PacketTimes};
use tracewing_units::{Cpu, Cycles, Pid, Tid};
use tracewing_vocabulary::kernel::Exec;

/// Bytes of events at which a packet is ended.
const ENOUGH: usize = 256 * 1024 - PACKET_HEADER_SIZE;
/// Class id in [`Programs`] of events that were not chosen.
const NONE: u16 = u16::MAX;

/// The most paths that are kept.
const MOST_EXECUTED: usize = 10_000;

/// The programs of all chosen events, found by the kernel's event number.
#[derive(Debug)]
pub(crate) struct Programs {
    by_kernel_id: Vec<u16>,
    programs: Vec<Program>,
    /// Of which there was an event.
    seen: Vec<Cell<bool>>,
    /// That of [`Exec::NAME`], if it was chosen.
    exec: u16,
    executed: RefCell<Executed>,
}

/// Files that were executed.
#[derive(Debug, Default)]
struct Executed {
    all: HashSet<Vec<u8>>,
    /// Files that were not returned yet, with the process.
    new: Vec<(Pid, PathBuf)>,
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
        let is_exec = |class: &Class| class.record.name.as_deref() == Some(Exec::NAME);
        let exec = classes.iter().position(is_exec).map_or(NONE, |id| id as u16);
        let seen = vec![Cell::new(false); classes.len()];
        Self { by_kernel_id, programs, seen, exec, executed: RefCell::default() }
    }

    /// Files that were executed since the last call, each returned once, and by which process.
    pub(crate) fn executed(&self) -> Vec<(Pid, PathBuf)> {
        std::mem::take(&mut self.executed.borrow_mut().new)
    }

    #[cold]
    fn note_executed(&self, program: &Program, record: &[u8]) {
        let Some((tid, path)) = program.tid(record).zip(program.text(record)) else { return };
        let Executed { all, new } = &mut *self.executed.borrow_mut();
        if all.len() < MOST_EXECUTED && !all.contains(path) {
            all.insert(path.to_owned());
            // A program has only the first thread then.
            new.push((tid.as_process(), OsStr::from_bytes(path).into()));
        }
    }

    /// The thread that has recorded an event.
    pub(crate) fn tid(&self, record: &[u8]) -> Option<Tid> {
        self.find(record).and_then(|(_, program)| program.tid(record))
    }

    /// Whether an event of this class was converted.
    pub(crate) fn has_seen(&self, id: usize) -> bool {
        self.seen.get(id).is_some_and(Cell::get)
    }

    #[inline]
    fn find(&self, record: &[u8]) -> Option<(u16, &Program)> {
        let kernel_id = u16::from_ne_bytes(*record.first_chunk()?);
        let id = *self.by_kernel_id.get(usize::from(kernel_id))?;
        Some((id, self.programs.get(usize::from(id))?))
    }
}

pub(crate) trait Sink {
    /// Why it could not.
    type Error;
    /// Takes the events of one. After an error the packet must have left no trace.
    fn packet(&mut self, cpu: Cpu, events: &[u8], times: PacketTimes) -> Result<(), Self::Error>;
}

/// Events that are lost somewhere ahead of an event that is still to come.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Where it begins at the earliest, if not at the last event before it.
    begin: Option<Cycles>,
    /// The first event stamped so or later comes after it.
    at: Cycles,
    events: u64,
}

/// What a stream has come to so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSummary {
    /// The CPU whose buffer the stream is written from.
    pub cpu: Cpu,
    /// Events that its packets contain.
    pub events: u64,
    /// Those of them that repeat the state at the beginning of a trace that continues another one.
    pub dumped: u64,
    /// Number of packets in its file.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// When events were lost, and how many.
    pub losses: Losses,
    /// Events from before the first one that is here, which a flight recorder's buffer no longer holds.
    pub overwritten: Option<LossRange>,
    /// Records of kinds that were not chosen (another process enabled them in the instance); left out.
    pub foreign: u64,
    /// Pages or records that could not be decoded; each adds one lost event at least.
    pub damaged: u64,
}

impl StreamSummary {
    fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            events: 0,
            dumped: 0,
            packets: 0,
            bytes: 0,
            losses: Losses::default(),
            overwritten: None,
            foreign: 0,
            damaged: 0,
        }
    }
}

/// One CPU's conversion.
#[derive(Debug)]
pub(crate) struct Stream {
    summary: StreamSummary,
    gathered: Gathered,
    discarded: u64,
    /// In order of `at`.
    gaps: Vec<Gap>,
    /// Later events of the kernel's are left out.
    until: Cycles,
    /// When the trace before this one ended, if this one continues it.
    continued: Option<Cycles>,
}

impl Stream {
    pub(crate) fn new(cpu: Cpu) -> Self {
        Self {
            summary: StreamSummary::new(cpu),
            gathered: Gathered::new(ENOUGH),
            discarded: 0,
            gaps: Vec::new(),
            until: Cycles::MAX,
            continued: None,
        }
    }

    /// Leaves out what the kernel recorded later.
    pub(crate) fn up_to(self, until: Cycles) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn summary(&self) -> &StreamSummary {
        &self.summary
    }

    /// Stamp of the last event, 0 before the first.
    pub(crate) fn last(&self) -> Cycles {
        self.gathered.last()
    }

    /// Events lost so far, including those whose place in the stream is not known yet.
    pub(crate) fn lost(&self) -> u64 {
        self.gaps.iter().fold(self.summary.losses.events, |sum, gap| sum.saturating_add(gap.events))
    }

    /// Converts a page. If a packet cannot be written, its events are counted as lost and the conversion
    /// continues; the first such error is returned.
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
            if record.stamp > self.until {
                break;
            }
            if record.stamp >= gap_at {
                written = written.and(self.close_gaps(record.stamp, sink));
                gap_at = self.next_gap();
            }
            match programs.find(record.data) {
                None => self.summary.foreign += 1,
                Some((id, program)) => {
                    programs.seen[usize::from(id)].set(true);
                    if id == programs.exec {
                        programs.note_executed(program, record.data);
                    }
                    if !self.gathered.append(record.stamp, id, |out| program.run(record.data, out)) {
                        self.damage();
                        gap_at = self.next_gap();
                    }
                    if self.gathered.is_enough() {
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
        stamp: Cycles,
        id: u16,
        body: &[u8],
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let closed = if stamp >= self.next_gap() { self.close_gaps(stamp, sink) } else { Ok(()) };
        self.gathered.append(stamp, id, |out| {
            out.extend_from_slice(body);
            true
        });
        closed.and(if self.gathered.is_enough() { self.end_packet(sink) } else { Ok(()) })
    }

    /// Announces `events` lost between `begin` (or the last event) and the first event stamped `at` or later.
    pub(crate) fn expect_gap(&mut self, begin: Option<Cycles>, at: Cycles, events: u64) {
        if events == 0 || begin.is_some_and(|begin| begin > self.until) {
            return;
        }
        let at = at.min(self.until);
        match self.gaps.last_mut() {
            Some(gap) if (gap.begin, gap.at) == (begin, at) => gap.events = gap.events.saturating_add(events),
            _ => {
                let place = self.gaps.partition_point(|gap| gap.at <= at);
                self.gaps.insert(place, Gap { begin, at, events });
            }
        }
    }

    /// The stamp from which on an event lies after a gap.
    fn next_gap(&self) -> Cycles {
        self.gaps.first().map_or(Cycles::MAX, |gap| gap.at)
    }

    /// Counts a page or a record that could not be decoded.
    pub(crate) fn damage(&mut self) {
        self.summary.damaged += 1;
        self.expect_gap(None, self.last(), 1);
    }

    /// Ends the packet and counts the gaps that lie before an event of this stamp.
    fn close_gaps<S: Sink>(&mut self, stamp: Cycles, sink: &mut S) -> Result<(), S::Error> {
        let ended = self.end_packet(sink);
        let passed = self.gaps.partition_point(|gap| gap.at <= stamp);
        let last = self.gathered.last();
        let closed = self.gaps.drain(..passed).map(|gap| (gap.begin.unwrap_or(last), gap.events));
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
        if self.gathered.is_empty() {
            return Ok(());
        }
        let begun = self.begin_continued(sink);
        let (bytes, times) = self.gathered.packet(self.discarded);
        let (len, written) = (bytes.len(), begun.and_then(|()| sink.packet(self.summary.cpu, bytes, times)));
        let events = self.gathered.clear();
        match written {
            Ok(()) => self.count_packet(len, events),
            Err(_) => self.lose(LossRange { begin: times.begin, end: times.end, events }),
        }
        written
    }

    /// Ends the stream at the time `now`: a packet without events reports what is lost at its end.
    pub(crate) fn finish<S: Sink>(&mut self, now: Cycles, sink: &mut S) -> Result<(), S::Error> {
        let mut written = self.end_packet(sink);
        if let Some(gap) = self.gaps.last() {
            let now = now.max(self.last()).max(gap.at);
            written = written.and(self.close_gaps(now, sink));
            let empty = sink.packet(self.summary.cpu, &[], PacketTimes::empty(now, self.discarded, 0));
            written = written.and(empty.map(|()| self.count_packet(0, 0)));
        }
        written
    }

    /// Readers compare the losses of a packet with those of the previous one: in a trace that continues
    /// another one, losses before its first event need a packet before them.
    fn begin_continued<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        match self.continued {
            Some(at) if self.summary.packets == 0 && self.discarded > 0 => {
                sink.packet(self.summary.cpu, &[], PacketTimes::empty(at, 0, 0))?;
                self.count_packet(0, 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the stream in this trace; the next packet is the first one in the trace that continues it. All
    /// that the kernel had recorded when the gap before the next event was found must have been taken, so
    /// nothing that is still to come is earlier, and the gap is part of this trace. A gap that may have
    /// events on both sides is part of the next one.
    ///
    /// # Errors
    /// As [`Stream::end_packet`].
    pub(crate) fn cut<S: Sink>(&mut self, sink: &mut S) -> (StreamSummary, Result<(), S::Error>) {
        let mut written = self.end_packet(sink);
        let last = self.gathered.last();
        let mut end = last;
        let before: Vec<Gap> = self.gaps.extract_if(.., |gap| gap.begin.is_none()).collect();
        for gap in &before {
            end = end.max(gap.at);
            self.lose(LossRange { begin: last, end: gap.at.max(last), events: gap.events });
        }
        if !before.is_empty() {
            let empty = PacketTimes::empty(end, self.discarded, 0);
            let begun = self.begin_continued(sink);
            let told = begun.and_then(|()| sink.packet(self.summary.cpu, &[], empty));
            written = written.and(told.map(|()| self.count_packet(0, 0)));
        }
        let next = StreamSummary::new(self.summary.cpu);
        (self.discarded, self.continued) = (0, Some(end));
        (std::mem::replace(&mut self.summary, next), written)
    }

    /// The end of the stream in the trace that this one continues; 0 if there is none.
    pub(crate) fn continued(&self) -> Cycles {
        self.continued.unwrap_or(Cycles::ZERO)
    }

    /// Counts an event of a state dump that repeats what earlier traces say.
    pub(crate) fn count_dumped(&mut self) {
        self.summary.dumped += 1;
    }

    fn count_packet(&mut self, bytes: usize, events: u64) {
        self.summary.events += events;
        self.summary.packets += 1;
        self.summary.bytes += (PACKET_HEADER_SIZE + bytes) as u64;
    }
}

#[cfg(test)]
mod tests;
