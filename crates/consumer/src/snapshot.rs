//! A snapshot of a flight recorder: the content of its buffers as a complete trace folder, taken while
//! recording continues.
//!
//! The folder is created under a temporary name and renamed when it is complete, so a partial snapshot is
//! never visible. It contains everything that was emitted before the snapshot began, as far as the buffers
//! still held it when they were copied, and nothing later, of which only some buffers have anything. A
//! sub-buffer is copied, put back into the ring, and only then written, since writers do not wait for the
//! disk; the next snapshot has it again unless writers needed its place first. With protocol `Smp`, a
//! sub-buffer is left to the next snapshot if a thread is descheduled in the middle of an event for 0.1 s.
//!
//! A buffer's snapshot has no gap: if writers were faster than the copy, everything before the gap is left
//! out and counted as overwritten. The numbers of packets (`packet_seq_num`) are those of the sub-buffers
//! since the recording began.

mod contents;
mod dropped;

use contents::Packet;
pub use contents::{Contents, Writers};
pub use dropped::Dropped;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_ring::Overwritten;
use tracewing_streams::{PacketTimes, Stream};
use tracewing_units::{Cpu, Cycles, Tid};

use crate::Error;
use crate::buffer::UNDESCRIBED;
use crate::classes::Classes;
use crate::clock::TraceClock;
use crate::description::{Description, SnapshotDescription, State};
use crate::drain::UNKNOWN_LOSSES;
use crate::firsts::Firsts;
use crate::folder::Folder;
use crate::packet_events::encode;
use crate::streams::Streams;
use crate::summary::{LossRange, OverwrittenRange, OverwrittenTotal, StreamSummary};
use crate::trace::UserTrace;
use crate::whole_events::whole_events;
/// At least a nanosecond in cycles, by which one event is placed before another.
const BEFORE: Cycles = Cycles(16);

/// A snapshot that is being taken. Dropped before [`Snapshot::finish`], it leaves no files.
pub struct Snapshot {
    /// Its parent folder, its temporary name, and its final name.
    parent: Dir,
    temporary: String,
    name: OsString,
    folder: Folder,
    trace: UserTrace,
    taken: Cycles,
    /// Streams that another region can continue.
    idle: Streams<Stream>,
    streams: BTreeMap<String, StreamSummary>,
    losses: Vec<LossRange>,
    overwritten: Vec<OverwrittenRange>,
    notes: Vec<String>,
    is_complete: bool,
}

