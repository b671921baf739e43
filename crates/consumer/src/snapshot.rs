//! A snapshot of a flight recorder: what its buffers hold, as a complete trace folder, while recording goes on.
//!
//! The folder is made beside its place and renamed when it is complete, so nobody meets half a snapshot. Everything
//! emitted before the snapshot began is in it, as far as the buffers held it when it was their turn. A sub-buffer is copied,
//! put back into the ring, and only then written, since writers do not wait for the disk: the next snapshot has it again
//! unless writers needed its place first.
//!
//! Per buffer a snapshot has no gap: where writers were faster than the copy, what lies before them is left out and counted as
//! overwritten. The numbers of packets (`packet_seq_num`) are those of the sub-buffers since the recording began.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracewing_abi::event::{CONTEXT, HEADER, header_word};
use tracewing_ctf::model::Uuid;
use tracewing_ring::{Chunk, Damaged, Overwritten, Reader, Region};

use crate::Error;
use crate::buffer::whole_events;
use crate::classes::Classes;
use crate::clock::TraceClock;
use crate::drain::{Drain, LossRange, OverwrittenRange, StreamSummary, UserTrace};
use crate::folder::{Description, Folder, SnapshotDescription, State, check_free};
use crate::memory::SharedMemory;
use crate::stream::{Events, PacketTimes};

/// How often a snapshot follows the writers round the ring.
const ROUNDS: usize = 4;
/// How often, after how many looks and how long each time, a snapshot waits for threads to finish the events they are at.
const COMMIT_ATTEMPTS: usize = 100;
const COMMIT_LOOKS: usize = 1000;
const COMMIT_WAIT: Duration = Duration::from_millis(1);

/// So many cycles are at least a nanosecond, by which an event is before another one.
const BEFORE: u64 = 16;

/// A snapshot that is being taken. Dropped before [`Snapshot::finish`], it leaves nothing behind.
pub struct Snapshot {
    path: PathBuf,
    folder: Folder,
    trace: UserTrace,
    taken: u64,
    streams: Vec<StreamSummary>,
    losses: Vec<LossRange>,
    overwritten: Vec<OverwrittenRange>,
    notes: Vec<String>,
    is_complete: bool,
}

/// What becomes of those who write to a region's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// They go on: a buffer's snapshot ends where they were a moment ago.
    Living,
    /// The region is closed; they finish what they have begun. What they have not finished after a while is passed over.
    Ending,
    /// Nobody writes any more; what the dead have left unfinished is passed over.
    Dead,
}

/// A packet to be: events copied out of a buffer.
struct Packet {
    events: Vec<u8>,
    begin: u64,
    end: u64,
    lost: u64,
    overwritten: Overwritten,
}

impl Snapshot {
    /// A snapshot of this moment, for the folder `path`; it must not exist, or be empty. `uuid` is the user trace's and must
    /// differ from that of other snapshots: readers take traces of one UUID for one trace.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; or the folder cannot be made.
    pub fn begin(path: &Path, uuid: Uuid, clock: &TraceClock) -> Result<Self, Error> {
        let taken = clock.now();
        check_free(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{taken:x}"));
        let folder = Folder::create(&beside)?;
        let trace = UserTrace::new(&folder.user(), uuid)?;
        Ok(Self {
            path: path.to_owned(),
            folder,
            trace,
            taken,
            streams: Vec::new(),
            losses: Vec::new(),
            overwritten: Vec::new(),
            notes: Vec::new(),
            is_complete: false,
        })
    }

    /// Where its kernel trace is to be written.
    pub fn kernel_folder(&self) -> PathBuf {
        self.folder.kernel()
    }

    /// When it began, cycles.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Adds what the buffers of a region hold.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn add(&mut self, drain: &mut Drain, writers: Writers) -> Result<(), Error> {
        let before = self.streams.len();
        let region = drain.region();
        let (name, origin, memory, buffers) = drain.parts();
        for buffer in buffers {
            let (packets, damages) = read(&mut buffer.reader, region, memory, writers);
            let name = format!("{name}_{}", buffer.cpu);
            self.notes.extend(damages.into_iter().map(|damage| format!("user/{name}: {damage}")));
            if let Some(first) = packets.first() {
                let overwritten = first.overwritten;
                if overwritten != Overwritten::default() {
                    self.overwritten.push(OverwrittenRange::new(&name, overwritten, origin, first.begin));
                }
                self.write(&name, buffer.cpu, &packets)?;
            }
        }
        for stream in &self.streams[before..] {
            let of_stream =
                |range: &&LossRange| range.stream == stream.name && Some(range.end) >= stream.begin;
            self.losses.extend(drain.losses().filter(of_stream).cloned());
        }
        Ok(())
    }

