//! Writes the packets of a stream anew.

use super::losses::PacketNumbers;
use super::{Converted, Run};
use crate::Error;
use crate::merge::event::EventRef;
use crate::open::recording::Stream;
use crate::rewrite::names::{explains, names_lwp, names_task};
use crate::rewrite::naming::Spot;
use crate::select::decisions::StreamDecisions;
use crate::select::selection::Selection;
use crate::stream::cursor::{Lost, LostKind, StreamCursor};
use crate::time::range::TimeRange;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Packet};
use tracewing_ctf::encode::{PacketEnd, PacketStart, StreamWriter};
use tracewing_ctf::model::DataStreamClass;
use tracewing_files::Dir;
use tracewing_units::{Cycles, Timestamp};

/// By event record class: whether its events explain others, and whether they name threads.
struct Always {
    explains: Vec<bool>,
    names: Vec<bool>,
}

impl Always {
    fn has(&self, class: usize) -> bool {
        self.explains[class] || self.names[class]
    }
}

/// A data stream that is being written.
struct StreamCopy<'p> {
    /// Its place in the recording.
    at: usize,
    stream: &'p Stream,
    always: Always,
    writer: StreamWriter,
    file: File,
    path: &'p Path,
    losses: PacketNumbers,
}

/// Which events of a stream are written.
struct Choice<'d> {
    decisions: StreamDecisions<'d>,
    /// Of the next event of the range.
    index: usize,
}

/// Where a packet lies.
#[derive(PartialEq, Eq)]
enum Side {
    Before,
    Within,
    After,
}

