//! All CPU buffers of one region: what is due is written, what was lost is noted with the time in which it was lost.
//!
//! The drain is driven by a timer that its owner keeps: programs never wake their consumer. Full sub-buffers are
//! written at once; a partly filled one only when its oldest event would otherwise reach the disk too late.
//!
//! The region may be written by hostile processes. The worst that they can do is to lose events and to fill the trace with
//! nonsense: the `ring` crate's reader bounds everything that it hands out, what it finds damaged is skipped and counted as
//! a loss, and events are checked to follow each other before they are written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tracewing_abi::region::{Geometry, Protocol};
use tracewing_ctf::model::Uuid;
use tracewing_ring::{Overwritten, Region};

use crate::Error;
use crate::buffer::{Buffer, Target};
use crate::clock::{Calibration, TraceClock};
use crate::memory::SharedMemory;
use crate::met::Met;
use crate::output::Output;
use crate::stream::Stream;
use crate::survival::BufferFolder;
use crate::writer::Writer;

/// The user trace that streams are added to.
pub struct UserTrace {
    folder: PathBuf,
    recording: Uuid,
    streams: u64,
    /// Makes `writer` when the first stream needs it.
    start: Option<StartWriter>,
    writer: Option<Arc<Writer>>,
    met: Arc<Met>,
}

type StartWriter = Box<dyn FnOnce() -> std::io::Result<Writer> + Send>;

impl UserTrace {
    /// The trace in `folder`, whose `index` folder is made here.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, recording: Uuid) -> Result<Self, Error> {
        let index = folder.join("index");
        fs::create_dir_all(&index).map_err(Error::file("create", &index))?;
        let met = Arc::new(Met::new());
        Ok(Self { folder: folder.to_owned(), recording, streams: 0, start: None, writer: None, met })
    }

    /// Lets a thread of its own write, behind a queue in memory, so that buffers are drained also while the disk stalls.
    /// The thread starts with the first stream; it calls `prepare` first and keeps what that gives.
    ///
    /// Not for buffers that are to survive this process: what waits in the queue does not.
    pub fn write_behind<G>(mut self, prepare: impl FnOnce() -> G + Send + 'static) -> Self {
        self.start = Some(Box::new(|| Writer::start(prepare)));
        self
    }

    /// Identity of the recording.
    pub fn recording(&self) -> Uuid {
        self.recording
    }

    /// Whether there was an event of the class with this id.
    pub fn has_met(&self, id: u16) -> bool {
        self.met.has(id)
    }

    pub(crate) fn stream(&mut self, name: &str, cpu: usize) -> Result<Stream, Error> {
        let stream = Stream::create(&self.folder, name, self.recording, self.streams, cpu as u32)?;
        self.streams += 1;
        Ok(stream)
    }

    /// A stream for a buffer.
    pub(crate) fn output(&mut self, name: &str, cpu: usize) -> Result<Output, Error> {
        let stream = self.stream(name, cpu)?;
        if let Some(start) = self.start.take() {
            // Where there is no thread to be had, the disk is waited for.
            self.writer = start().ok().map(Arc::new);
        }
        Ok(Output::new(stream, self.writer.clone(), self.met.clone()))
    }

    /// Whether a packet of `len` bytes can be written now, without waiting.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.has_room(len))
    }

    /// Waits until it can.
    pub(crate) fn wait_for_room(&self, len: usize) {
        if let Some(writer) = &self.writer {
            writer.wait_for_room(len);
        }
    }
}

/// What a finished or running stream amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// File name in the trace's folder; also for a buffer that lost everything and has no file.
    pub name: String,
    /// CPU.
    pub cpu: u32,
    /// Events written.
    pub events: u64,
    /// Packets written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events lost.
    pub lost: u64,
    /// Begin of the first packet, cycles, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// Overwritten before it was read.
    pub overwritten: OverwrittenTotal,
}

/// Sub-buffers that were overwritten before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OverwrittenTotal {
    /// How many.
    pub sub_buffers: u64,
    /// Bytes of events that were in them.
    pub bytes: u64,
}