    /// Where programs' events were overwritten: adds events of the recorder's own, of the class with this id, each with its
    /// thread and payload, at the time at which what is left begins.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn tell(
        &mut self,
        name: &str,
        id: u16,
        told: impl Iterator<Item = (i32, Vec<u8>)>,
    ) -> Result<(), Error> {
        let begin = self.streams.iter().filter_map(|stream| stream.begin).min();
        let Some(begin) = begin.filter(|_| !self.overwritten.is_empty()) else { return Ok(()) };
        let at = begin.saturating_sub(BEFORE);
        let mut events = Vec::new();
        for (tid, payload) in told {
            let Ok(length) = u16::try_from(HEADER + CONTEXT + payload.len()) else { continue };
            events.extend_from_slice(&header_word(at, id, length).to_le_bytes());
            events.extend_from_slice(&tid.to_le_bytes());
            events.extend_from_slice(&payload);
        }
        if events.is_empty() {
            return Ok(());
        }
        let packet = Packet { events, begin: at, end: at, lost: 0, overwritten: Overwritten::default() };
        self.write(name, 0, &[packet])
    }

    fn write(&mut self, name: &str, cpu: usize, packets: &[Packet]) -> Result<(), Error> {
        let [first, ..] = packets else { return Ok(()) };
        let mut stream = self.trace.stream(name, cpu)?;
        let mut events = 0;
        for packet in packets {
            let times = PacketTimes {
                begin: packet.begin,
                end: packet.end,
                // What was lost before the first packet is not of this snapshot's time.
                lost: packet.lost.saturating_sub(first.lost),
                skipped: packet.overwritten.sub_buffers,
            };
            // SAFETY: the vector is this process's own.
            let (count, len) = unsafe { whole_events(packet.events.as_ptr(), packet.events.len(), |_| {}) };
            // SAFETY: as above; `len` is at most the vector's.
            unsafe { stream.write(Events { start: packet.events.as_ptr(), len }, times)? };
            events += count;
        }
        self.streams.push(StreamSummary {
            name: name.to_owned(),
            cpu: cpu as u32,
            events,
            packets: stream.packets(),
            bytes: stream.bytes(),
            lost: stream.lost(),
            begin: Some(first.begin),
            overwritten: first.overwritten.into(),
        });
        Ok(())
    }

    /// Completes the folder and puts it into its place. `description` is the recording's, to which the snapshot adds its
    /// own streams, losses and notes, and that it is complete unless another part of it was cut short.
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
        description.user_streams.append(&mut self.streams);
        description.losses.append(&mut self.losses);
        description.overwritten.append(&mut self.overwritten);
        description.notes.append(&mut self.notes);
        description.snapshot = Some(snapshot);
        self.folder.describe(&description)?;
        classes.write_into(&self.folder.user(), self.trace.recording())?;
        fs::rename(self.folder.path(), &self.path).map_err(Error::file("create", &self.path))?;
        self.is_complete = true;
        Ok(description)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_dir_all(self.folder.path());
        }
    }
}

/// Copies what a buffer holds, from its oldest sub-buffer on; also gives what was damaged.
fn read(
    reader: &mut Reader,
    region: Region,
    memory: &SharedMemory,
    mut writers: Writers,
) -> (Vec<Packet>, Vec<String>) {
    let (mut packets, mut damages, mut found_lost) = (Vec::<Packet>::new(), Vec::new(), 0);
    let (mut partial, mut left_out) = (false, Overwritten::default());
    reader.rewind();
    // A sub-buffer gives a chunk, or is damaged, or both; writers go on meanwhile, also round the reader.
    for _ in 0..ROUNDS * region.geometry().sub_buffers() {
        let next = match writers {
            Writers::Dead => reader.finalise(),
            Writers::Living | Writers::Ending => {
                wait_for_chunk(reader, region, partial).map(|chunk| chunk.map(Ok))
            }
        };
        let chunk = match next {
            Ok(Some(Ok(chunk))) => chunk,
            Ok(Some(Err(_unfinished))) => {
                found_lost += 1;
                continue;
            }
            Ok(None) if !partial && writers != Writers::Dead => {
                partial = true;
                continue;
            }
            // Who has not finished by now never will.
            Ok(None) if writers == Writers::Ending => {
                writers = Writers::Dead;
                continue;
            }
            Ok(None) => break,
            Err(damaged) => {
                damages.push(damaged.to_string());
                found_lost += 1;
                if damaged.bytes == 0 {
                    break;
                }
                continue;
            }
        };
        let Chunk { start, len, begin, end, lost, overwritten, .. } = chunk;
        let lost = lost.saturating_add(found_lost);
        let sub_buffers = overwritten.sub_buffers.saturating_add(left_out.sub_buffers);
        if packets.last().is_some_and(|last| last.overwritten.sub_buffers < sub_buffers) {
            left_out.sub_buffers += packets.len() as u64;
            left_out.bytes += packets.drain(..).map(|packet| packet.events.len() as u64).sum::<u64>();
        }
        let overwritten = Overwritten {
            sub_buffers: overwritten.sub_buffers.saturating_add(left_out.sub_buffers),
            bytes: overwritten.bytes.saturating_add(left_out.bytes),
        };
        packets.push(Packet { events: memory.copy(start, len), begin, end, lost, overwritten });
        reader.give_back(chunk);
        if partial && writers == Writers::Living {
            break;
        }
    }
    (packets, damages)
}

/// The next full sub-buffer; or, with `partial`, what the writers' current one holds. `None` where there is nothing more.
///
/// What there is cannot always be read: with `Smp` not while a thread is between reserving and committing, which takes long
/// only if the thread is not running; and not while writers go round the reader. Waits for a better moment.
fn wait_for_chunk(reader: &mut Reader, region: Region, partial: bool) -> Result<Option<Chunk>, Damaged> {
    let least = if partial { 1 } else { region.geometry().sub_buffer_bytes() };
    for _ in 0..COMMIT_ATTEMPTS {
        for _ in 0..COMMIT_LOOKS {
            let chunk = reader.next(partial)?;
            if chunk.is_some() || reader.waiting() < least {
                return Ok(chunk);
            }
            std::hint::spin_loop();
        }
        std::thread::sleep(COMMIT_WAIT);
    }
    Ok(None)
}