/// The writing of a stream.
pub(super) struct StreamRun<'w> {
    pub(super) run: &'w Run<'w>,
    pub(super) converted: Converted,
    /// Called with the bytes of the packets that are done; may end it.
    pub(super) done: &'w mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl StreamRun<'_> {
    /// Writes a stream. Returns its file, and the losses that its packets do not report.
    pub(super) fn stream(
        &mut self,
        at: usize,
        stream: &Stream,
        classes: &Arc<Decoder>,
        folder: &Dir,
        name: &OsStr,
    ) -> Result<Option<(File, Vec<Lost>)>, Error> {
        let path = &folder.path().join(name);
        let streams = &classes.trace_class().data_stream_classes;
        let Some(class) = streams.iter().position(|class| class.id == stream.class_id()) else {
            return Ok(None);
        };
        let writer = StreamWriter::new(classes.clone(), class);
        let file = folder.create_file(name).map_err(Error::io(path))?;
        let (always, losses) = (self.always(&streams[class]), PacketNumbers::new(self.run.range));
        let mut copy = StreamCopy { at, stream, always, writer, file, path, losses };
        let recording = self.run.recording;
        let mut selection = Selection::new(self.run.filter, recording)?;
        let decisions = self.run.decisions.of_stream(at, recording, &mut selection);
        let mut choice = Choice { decisions, index: 0 };
        self.packets(&mut choice, &mut copy)?;
        if !copy.losses.has_packets() {
            // Readers know of the stream by a packet of it. PacketNumbers have been looked at.
            let mut first = recording.cursor(stream, Timestamp::MIN);
            if first.enter_packet(|_| {})? {
                self.packet(&mut first, false, &mut choice, &mut copy)?;
            }
        }
        Ok(Some((copy.file, copy.losses.declared)))
    }

    fn is_done(&mut self, bytes: u64) -> Result<(), Error> {
        if (self.done)(bytes).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Writes the packets of a stream that lie in the range.
    fn packets(&mut self, choice: &mut Choice<'_>, copy: &mut StreamCopy<'_>) -> Result<(), Error> {
        let (recording, from) = (self.run.recording, self.run.range.begin);
        let read_from = match self.run.naming.has_late() {
            true => Some(Timestamp::MIN),
            false => self.run.decisions.read_from(),
        };
        let mut cursor = recording.cursor_over(copy.stream, read_from.unwrap_or(from), from);
        while cursor.begin_packet()? {
            let has_event = cursor.step()?;
            let side = self.side(&cursor, has_event);
            let is_over = match side {
                // As where a window is read: no packet after this one comes into the range again.
                Side::Within => {
                    self.packet(&mut cursor, has_event, choice, copy)? && cursor.is_after(self.run.range.end)
                }
                Side::Before | Side::After => {
                    copy.losses.skip(&cursor, &mut self.converted);
                    side == Side::After
                }
            };
            if is_over {
                break;
            }
            self.is_done(cursor.head().map_or(0, |head| head.bytes))?;
        }
        Ok(())
    }

    /// Where the begun packet lies. Its first event in the range counts, if there is one, since some tracers
    /// stamp events before or after their packet.
    fn side(&self, cursor: &StreamCursor, has_event: bool) -> Side {
        let Some(head) = cursor.head() else { return Side::Within };
        let is_in_range = has_event && cursor.stamp().is_none_or(|stamp| stamp.time <= self.run.range.end);
        let is_after = match has_event {
            true => cursor.is_after(self.run.range.end),
            false => head.begin_ns > Some(self.run.range.end),
        };
        if !is_in_range && is_after {
            Side::After
        } else if !has_event && head.end_ns.is_some_and(|end| end < self.run.range.begin) {
            Side::Before
        } else {
            Side::Within
        }
    }

    /// Writes the begun packet; `has_event` if its cursor is at an event. Returns whether it has events after
    /// the range.
    fn packet(
        &mut self,
        cursor: &mut StreamCursor,
        mut has_event: bool,
        choice: &mut Choice<'_>,
        copy: &mut StreamCopy<'_>,
    ) -> Result<bool, Error> {
        let (recording, at) = (self.run.recording, copy.at);
        let Some(head) = cursor.head().copied() else { return Ok(false) };
        let explained = match copy.losses.has_packets() {
            true => None,
            false => self.explain(head.sequence.map(|number| number.value), copy)?,
        };
        let Some((reader, path)) = cursor.reader() else { return Ok(false) };
        let (packet, path) = (reader.packet(), path.to_owned());
        let failed = |error| Error::ctf(&path)(error);
        let (begin, end) = self.clipped(cursor, packet);
        let seq = copy.losses.packet(cursor, &head, &mut self.converted);
        let stream_instance_id = packet.stream_instance_id;
        let start = PacketStart { stream_instance_id, begin: begin.max(explained), seq };
        copy.writer.begin_packet(&start, reader).map_err(failed)?;
        let mut goes_beyond = false;
        while has_event {
            let event = EventRef::new(recording, cursor, at);
            if event.stamp().is_some_and(|stamp| stamp.time > self.run.range.end) {
                goes_beyond = true;
            } else {
                let decoded = event.decoded();
                let class = decoded.class_index();
                let is_selected = choice.decisions.takes(&decoded);
                self.converted.chosen += u64::from(is_selected);
                let named = self.run.naming.has(&Spot { stream: at, early: false, index: choice.index });
                choice.index += 1;
                if is_selected || copy.always.has(class) || named {
                    copy.writer.event(class, decoded.clock_value(), &decoded).map_err(failed)?;
                    self.converted.events += 1;
                }
            }
            has_event = cursor.step()?;
        }
        let end = PacketEnd { end, discarded: copy.losses.discarded(), least_bytes: 0 };
        copy.writer.end_packet(&end).map_err(failed)?;
        self.converted.write(copy)?;
        Ok(goes_beyond)
    }

    /// Begin and end stamps of a packet within the range.
    fn clipped(&self, cursor: &StreamCursor, packet: &Packet) -> (Option<Cycles>, Option<Cycles>) {
        let (begin, end) = (packet.begin, packet.end);
        let Some(clock) = cursor.clock().filter(|_| self.run.range != TimeRange::ALL) else {
            return (begin, end);
        };
        let (first, last) = (clock.first_cycle(self.run.range.begin), clock.last_cycle(self.run.range.end));
        let inside = |stamp: Cycles| stamp.min(last).max(first);
        // One that was left open by a crash stays so.
        let is_open = end < begin;
        (begin.map(inside), end.map(|end| if is_open { end } else { inside(end) }))
    }

    /// The classes of a stream whose events are written whether or not they are selected.
    fn always(&self, stream: &DataStreamClass) -> Always {
        let classes = || stream.event_record_classes.iter();
        // Where certain ones are selected, those of others are not.
        let all = self.run.explained && !self.run.selection.chooses_subjects();
        Always {
            explains: classes().map(|class| self.run.explained && explains(class)).collect(),
            names: classes().map(|class| all && (names_task(class) || names_lwp(class))).collect(),
        }
    }

    /// Puts the events of a stream that give names and lie before the range into a packet before number
    /// `seq`. Returns the stamp of the last one, in cycles. Damaged parts are left out.
    fn explain(&mut self, seq: Option<u64>, copy: &mut StreamCopy<'_>) -> Result<Option<Cycles>, Error> {
        let (recording, at, stream) = (self.run.recording, copy.at, copy.stream);
        let explains = copy.always.explains.contains(&true) || self.run.naming.is_early_in(at);
        if self.run.range.begin == Timestamp::MIN || !explains {
            return Ok(None);
        }
        let StreamCopy { always: Always { explains, .. }, writer, .. } = copy;
        let mut cursor = recording.cursor(stream, Timestamp::MIN);
        let mut last = None;
        let mut index = 0;
        while let Ok(true) = cursor.begin_packet() {
            if cursor.head().is_some_and(|head| head.begin_ns >= Some(self.run.range.begin)) {
                break;
            }
            while let Ok(true) = cursor.step() {
                let event = EventRef::new(recording, &cursor, at);
                let (decoded, Some((reader, from))) = (event.decoded(), cursor.reader()) else { break };
                if event.stamp().is_none_or(|stamp| stamp.time >= self.run.range.begin) {
                    continue;
                }
                let named = self.run.naming.has(&Spot { stream: at, early: true, index });
                index += 1;
                if !explains[decoded.class_index()] && !named {
                    continue;
                }
                let failed = |error| Error::ctf(from)(error);
                if last.is_none() {
                    let start = PacketStart {
                        stream_instance_id: reader.packet().stream_instance_id,
                        begin: decoded.clock_value(),
                        seq: seq.or(reader.packet().seq).map(|seq| seq.saturating_sub(1)),
                    };
                    writer.begin_packet(&start, reader).map_err(failed)?;
                }
                writer.event(decoded.class_index(), decoded.clock_value(), &decoded).map_err(failed)?;
                self.converted.events += 1;
                last = decoded.clock_value();
            }
            self.is_done(0)?;
        }
        if last.is_some() {
            let end = PacketEnd { end: last, discarded: 0, least_bytes: 0 };
            writer.end_packet(&end).map_err(Error::ctf(Path::new(stream.name())))?;
            copy.losses.explain();
            self.converted.write(copy)?;
        }
        Ok(last)
    }
}

impl Converted {
    /// Writes the packet that has ended, if there is one.
    fn write(&mut self, copy: &mut StreamCopy<'_>) -> Result<(), Error> {
        let StreamCopy { writer, file, path, .. } = copy;
        if !writer.bytes().is_empty() {
            file.write_all(writer.bytes()).map_err(Error::io(path))?;
            self.packets += 1;
            self.bytes += writer.bytes().len() as u64;
            writer.clear();
        }
        Ok(())
    }

    pub(super) fn note(&mut self, lost: &Lost) {
        match (lost.kind, lost.count) {
            (LostKind::Events, Some(count)) => self.lost_events += count,
            (LostKind::Packets, Some(count)) => self.lost_packets += count,
            (_, None) => self.unknown_losses += 1,
        }
    }
}
