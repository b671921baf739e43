//! Writes the packets of a stream anew.

use super::{Converted, Run};
use crate::Error;
use crate::merge::event::EventRef;
use crate::open::recording::Stream;
use crate::rewrite::names::{explains, names_lwp, names_task};
use crate::rewrite::naming::Spot;
use crate::stream::cursor::{Lost, LostKind, StreamCursor};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::decode::Decoder;
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
    always: Always,
    writer: StreamWriter,
    file: File,
    path: &'p Path,
}

impl Run<'_> {
    pub(super) fn stream(
        &mut self,
        at: usize,
        stream: &Stream,
        classes: &Arc<Decoder>,
        folder: &Dir,
        name: &OsStr,
    ) -> Result<Option<File>, Error> {
        let path = &folder.path().join(name);
        let streams = &classes.trace_class().data_stream_classes;
        let Some(class) = streams.iter().position(|class| class.id == stream.class_id()) else {
            return Ok(None);
        };
        let writer = StreamWriter::new(classes.clone(), class);
        let file = folder.create_file(name).map_err(Error::io(path))?;
        let mut copy = StreamCopy { at, always: self.always(&streams[class]), writer, file, path };
        let mut cursor = self.recording.cursor(stream, self.range.begin);
        let has_packet = cursor.begin_packet()?;
        let seq = cursor.reader().and_then(|(reader, _)| reader.packet().seq);
        // Up to when packets have been written.
        let mut written = None;
        let explains = copy.always.explains.contains(&true) || self.naming.is_early_in(at);
        if self.range.begin != Timestamp::MIN && explains {
            written = self.before(stream, seq, &mut copy)?;
            self.converted.write(&mut copy)?;
        }
        if has_packet {
            self.packets(&mut cursor, written, &mut copy)?;
        }
        Ok(Some(copy.file))
    }

    /// The packets of a stream from the begun one on, up to the range's end; their stamps follow `written`.
    fn packets(
        &mut self,
        cursor: &mut StreamCursor,
        mut written: Option<Cycles>,
        copy: &mut StreamCopy<'_>,
    ) -> Result<(), Error> {
        let (recording, at) = (self.recording, copy.at);
        // The counter of discarded events at the beginning of the output. Counters of the packets that are
        // read may wrap, or go back.
        let mut discarded = 0_u64;
        // Of the next event of the range.
        let mut index = 0;
        let mut decisions = self.decisions.of_stream(at, recording, &mut self.selection);
        let mut continues = true;
        while continues {
            if cursor.packet_begin().is_some_and(|begin| begin > self.range.end) {
                break;
            }
            let Some((reader, from)) = cursor.reader() else { break };
            let packet = reader.packet().clone();
            discarded = counted(cursor, discarded, packet.discarded.unwrap_or(0));
            cursor.losses().for_each(|lost| self.converted.note(lost));
            let from = from.to_owned();
            let failed = |error| Error::ctf(&from)(error);
            let start = PacketStart {
                stream_instance_id: packet.stream_instance_id,
                begin: packet.begin.max(written.take()),
                seq: packet.seq,
            };
            copy.writer.begin_packet(&start, reader).map_err(failed)?;
            while cursor.step()? {
                let event = EventRef::new(recording, cursor, at);
                if event.stamp().is_some_and(|stamp| stamp.time > self.range.end) {
                    continue;
                }
                let decoded = event.decoded();
                let class = decoded.class_index();
                let is_selected = decisions.takes(&decoded);
                self.converted.chosen += u64::from(is_selected);
                let named = self.naming.has(&Spot { stream: at, early: false, index });
                index += 1;
                if !(is_selected || copy.always.has(class) || named) {
                    continue;
                }
                copy.writer.event(class, decoded.clock_value(), &decoded).map_err(failed)?;
                self.converted.events += 1;
            }
            let end = PacketEnd { end: packet.end, discarded, least_bytes: 0 };
            copy.writer.end_packet(&end).map_err(failed)?;
            self.converted.write(copy)?;
            self.progress.done += packet.packet_bits / 8;
            if (self.watch)(self.progress).is_break() {
                return Err(Error::Stopped);
            }
            continues = cursor.begin_packet()?;
        }
        Ok(())
    }

    /// The classes of a stream whose events are written whether or not they are selected.
    fn always(&self, stream: &DataStreamClass) -> Always {
        let classes = || stream.event_record_classes.iter();
        // Where certain ones are selected, those of others are not.
        let all = self.explained && !self.selection.chooses_subjects();
        Always {
            explains: classes().map(|class| self.explained && explains(class)).collect(),
            names: classes().map(|class| all && (names_task(class) || names_lwp(class))).collect(),
        }
    }

    /// Puts the events of a stream that give names and lie before the range into a packet before number
    /// `seq`. Returns the stamp of the last one, in cycles. Damaged parts are left out.
    fn before(
        &mut self,
        stream: &Stream,
        seq: Option<u64>,
        copy: &mut StreamCopy<'_>,
    ) -> Result<Option<Cycles>, Error> {
        let (recording, at) = (self.recording, copy.at);
        let StreamCopy { always: Always { explains, .. }, writer, .. } = copy;
        let mut cursor = recording.cursor(stream, Timestamp::MIN);
        let mut last = None;
        let mut index = 0;
        while let Ok(true) = cursor.begin_packet() {
            if cursor.packet_begin().is_some_and(|begin| begin >= self.range.begin) {
                break;
            }
            while let Ok(true) = cursor.step() {
                let event = EventRef::new(recording, &cursor, at);
                let (decoded, Some((reader, from))) = (event.decoded(), cursor.reader()) else { break };
                if event.stamp().is_none_or(|stamp| stamp.time >= self.range.begin) {
                    continue;
                }
                let named = self.naming.has(&Spot { stream: at, early: true, index });
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
            if (self.watch)(self.progress).is_break() {
                return Err(Error::Stopped);
            }
        }
        if last.is_some() {
            let end = PacketEnd { end: last, discarded: 0, least_bytes: 0 };
            writer.end_packet(&end).map_err(Error::ctf(Path::new(stream.name())))?;
        }
        Ok(last)
    }
}

/// The counter of discarded events for the begun packet, whose own is `here`, after `before` in the previous
/// one. If it is unknown how many of them belong to the recording, the counter is unchanged, so that readers
/// of the copy do not know either.
fn counted(cursor: &StreamCursor, before: u64, here: u64) -> u64 {
    match cursor.losses().find(|lost| lost.kind == LostKind::Events).map(|lost| lost.count) {
        None => before,
        Some(Some(lost)) => before.saturating_add(lost),
        Some(None) => here,
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
