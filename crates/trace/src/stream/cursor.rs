//! One data stream: its packets by time across its files, their events, and the losses between them.
//!
//! Packets are read one at a time, large ones in parts.

mod item;
mod lane;
mod losses;
mod place;
mod resume;

pub(crate) use item::{Item, Totals};
pub use item::{Lost, LostKind};
pub(crate) use lane::{Lane, Way};
pub(crate) use place::Place;
pub(crate) use resume::Stop;

pub(crate) use crate::stream::packet::{Counter, PacketHead};

use crate::stream::file::StreamFile;
use crate::stream::packet::{PacketFile, PacketReader};
use crate::time::clock::Clock;
use crate::time::stamp::Stamp;
use crate::{Error, StreamFault};
use resume::Mark;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Event, Record, Step, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_units::{Cycles, Timestamp};

/// An item that was fetched ahead, and comes next.
#[derive(Debug, Default)]
enum Ahead {
    #[default]
    No,
    /// The event where the reader stands.
    Event,
    Failed(Box<Error>),
}

/// Reads a data stream to its end.
#[derive(Debug)]
pub(crate) struct StreamCursor {
    /// Those that have not ended.
    files: Vec<PacketFile>,
    /// Whether there were several files.
    joined: bool,
    /// The file whose packet is being decoded.
    current: Option<usize>,
    /// Events before it are passed over, in nanoseconds since the clock's origin.
    from: Timestamp,
    previous: Option<PacketHead>,
    pending: VecDeque<Lost>,
    /// How many of these no packet reports; they come before the others.
    uncounted: usize,
    /// Losses that no packet reports, by the times at which they begin.
    apart: VecDeque<Lost>,
    clock: Option<Clock>,
    stamp: Option<Stamp>,
    /// Up to when the packets so far reach: see [`PacketIndex`](crate::stream::packet_index::PacketIndex).
    reach: Timestamp,
    ahead: Ahead,
    totals: Totals,
    /// What [`StreamCursor::stop`] has to know.
    mark: Mark,
}

impl StreamCursor {
    /// Reads from `from` on what the files have, in the order of their first packets. Packets before `first`
    /// are not looked at; with [`Timestamp::MIN`] all are.
    pub(crate) fn new(
        decoder: &Arc<Decoder>,
        files: &[StreamFile],
        first: Timestamp,
        from: Timestamp,
    ) -> Self {
        let mut cursor = StreamCursor::at_begin(decoder, files, from);
        for (packets, file) in cursor.files.iter_mut().zip(files) {
            file.seek(packets, first);
        }
        cursor
    }

    /// The same, with losses that no packet reports, except those that end before the data that are read.
    /// They come before the first packet that does not begin before them, and after all packets if there is
    /// none.
    pub(crate) fn losing(mut self, lost: &[Lost]) -> Self {
        let is_over = |lost: &&Lost| lost.range.is_some_and(|(_, end)| end < self.from);
        self.apart = lost.iter().filter(|lost| !is_over(lost)).copied().collect();
        let begin = |lost: &Lost| lost.range.map_or(Timestamp::MAX, |(begin, _)| begin);
        self.apart.make_contiguous().sort_by_key(begin);
        self
    }

    /// The same, but all packets are looked at.
    pub(crate) fn at_begin(decoder: &Arc<Decoder>, files: &[StreamFile], from: Timestamp) -> Self {
        StreamCursor {
            joined: files.len() > 1,
            files: files.iter().map(|file| file.packets(decoder)).collect(),
            current: None,
            from,
            previous: None,
            pending: VecDeque::new(),
            uncounted: 0,
            apart: VecDeque::new(),
            clock: None,
            stamp: None,
            reach: Timestamp::MIN,
            ahead: Ahead::No,
            totals: Totals::default(),
            mark: Mark::default(),
        }
    }