impl From<Overwritten> for OverwrittenTotal {
    fn from(Overwritten { sub_buffers, bytes }: Overwritten) -> Self {
        Self { sub_buffers, bytes }
    }
}

/// Events lost in one buffer, for one reason, within a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossRange {
    /// Name of the stream.
    pub stream: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub events: u64,
    /// The buffer had lost none of them then, cycles.
    pub begin: u64,
    /// The buffer had lost all of them then, cycles.
    pub end: u64,
}

/// What was overwritten of one buffer before it was read, within a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverwrittenRange {
    /// Name of the stream.
    pub stream: String,
    /// How many.
    pub sub_buffers: u64,
    /// Bytes of events that were in them.
    pub bytes: u64,
    /// How many events were in them, where that is known: the kernel counts its own, by event and not by sub-buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// No event in them is older, cycles.
    pub begin: u64,
    /// No event in them is younger, cycles.
    pub end: u64,
}

impl OverwrittenRange {
    pub(crate) fn new(stream: &str, overwritten: Overwritten, begin: u64, end: u64) -> Self {
        let Overwritten { sub_buffers, bytes } = overwritten;
        Self { stream: stream.to_owned(), sub_buffers, bytes, events: None, begin, end }
    }
}

/// What a look at the buffers found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Found {
    /// How full the fullest buffer was, 0 to 1.
    pub fullest: f64,
    /// Bytes written to files.
    pub written: u64,
}

/// The one consumer of a region.
pub struct Drain {
    name: String,
    buffers: Vec<Buffer>,
    region: Region,
    polled: Instant,
    /// The clock when the region was made, and at the last look.
    origin: u64,
    stamp: u64,
    // Last, so that it is unmapped after all that points into it.
    memory: SharedMemory,
}

