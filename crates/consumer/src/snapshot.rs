//! A snapshot of a flight recorder: the content of its buffers as a complete trace folder, taken while
//! recording continues.
//!
//! The folder is created under a temporary name and renamed when it is complete, so a partial snapshot is
//! never visible. It contains everything that was emitted before the snapshot began, as far as the buffers
//! still held it when they were copied. A sub-buffer is copied, put back into the ring, and only then
//! written, since writers do not wait for the disk; the next snapshot has it again unless writers needed its
//! place first. With protocol `Smp`, a sub-buffer is left to the next snapshot if a thread is descheduled in
//! the middle of an event for 0.1 s.
//!
//! A buffer's snapshot has no gap: if writers were faster than the copy, everything before the gap is left
//! out and counted as overwritten. The numbers of packets (`packet_seq_num`) are those of the sub-buffers
//! since the recording began.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use tracewing_abi::event::{CONTEXT, HEADER, header_word};
use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_ring::{Chunk, Damaged, Left, Overwritten, Reach, Reader, Region};
use tracewing_streams::{PacketTimes, Stream};
use tracewing_units::{Cpu, Cycles, Tid};

use crate::Error;
use crate::buffer::UNDESCRIBED;
use crate::classes::Classes;
use crate::clock::TraceClock;
use crate::drain::{Drain, UNKNOWN_LOSSES};
use crate::firsts::Firsts;
use crate::folder::{Description, Folder, SnapshotDescription, State};
use crate::memory::SharedMemory;
use crate::outside::Insider;
use crate::streams::Streams;
use crate::summary::{LossRange, OverwrittenRange, OverwrittenTotal, StreamSummary};
use crate::trace::UserTrace;
use crate::whole_events::whole_events;

/// How many laps of the writers a snapshot follows.
const ROUNDS: usize = 4;
/// Number of attempts, looks per attempt, and pause between attempts, for which a snapshot waits for threads
/// to finish their events.
const COMMIT_ATTEMPTS: usize = 100;
const COMMIT_LOOKS: usize = 1000;
const COMMIT_WAIT: Duration = Duration::from_millis(1);

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

/// What a region's writers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// They continue: a buffer's snapshot ends where they were a moment ago.
    Living,
    /// The region is closed; they finish the events that they have begun. Events that are still unfinished
    /// after a while are skipped.
    Ending,
    /// There are none any more; the events that they left unfinished are skipped.
    Dead,
}

/// The content of a region's buffers, copied.
pub struct Contents {
    label: String,
    /// The clock when the region was made.
    origin: Cycles,
    buffers: Vec<BufferContents>,
}

struct BufferContents {
    cpu: Cpu,
    packets: Vec<Packet>,
    damages: Vec<String>,
    losses: Vec<LossRange>,
    is_lost_unknown: bool,
}

impl Contents {
    /// Copies a region's buffers. Sub-buffers that are copied go back into the ring.
    pub fn of(drain: &mut Drain, writers: Writers) -> Self {
        let region = drain.region();
        let (label, origin, memory, insider, buffers) = drain.parts();
        let buffers = buffers.iter_mut().map(|buffer| {
            let counted = buffer.counted();
            let (mut packets, damages) = read(&mut buffer.reader, region, memory, writers, counted);
            let mut is_lost_unknown = buffer.is_lost_unknown;
            for packet in &mut packets {
                insider.into_iter().for_each(|insider| packet.put_outside(insider));
                if !buffer.can_have_written(packet.overwritten.sub_buffers) {
                    (packet.overwritten, is_lost_unknown) = (Overwritten::default(), true);
                }
            }
            let losses = buffer.ranges.clone();
            BufferContents { cpu: buffer.cpu, packets, damages, losses, is_lost_unknown }
        });
        Self {
            label: label.to_owned(),
            origin,
            buffers: buffers.filter(|buffer| !buffer.is_empty()).collect(),
        }
    }

    /// Registers the classes of its first events.
    pub fn scan(&self, firsts: &Firsts) {
        for packet in self.buffers.iter().flat_map(|buffer| &buffer.packets) {
            firsts.scan(packet.whole());
        }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.buffers.iter().flat_map(|buffer| &buffer.packets).map(Packet::bytes).sum()
    }
}

impl BufferContents {
    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.damages.is_empty()
    }
}

/// A packet in preparation: events copied out of a buffer.
struct Packet {
    events: Vec<u8>,
    begin: Cycles,
    end: Cycles,
    lost: u64,
    overwritten: Overwritten,
}

