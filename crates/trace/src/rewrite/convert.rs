//! Writes a recording as CTF traces of either version: all of it, or chosen events of a time range.
//!
//! Packets stay what they are, with fewer events where some are left out: their stamps, sequence numbers and
//! counters of discarded events are carried over, so that losses are reported as before. Each data stream
//! becomes one file, even if it was several, with LTTng's index of it.
//!
//! The folder is written next to its final place, hidden and without metadata, and gets its name when it is
//! complete.

use crate::Error;
use crate::merge::messages::EventRef;
use crate::open::carried::{self, At};
use crate::open::description;
use crate::open::extract::Extract;
use crate::open::recording::{Recording, Stream, Trace};
use crate::rewrite::names::{explains, is_explanation, names_lwp, names_task};
use crate::rewrite::naming::{Naming, Spot};
use crate::rewrite::unfinished::Unfinished;
use crate::select::decisions::Decisions;
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::stream::cursor::{Lost, LostKind, StreamCursor};
use crate::stream::index_source;
use crate::super_trace::{forget_scope, is_of_interrupt, is_of_system_call};
use crate::time::range::TimeRange;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::convert::{to_ctf1, to_ctf2, with_whole_stamps};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::encode::{PacketEnd, PacketStart, StreamWriter};
use tracewing_ctf::model::{DataStreamClass, TraceClass, Version};
use tracewing_ctf::{json, tsdl};
use tracewing_files::Dir;
use tracewing_units::{Cycles, Timestamp};
use tracewing_vocabulary::{kernel, user_thread};

/// What of a recording is written, and as what.
#[derive(Debug, Clone, Default)]
pub struct Conversion {
    /// The CTF version; without one, each trace keeps its own.
    pub version: Option<Version>,
    /// Selects the events that are written.
    pub filter: Filter,
    /// Whether it also writes events that explain others, selected or not: names of threads, mappings of
    /// files. Also those before the range.
    pub explained: bool,
}

/// How much was written, and what the packets report as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Converted {
    /// Number of traces.
    pub traces: u64,
    /// Number of data streams.
    pub streams: u64,
    /// Number of packets.
    pub packets: u64,
    /// Number of events.
    pub events: u64,
    /// The events among these that the filter selects; others explain them.
    pub chosen: u64,
    /// Size of all packets, in bytes.
    pub bytes: u64,
    /// Number of events that are known to be lost, which the packets report as before.
    pub lost_events: u64,
    /// Packets that are known to have been lost.
    pub lost_packets: u64,
    /// Losses of an unknown number of events.
    pub unknown_losses: u64,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the recording's stream files that are done.
    pub done: u64,
    /// Bytes of all of them.
    pub total: u64,
}

impl Conversion {
    /// Writes `recording` to the folder `out`, which must not exist. `watch` is called with the progress from
    /// time to time, and may end it.
    ///
    /// A recording of one trace at the path that was given becomes a trace at `out`; traces below that path
    /// keep their places below `out`.
    ///
    /// # Errors
    /// `out` exists, a stream is damaged, a field cannot be expressed in the version, something cannot be
    /// written, or `watch` has ended it ([`Error::Stopped`]). There is nothing at `out` then.
    pub fn run(
        &self,
        recording: &Recording,
        out: &Path,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Converted, Error> {
        let range = match self.explained {
            true => self.filter.range(recording)?,
            false => self.filter.copied_range(recording)?,
        };
        let selection = Selection::new(&self.filter, recording)?;
        let total = recording.bytes();
        let start = Progress { done: 0, total };
        let decisions = Decisions::of(&self.filter, range, recording, &mut || watch(start))?;
        let naming = match self.explained {
            true => Naming::of(&self.filter, range, recording, &mut || watch(start))?,
            false => Naming::default(),
        };
        let (unfinished, top) = Unfinished::folder(out)?;
        let mut run = Run {
            recording,
            range,
            selection,
            decisions,
            naming,
            filter: &self.filter,
            version: self.version,
            explained: self.explained,
            progress: start,
            watch,
            converted: Converted::default(),
        };
        for (index, trace) in recording.traces().iter().enumerate() {
            let folder = make_below(&top, &place(recording, trace))?;
            run.trace(index, trace, &folder)?;
        }
        if let [input] = recording.inputs()
            && let Some(how) = description::for_copy(input, recording.missing())
        {
            let copy = top.path().join(description::NAME);
            top.replace(description::NAME, &how).map_err(Error::io(&copy))?;
        }
        unfinished.finish()?;
        Ok(run.converted)
    }
}

/// The place of a trace below the folder that is written: as below the path that was given.
fn place(recording: &Recording, trace: &Trace) -> PathBuf {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = |folder: &Path| folder.file_name().map(PathBuf::from).unwrap_or_default();
    match trace.folders() {
        [folder] => {
            let inputs = recording.inputs().iter();
            let below =
                inputs.filter_map(|input| real(folder).strip_prefix(real(input)).ok().map(PathBuf::from));
            below.min().unwrap_or_else(|| name(folder))
        }
        // The chunks of one trace become one.
        _ if recording.traces().len() == 1 => PathBuf::new(),
        folders => name(&folders[0]),
    }
}

/// Creates a folder below another one, with the folders in between. Traces of several chunks may come from
/// folders of the same name: a number is appended to the second.
fn make_below(top: &Dir, below: &Path) -> Result<Dir, Error> {
    let mut folder = top.clone();
    let names: Vec<String> = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    for (at, name) in names.iter().enumerate() {
        let mut number = 1;
        folder = loop {
            let name = if number == 1 { name.clone() } else { format!("{name}_{number}") };
            match folder.made_folder(&name) {
                Some(there) if at + 1 < names.len() || !there.has("metadata") => break there,
                Some(_) => number += 1,
                None => break folder.make(&name).map_err(Error::io(&folder.path().join(&name)))?,
            }
        };
    }
    Ok(folder)
}

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

struct Run<'r> {
    recording: &'r Recording,
    range: TimeRange,
    selection: Selection,
    decisions: Decisions,
    /// The events that give the names of user threads.
    naming: Naming,
    filter: &'r Filter,
    version: Option<Version>,
    explained: bool,
    progress: Progress,
    watch: &'r mut dyn FnMut(Progress) -> ControlFlow<()>,
    converted: Converted,
}