    /// Advances to the next item; `None` at the end of the stream.
    pub(crate) fn advance(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(lost) = self.pending.pop_front() {
                self.mark.item();
                return Ok(Some(Item::Lost(lost)));
            }
            let Some(current) = self.current else {
                if !self.next_packet()? {
                    return Ok(self.apart.pop_front().map(Item::Lost));
                }
                continue;
            };
            let step = match std::mem::take(&mut self.ahead) {
                Ahead::No => self.files[current].step(),
                Ahead::Event => Ok(Step::Event),
                Ahead::Failed(error) => Err(*error),
            };
            match step? {
                Step::Event => {
                    self.stamp = self.clock_stamp(current)?;
                    if self.stamp.is_none_or(|stamp| stamp.time >= self.from) {
                        self.mark.item();
                        return Ok(Some(Item::Event(self.stamp)));
                    }
                }
                Step::Packet => {}
                Step::PacketEnd | Step::End => self.leave_packet(current),
            }
        }
    }

    /// Begins the next packet, for callers that process whole packets; false at the end of the stream.
    /// [`StreamCursor::losses`] contains the losses before it.
    pub(crate) fn begin_packet(&mut self) -> Result<bool, Error> {
        if let Some(current) = self.current.take() {
            self.files[current].leave_packet();
        }
        self.pending.clear();
        self.next_packet()
    }

    /// Advances to the next event of the current packet; false at the packet's end.
    pub(crate) fn step(&mut self) -> Result<bool, Error> {
        let Some(current) = self.current else { return Ok(false) };
        while self.files[current].step()? == Step::Event {
            self.stamp = self.clock_stamp(current)?;
            if self.stamp.is_none_or(|stamp| stamp.time >= self.from) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The reader of the packet that was begun, and the packet's file.
    pub(crate) fn reader(&self) -> Option<(&PacketReader, &Path)> {
        let file = &self.files[self.current?];
        Some((file.reader()?, file.path()))
    }

    /// What the header of the packet that was begun says.
    pub(crate) fn head(&self) -> Option<&PacketHead> {
        self.previous.as_ref()
    }

    /// Whether the packet that was begun, and so those that follow, begin after a time, as far as is known.
    pub(crate) fn is_after(&self, time: Timestamp) -> bool {
        self.head().and_then(|head| head.begin_ns).is_none_or(|begin| begin > time)
    }

    /// The clock of the packet that was begun.
    pub(crate) fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// What was lost before the packet that was begun.
    pub(crate) fn losses(&self) -> impl Iterator<Item = &Lost> {
        self.pending.iter()
    }

    /// What its counters show of that, for callers that process whole packets.
    pub(crate) fn counted_losses(&self) -> impl Iterator<Item = &Lost> {
        self.pending.iter().skip(self.uncounted)
    }

    /// Advances to the next event and returns its time, in nanoseconds since the clock's origin, if it is in
    /// the same packet and has a stamp. Otherwise [`StreamCursor::advance`] returns the next item.
    #[inline]
    pub(crate) fn advance_fast(&mut self) -> Option<Timestamp> {
        let current = self.current.filter(|_| self.pending.is_empty())?;
        let cycles = self.files[current].step_fast().or_else(|| self.comes_to_event(current))?;
        match self.time(cycles) {
            Some(time) if time >= self.from => {
                self.stamp = Some(Stamp { cycles, time });
                self.mark.item();
                Some(time)
            }
            _ => {
                self.ahead = Ahead::Event;
                None
            }
        }
    }

    /// Shows the rest of the current packet's events to `each`, whatever their stamps.
    #[inline]
    pub(crate) fn for_each_in_packet(&mut self, each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let Some(current) = self.current else { return Ok(()) };
        self.files[current].for_each(each)?;
        self.leave_packet(current);
        Ok(())
    }

    /// Goes into the next packet if in none; false at the end of the stream. What was lost before it, or
    /// there, is shown to `lost`.
    pub(crate) fn enter_packet(&mut self, mut lost: impl FnMut(Lost)) -> Result<bool, Error> {
        let there = self.current.is_some() || self.next_packet()?;
        if !there {
            self.pending.append(&mut self.apart);
        }
        self.pending.drain(..).for_each(&mut lost);
        Ok(there)
    }

    /// If the next step comes to an event: the value of its clock, which means nothing in a stream without
    /// one.
    #[inline(never)]
    fn comes_to_event(&mut self, current: usize) -> Option<Cycles> {
        match self.files[current].step() {
            Ok(Step::Event) => return self.files[current].clock_value(),
            Ok(Step::Packet) => {}
            Ok(Step::PacketEnd | Step::End) => self.leave_packet(current),
            Err(error) => self.ahead = Ahead::Failed(Box::new(error)),
        }
        None
    }

    fn leave_packet(&mut self, current: usize) {
        self.files[current].leave_packet();
        self.current = None;
    }

    #[inline]
    fn clock_stamp(&self, current: usize) -> Result<Option<Stamp>, Error> {
        let Some(clock) = &self.clock else { return Ok(None) };
        let file = &self.files[current];
        let Some(cycles) = file.clock_value() else { return Ok(None) };
        match clock.time(cycles) {
            Some(time) => Ok(Some(Stamp { cycles, time })),
            None => Err(outside(file, cycles)),
        }
    }

    /// Begins the next packet in time, and notes what was lost before it; false at the end of the stream.
    fn next_packet(&mut self) -> Result<bool, Error> {
        loop {
            let Some((file, head)) = self.earliest()? else { return Ok(false) };
            // Overlapping snapshots have the same packet twice.
            if self.joined && self.previous.as_ref() == Some(&head) {
                self.files[file].leave_packet();
                continue;
            }
            // Losses before such a packet are also before the requested range.
            if self.files[file].is_passed_over() {
                self.previous = Some(head);
                self.files[file].leave_packet();
                continue;
            }
            self.note_late_events(file, &head);
            self.note_apart(&head);
            self.note_losses(&head);
            self.mark.packet(self.previous, self.files[file].clock_set_by_packets().is_some());
            self.previous = Some(head);
            self.totals.packet(&head);
            self.files[file].enter_packet()?;
            self.clock = self.files[file].clock();
            self.current = Some(file);
            return Ok(true);
        }
    }

    /// The file whose next packet begins first. Files are sorted by their first packets.
    fn earliest(&mut self) -> Result<Option<(usize, PacketHead)>, Error> {
        let mut earliest: Option<(usize, PacketHead)> = None;
        let mut at = 0;
        while at < self.files.len() {
            match self.files[at].head()? {
                None => {
                    let ended = self.files.remove(at);
                    self.mark.ended(&ended);
                    continue;
                }
                Some(head) => {
                    if earliest.as_ref().is_none_or(|(_, first)| head.begin_ns < first.begin_ns) {
                        earliest = Some((at, head));
                    }
                }
            }
            at += 1;
        }
        if let Some((chosen, _)) = earliest
            && self.files.len() > 1
        {
            let others = self.files.iter_mut().enumerate().filter(|(at, _)| *at != chosen);
            others.for_each(|(_, file)| file.rest());
        }
        Ok(earliest)
    }

    /// The event that the last step gave.
    #[inline(always)]
    pub(crate) fn event(&self) -> Event<'_> {
        self.files[self.current.unwrap_or(0)].event()
    }

    /// Its class and its bytes: see [`Event::class_index`] and [`Event::record`].
    #[inline]
    pub(crate) fn record(&self) -> (usize, Option<Record<'_>>) {
        self.files[self.current.unwrap_or(0)].record()
    }

    /// When a stamp is, by the clock of the latest packet.
    #[inline]
    pub(crate) fn time(&self, cycles: Cycles) -> Option<Timestamp> {
        self.clock.as_ref()?.time(cycles)
    }

    #[inline]
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Shows the members of the current packet's context.
    pub(crate) fn visit_packet_context(&self, visitor: &mut impl Visitor) {
        if let Some(current) = self.current {
            self.files[current].visit_packet(Scope::PacketContext, visitor);
        }
    }

    /// A number that differs from packet to packet.
    pub(crate) fn packet_serial(&self) -> u64 {
        self.totals.packets
    }

    /// The current packet's CPU.
    pub(crate) fn cpu(&self) -> Option<u64> {
        self.previous.and_then(|packet| packet.cpu)
    }

    /// What was there so far.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }
}

#[cold]
fn outside(file: &PacketFile, cycles: Cycles) -> Error {
    file.error(StreamFault::EventStamp(cycles))
}