impl Drain {
    /// A new region in new memory. `name` is what its streams are called, with `_CPU` behind it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Result<Self, Error> {
        let memory = SharedMemory::new(geometry.size())?;
        Ok(Self::with_memory(memory, name, geometry, protocol, clock, recording))
    }

    /// As [`Drain::new`], with the buffers in a file.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn in_folder(
        folder: &BufferFolder,
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Result<Self, Error> {
        let memory = folder.memory(&name, geometry)?;
        Ok(Self::with_memory(memory, name, geometry, protocol, clock, recording))
    }

    fn with_memory(
        memory: SharedMemory,
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Self {
        // SAFETY: the memory is new, zeroed, mapped at a page and as large as the geometry says; `Drain` keeps it mapped
        // while it has the region and its readers.
        let region = unsafe { Region::create(memory.base(), geometry, protocol, clock.kind(), recording, 0) };
        let (polled, origin) = (Instant::now(), clock.now());
        let buffers = (0..geometry.cpus())
            // SAFETY: the region is new, so these are its first readers, and it gets no others.
            .map(|cpu| Buffer::new(cpu, unsafe { region.reader(cpu) }, polled, origin))
            .collect();
        Self { name, buffers, region, polled, origin, stamp: origin, memory }
    }

    /// Says in the region what real time its stamps are by the calibration at the recording's begin, for whoever finds it in
    /// a core dump.
    pub fn tell_real_time(&self, clock: &TraceClock, begin: &Calibration) {
        let (seconds, cycles) = clock.offset(begin);
        self.region.tell_real_time(clock.frequency(), seconds, cycles);
    }

    /// What its streams are called, without `_CPU`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The region.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The memory that it lies in, to be passed to other processes.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Writes full sub-buffers, and those parts of the others that would be older than `flush` at a next look
    /// `interval` from now.
    ///
    /// # Errors
    /// A file could not be written; what was not written stays in the buffers.
    pub fn poll(
        &mut self,
        trace: &mut UserTrace,
        clock: &TraceClock,
        flush: Duration,
        interval: Duration,
    ) -> Result<Found, Error> {
        let (now, stamp) = (Instant::now(), clock.now());
        let capacity = self.region.geometry().capacity() as f64;
        let mut found = Found::default();
        for buffer in &mut self.buffers {
            buffer.check()?;
            let waiting = buffer.reader.waiting();
            buffer.note_losses(&self.name, self.region.lost(buffer.cpu), self.stamp, stamp);
            if waiting == 0 || buffer.is_dead {
                buffer.waiting_since = now;
                continue;
            }
            found.fullest = found.fullest.max(waiting as f64 / capacity);
            let mut target = Target { trace, name: &self.name, region: self.region, memory: &self.memory };
            let full = buffer.write(&mut target, false)?;
            if full > 0 {
                // What is left was emitted after the sub-buffer that was current at the last look had been closed.
                buffer.waiting_since = self.polled.max(buffer.waiting_since);
            }
            found.written += full;
            if now.duration_since(buffer.waiting_since) + interval >= flush {
                found.written += buffer.write(&mut target, true)?;
                buffer.waiting_since = now;
            }
        }
        (self.polled, self.stamp) = (now, stamp);
        Ok(found)
    }

    /// In place of [`Drain::poll`] for a flight recorder, which writes nothing: notes what was lost.
    pub fn watch(&mut self, clock: &TraceClock) {
        let stamp = clock.now();
        for buffer in &mut self.buffers {
            buffer.note_losses(&self.name, self.region.lost(buffer.cpu), self.stamp, stamp);
        }
        self.stamp = stamp;
    }

    /// Name, clock when it was made, memory and buffers, for a snapshot.
    pub(crate) fn parts(&mut self) -> (&str, u64, &SharedMemory, &mut [Buffer]) {
        (&self.name, self.origin, &self.memory, &mut self.buffers)
    }

    /// Closes the region for its writers.
    pub fn close(&self) {
        self.region.close();
    }

    /// Writes all that is left, and a last packet where events were lost since the one before. Call it once nobody
    /// writes any more, or after [`Drain::close`]; what is emitted meanwhile is not waited for. With protocol `Smp`, what a
    /// dead process has reserved and not committed is skipped and counted lost.
    ///
    /// # Errors
    /// A file could not be written; what was for it is counted lost, and the other buffers are written all the same.
    pub fn finish(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        let mut result = Ok(());
        for buffer in &mut self.buffers {
            let mut target = Target { trace, name: &self.name, region: self.region, memory: &self.memory };
            let written = buffer.finish(&mut target, clock, self.stamp);
            if written.is_err() {
                buffer.abandon(&self.name, self.region, clock, self.stamp);
            }
            result = result.and(written);
        }
        self.stamp = clock.now();
        result
    }

    /// In place of [`Drain::finish`] when the trace cannot be written: counts what is left in the buffers as lost.
    pub fn abandon(&mut self, clock: &TraceClock) {
        for buffer in &mut self.buffers {
            buffer.abandon(&self.name, self.region, clock, self.stamp);
        }
        self.stamp = clock.now();
    }

    /// One line per buffer that had events or losses.
    pub fn summary(&self) -> Vec<StreamSummary> {
        self.buffers.iter().filter_map(|buffer| buffer.summary(&self.name)).collect()
    }

    /// What was lost and when, in the order of CPUs and times.
    pub fn losses(&self) -> impl Iterator<Item = &LossRange> {
        self.buffers.iter().flat_map(|buffer| &buffer.ranges)
    }

    /// What was overwritten unread and when, in the order of CPUs and times.
    pub fn overwritten(&self) -> impl Iterator<Item = &OverwrittenRange> {
        self.buffers.iter().flat_map(|buffer| &buffer.overwritten_ranges)
    }

    /// Buffers in which some process wrote nonsense, a line each.
    pub fn damages(&self) -> impl Iterator<Item = String> + '_ {
        self.buffers.iter().filter_map(|buffer| {
            let more = match buffer.damages {
                0 | 1 => String::new(),
                count => format!(", and {} more times", count - 1),
            };
            buffer.damage.map(|damage| format!("user/{}_{}: {damage}{more}", self.name, buffer.cpu))
        })
    }
}