impl Run<'_> {
    fn trace(&mut self, index: usize, trace: &Trace, folder: &Dir) -> Result<(), Error> {
        let metadata = trace.folders()[0].join("metadata");
        let version = self.version.unwrap_or(trace.class().version);
        let convert = || {
            let mut class = match version {
                Version::V1_8 => to_ctf1(trace.class())?,
                Version::V2 => to_ctf2(trace.class())?,
            };
            if !self.selection.is_everything() || self.range != TimeRange::ALL {
                class = with_whole_stamps(&class)?;
            }
            if !self.selection.is_everything() {
                forget_scope(&mut class);
            }
            self.extract(trace).declare(&mut class);
            Decoder::new(Arc::new(class))
        };
        let classes = convert().map_err(Error::ctf(&metadata))?;
        let recording = self.recording;
        let streams = recording.streams().iter().enumerate();
        let (mut lost_at_begin, mut lost_at_end) = (Vec::new(), Vec::new());
        for (at, stream) in streams.filter(|(_, stream)| stream.trace_index() == index) {
            let name = free_name(folder, stream);
            if let Some(mut lost) = stream.lost_at_end
                && lost.cut(&self.range)
            {
                self.converted.note(&lost);
                lost_at_end.push((name.to_string_lossy().into_owned(), lost));
            }
            if let Some(mut lost) = stream.lost_at_begin
                && lost.cut(&self.range)
            {
                lost_at_begin.push((name.to_string_lossy().into_owned(), lost));
            }
            if stream.files().next().is_none() {
                continue;
            }
            if let Some(file) = self.stream(at, stream, &classes, folder, &name)? {
                index_source::write_next_to(folder, &name, file, classes.clone())?;
            }
            self.converted.streams += 1;
        }
        let mut class = TraceClass::clone(classes.trace_class());
        carried::set(&mut class, At::Begin, &lost_at_begin);
        carried::set(&mut class, At::End, &lost_at_end);
        let text = match version {
            Version::V1_8 => tsdl::print(&class),
            Version::V2 => json::print(&class),
        };
        let path = folder.path().join("metadata");
        folder.replace("metadata", text.as_bytes()).map_err(Error::io(&path))?;
        self.converted.traces += 1;
        Ok(())
    }

    /// What the written trace says of itself.
    fn extract<'t>(&'t self, trace: &'t Trace) -> Extract<'t> {
        let (selection, filter) = (&self.selection, self.filter);
        let is_switch = |name: &str| [kernel::Switch::NAME, user_thread::Switch::NAME].contains(&name);
        let end = self.recording.end().filter(|_| self.explained);
        let left_out = selection.left_out(trace).into_iter();
        Extract {
            some_switches: selection.leaves_out(trace, is_switch),
            some_system_calls: selection.leaves_out(trace, is_of_system_call),
            some_interrupts: selection.leaves_out(trace, is_of_interrupt),
            left_out: left_out.filter(|name| !(self.explained && is_explanation(name))).collect(),
            threads: &filter.threads,
            of_tids: !filter.tids.is_empty(),
            of_cpus: !filter.cpus.is_empty(),
            lwps: self.decisions.lwps(),
            begin: Some(self.range.begin).filter(|begin| self.explained && *begin != Timestamp::MIN),
            end: end.map(|end| end.min(self.range.end)),
        }
    }

    fn stream(
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
        let mut goes_on = true;
        while goes_on {
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
            goes_on = cursor.begin_packet()?;
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

/// A name for the file of a stream. Chunks have files of the same name, which may belong to different
/// streams: a number is appended to the second.
fn free_name(folder: &Dir, stream: &Stream) -> OsString {
    let of_file = Path::new(stream.name()).file_name().unwrap_or_default();
    let mut name = of_file.to_owned();
    for number in 2.. {
        if !folder.has(&name) {
            break;
        }
        name = of_file.to_owned();
        name.push(format!("_{number}"));
    }
    name
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

    fn note(&mut self, lost: &Lost) {
        match (lost.kind, lost.count) {
            (LostKind::Events, Some(count)) => self.lost_events += count,
            (LostKind::Packets, Some(count)) => self.lost_packets += count,
            (_, None) => self.unknown_losses += 1,
        }
    }
}