impl Packet {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.events.capacity()
    }

    /// Translates the thread numbers to those that the recorder sees.
    fn put_outside(&mut self, insider: &Insider) {
        let len = self.whole().len();
        insider.replace(&mut self.events[..len], true);
    }

    /// The bytes of its whole events.
    fn whole(&self) -> &[u8] {
        // SAFETY: the vector is this process's own.
        let (_, len) = unsafe { whole_events(self.events.as_slice().into(), |_| {}) };
        &self.events[..len]
    }
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
            let Some(first) = buffer.packets.first() else {
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
            let stream = self.write(stream, &buffer.packets, firsts)?;
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
        let begin = self.streams.values().filter_map(|stream| stream.begin).min();
        let Some(begin) = begin.filter(|_| !self.overwritten.is_empty()) else { return Ok(()) };
        let at = begin.since(BEFORE);
        let mut events = Vec::new();
        for (tid, payload) in own {
            let Ok(length) = u16::try_from(HEADER + CONTEXT + payload.len()) else { continue };
            events.extend_from_slice(&header_word(at.0, id, length).to_le_bytes());
            events.extend_from_slice(&tid.0.to_le_bytes());
            events.extend_from_slice(&payload);
        }
        if events.is_empty() {
            return Ok(());
        }
        let packet = Packet { events, begin: at, end: at, lost: 0, overwritten: Overwritten::default() };
        let stream = self.trace.stream(name, Cpu(0))?;
        self.write(stream, &[packet], &Firsts::default()).map(drop)
    }

    /// Continues a stream with these packets, at least one.
    fn write(&mut self, mut stream: Stream, packets: &[Packet], firsts: &Firsts) -> Result<Stream, Error> {
        let [first, ..] = packets else { return Ok(stream) };
        let (lost_before, skipped_before) = (stream.lost(), stream.skipped());
        let (mut events, mut lost_here, cpu) = (0, 0_u64, stream.cpu());
        for packet in packets {
            let mut whole = packet.whole().to_vec();
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
                end: packet.end,
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
        let summary = self.streams.entry(stream.name().to_owned()).or_insert_with(|| StreamSummary {
            name: stream.name().to_owned(),
            cpu: stream.cpu(),
            events: 0,
            packets: 0,
            bytes: 0,
            lost: 0,
            is_lost_unknown: false,
            begin: Some(first.begin),
            overwritten: OverwrittenTotal::default(),
        });
        summary.events += events;
        (summary.packets, summary.bytes, summary.lost) = (stream.packets(), stream.bytes(), stream.lost());
        summary.overwritten.add(first.overwritten.into());
        Ok(stream)
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

/// Copies a buffer, beginning with its oldest sub-buffer; also returns the damage found. Reports at most the
/// `counted` losses.
fn read(
    reader: &mut Reader,
    region: Region,
    memory: &SharedMemory,
    mut writers: Writers,
    counted: u64,
) -> (Vec<Packet>, Vec<String>) {
    let (mut packets, mut damages, mut found_lost) = (Vec::<Packet>::new(), Vec::new(), 0);
    let (mut reach, mut left_out) = (Reach::Full, Overwritten::default());
    reader.rewind();
    // A sub-buffer yields a chunk, or damage, or both. Writers continue in the meantime and may lap the
    // reader.
    for _ in 0..ROUNDS * region.geometry().sub_buffers() {
        let next = match writers {
            Writers::Dead => reader.finalise(),
            Writers::Living | Writers::Ending => {
                wait_for_chunk(reader, region, reach).map(|chunk| chunk.map_or(Left::Nothing, Left::Chunk))
            }
        };
        let chunk = match next {
            Ok(Left::Chunk(chunk)) => chunk,
            Ok(Left::Unfinished(_)) => {
                found_lost += 1;
                continue;
            }
            Ok(Left::Nothing) if reach == Reach::Full && writers != Writers::Dead => {
                reach = Reach::Written;
                continue;
            }
            // A writer that has not finished by now never will.
            Ok(Left::Nothing) if writers == Writers::Ending => {
                writers = Writers::Dead;
                continue;
            }
            Ok(Left::Nothing) => break,
            Err(damaged) => {
                damages.push(damaged.to_string());
                found_lost += 1;
                if damaged.bytes == 0 {
                    break;
                }
                continue;
            }
        };
        let lost = chunk.lost.min(counted).saturating_add(found_lost);
        let overwritten = leave_out(&mut packets, &mut left_out, chunk.overwritten);
        let (events, begin, end) = (memory.copy(chunk.bytes()), Cycles(chunk.begin), Cycles(chunk.end));
        packets.push(Packet { events, begin, end, lost, overwritten });
        reader.give_back(chunk);
        if reach == Reach::Written && writers == Writers::Living {
            break;
        }
    }
    (packets, damages)
}

/// Leaves out the packets so far if more was overwritten since the last of them, so that those that remain
/// follow one another. Returns what was overwritten up to the next packet, those left out included.
fn leave_out(packets: &mut Vec<Packet>, left_out: &mut Overwritten, overwritten: Overwritten) -> Overwritten {
    let sub_buffers = overwritten.sub_buffers.saturating_add(left_out.sub_buffers);
    if packets.last().is_some_and(|last| last.overwritten.sub_buffers < sub_buffers) {
        left_out.sub_buffers += packets.len() as u64;
        left_out.bytes += packets.drain(..).map(|packet| packet.events.len() as u64).sum::<u64>();
    }
    Overwritten {
        sub_buffers: overwritten.sub_buffers.saturating_add(left_out.sub_buffers),
        bytes: overwritten.bytes.saturating_add(left_out.bytes),
    }
}

/// The next full sub-buffer; or, with [`Reach::Written`], the content of the writers' current one. `None` if
/// there is no more.
///
/// A sub-buffer cannot always be read: with `Smp` not while a thread is between reserving and committing,
/// which takes long only if the thread is not running; and not while writers lap the reader. Waits for a
/// better moment.
fn wait_for_chunk(reader: &mut Reader, region: Region, reach: Reach) -> Result<Option<Chunk>, Damaged> {
    let least = if reach == Reach::Written { 1 } else { region.geometry().sub_buffer_bytes() };
    for _ in 0..COMMIT_ATTEMPTS {
        for _ in 0..COMMIT_LOOKS {
            let chunk = reader.next(reach)?;
            if chunk.is_some() || reader.waiting() < least {
                return Ok(chunk);
            }
            std::hint::spin_loop();
        }
        std::thread::sleep(COMMIT_WAIT);
    }
    Ok(None)
}