impl Snapshot {
    /// Begins a snapshot of this moment, for the folder `path`, whose parent is created if necessary; see
    /// [`Snapshot::within`].
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; or the folder cannot be made.
    pub fn begin(path: &Path, uuid: Uuid, clock: &TraceClock) -> Result<Self, Error> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput.into());
        let name = name.map_err(Error::file("create", path))?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = match Dir::parent(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Dir::create(parent).map(|(dir, _)| dir),
            opened => opened,
        };
        Self::within(&parent.map_err(Error::folder(path))?, name, uuid, clock)
    }

    /// Begins a snapshot of this moment, for the folder `name` in `parent`, which must not exist, or be
    /// empty. `uuid` is that of the user trace and must differ from other snapshots': readers merge traces of
    /// the same UUID.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; or the folder cannot be made.
    pub fn within(parent: &Dir, name: OsString, uuid: Uuid, clock: &TraceClock) -> Result<Self, Error> {
        let taken = clock.now();
        let path = parent.path().join(&name);
        parent.check_free(&name).map_err(Error::folder(&path))?;
        let temporary = format!(".{}.{:x}", name.to_string_lossy(), taken.0);
        let folder = Folder::within(parent, &temporary)?;
        let trace =
            UserTrace::new(folder.user(), uuid).inspect_err(|_| drop(parent.remove_all(&temporary)))?;
        Ok(Self {
            parent: parent.clone(),
            temporary,
            name,
            folder,
            trace,
            taken,
            idle: Streams::new(),
            streams: BTreeMap::new(),
            losses: Vec::new(),
            overwritten: Vec::new(),
            notes: Vec::new(),
            is_complete: false,
        })
    }

    /// Its folder, into which the kernel trace must be written.
    pub fn dir(&self) -> &Dir {
        self.folder.dir()
    }

    /// When it began, cycles.
    pub fn taken(&self) -> Cycles {
        self.taken
    }

    /// Adds the content of a region's buffers, with first events replaced by what `firsts` knows by now.
    /// Regions with the same label share streams, one after another: add them in the order in which they
    /// ended.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn add(&mut self, contents: &Contents, firsts: &Firsts) -> Result<(), Error> {
        for buffer in &contents.buffers {
            let (packets, until) = buffer.up_to(self.taken);
            let Some(first) = packets.first() else {
                let name = format!("{}_{}", contents.label, buffer.cpu);
                self.notes.extend(buffer.damages.iter().map(|damage| format!("user/{name}: {damage}")));
                continue;
            };
            let stream = match self.idle.take(&contents.label, buffer.cpu, first.begin, Stream::end) {
                Some(stream) => stream,
                None => {
                    let name = self.idle.name(&contents.label, buffer.cpu);
                    self.trace.stream(&name, buffer.cpu)?
                }
            };
            let name = stream.name().to_owned();
            let damages = buffer.damages.iter().map(|damage| format!("user/{name}: {damage}"));
            self.notes.extend(damages);
            if first.overwritten != Overwritten::default() {
                let range = OverwrittenRange::new(&name, first.overwritten, contents.origin, first.begin);
                self.overwritten.push(range);
            }
            let losses = buffer.losses.iter().filter(|range| range.end >= first.begin);
            self.losses.extend(losses.map(|range| LossRange { stream: name.clone(), ..range.clone() }));
            let stream = self.write(stream, packets, until, firsts)?;
            if buffer.is_lost_unknown {
                self.notes.push(format!("user/{name}: {UNKNOWN_LOSSES}"));
                self.streams.entry(name).and_modify(|summary| summary.is_lost_unknown = true);
            }
            match buffer.damages.is_empty() {
                true => self.idle.give_back(&contents.label, buffer.cpu, stream),
                false => drop(stream),
            }
        }
        Ok(())
    }

    /// Reports what programs held that is kept no longer.
    pub fn add_dropped(&mut self, dropped: &Dropped) {
        if dropped.regions == 0 {
            return;
        }
        for (name, (cpu, range)) in &dropped.ranges {
            self.overwritten.push(range.clone());
            self.summary(name, *cpu, None).overwritten.add(range.total());
        }
        self.notes.push(format!(
            "the buffers of {} ended programs did not fit next to those of later ones: larger buffers keep more",
            dropped.regions
        ));
    }

    /// If events of programs were overwritten: adds the recorder's own events of the class with this id, each
    /// with its thread and payload, at the time at which the remaining events begin.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn add_own_events(
        &mut self,
        name: &str,
        id: u16,
        own: impl Iterator<Item = (Tid, Vec<u8>)>,
    ) -> Result<(), Error> {
        if self.overwritten.is_empty() {
            return Ok(());
        }
        self.report(name, id, own)
    }

    /// Adds events of the recorder's own, as [`Snapshot::add_own_events`], whether or not something was
    /// overwritten.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn report(
        &mut self,
        name: &str,
        id: u16,
        own: impl Iterator<Item = (Tid, Vec<u8>)>,
    ) -> Result<(), Error> {
        let begin = self.streams.values().filter_map(|stream| stream.begin).min();
        let Some(begin) = begin else { return Ok(()) };
        let at = begin.since(BEFORE);
        let (events, _) = encode(at, id, own);
        if events.is_empty() {
            return Ok(());
        }
        let packet = Packet { events, begin: at, end: at, lost: 0, overwritten: Overwritten::default() };
        let stream = self.trace.stream(name, Cpu(0))?;
        self.write(stream, &[packet], at, &Firsts::default()).map(drop)
    }

    /// Continues a stream with the events of these packets, at least one, that are not after `until`.
    fn write(
        &mut self,
        mut stream: Stream,
        packets: &[Packet],
        until: Cycles,
        firsts: &Firsts,
    ) -> Result<Stream, Error> {
        let [first, ..] = packets else { return Ok(stream) };
        let (lost_before, skipped_before) = (stream.lost(), stream.skipped());
        let (mut events, mut lost_here, cpu) = (0, 0_u64, stream.cpu());
        for packet in packets {
            let mut whole = packet.up_to(until).to_vec();
            if let Some(replaced) = firsts.replace(&mut whole, cpu, true, |_| {})
                && replaced.lost > 0
            {
                lost_here += replaced.lost;
                self.losses.push(LossRange {
                    stream: stream.name().to_owned(),
                    reason: UNDESCRIBED.to_owned(),
                    events: replaced.lost,
                    begin: packet.begin,
                    end: packet.end,
                });
            }
            let times = PacketTimes {
                begin: packet.begin,
                end: packet.end.min(until),
                // Losses before the first packet are not part of this snapshot.
                lost: lost_before
                    .saturating_add(packet.lost.saturating_sub(first.lost))
                    .saturating_add(lost_here),
                skipped: skipped_before.saturating_add(packet.overwritten.sub_buffers),
            };
            // SAFETY: the vector is this process's own.
            let (count, len) = unsafe { whole_events(whole.as_slice().into(), |_| {}) };
            stream.write(&whole[..len], times)?;
            events += count;
        }
        let summary = self.summary(stream.name(), stream.cpu(), Some(first.begin));
        summary.events += events;
        (summary.packets, summary.bytes, summary.lost) = (stream.packets(), stream.bytes(), stream.lost());
        summary.overwritten.add(first.overwritten.into());
        Ok(stream)
    }

    /// The totals of a stream, whose first packet begins at `begin` if it has one.
    fn summary(&mut self, name: &str, cpu: Cpu, begin: Option<Cycles>) -> &mut StreamSummary {
        let none = || StreamSummary::without_file(name, cpu, 0, OverwrittenTotal::default());
        let summary = self.streams.entry(name.to_owned()).or_insert_with(none);
        summary.begin = summary.begin.or(begin);
        summary
    }

    /// Completes the folder and moves it to its final place. `description` is the recording's; the snapshot
    /// adds its own streams, losses and notes, and marks it as complete unless another part was cut short.
    ///
    /// # Errors
    /// A file cannot be written, or the folder not be renamed.
    pub fn finish(
        mut self,
        classes: &Classes,
        snapshot: SnapshotDescription,
        mut description: Description,
    ) -> Result<Description, Error> {
        if description.state == State::Recording {
            description.state = State::Complete;
        }
        description.user_streams.extend(std::mem::take(&mut self.streams).into_values());
        description.losses.append(&mut self.losses);
        description.overwritten.append(&mut self.overwritten);
        description.notes.append(&mut self.notes);
        description.snapshot = Some(snapshot);
        self.folder.describe(&description)?;
        classes.write_into(self.folder.user(), self.trace.recording())?;
        let path = self.parent.path().join(&self.name);
        self.parent.rename(&self.temporary, &self.name).map_err(Error::folder(&path))?;
        self.is_complete = true;
        Ok(description)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = self.parent.remove_all(&self.temporary);
        }
    }
}
