//! All CPU buffers of one region: what is due is written, what was lost is noted with the time in which it was lost.
//!
//! The drain is driven by a timer that its owner keeps: programs never wake their consumer. Full sub-buffers are
//! written at once; a partly filled one only when its oldest event would otherwise reach the disk too late.
//!
//! The region may be written by hostile processes. The worst that they can do is to lose events and to fill the trace with
//! nonsense: the `ring` crate's reader bounds everything that it hands out, what it finds damaged is skipped and counted as
//! a loss, events are checked to follow each other before they are written, and a count of losses that the time does not
//! allow is unknown, not part of any total.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use serde::Serialize;
use tracewing_abi::region::{Geometry, Protocol};
use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_ring::{Overwritten, Region};

use crate::Error;
use crate::buffer::{Buffer, Target, UNWRITTEN};
use crate::children::ChildLosses;
use crate::clock::{Calibration, TraceClock};
use crate::firsts::Firsts;
use crate::memory::SharedMemory;
use crate::met::Met;
use crate::names::Names;
use crate::output::Output;
use crate::stream::{Stream, TraceDir};
use crate::streams::Streams;
use crate::survival::BufferFolder;
use crate::writer::Writer;

/// The user trace that streams are added to.
pub struct UserTrace {
    folder: TraceDir,
    recording: Uuid,
    made: u64,
    streams: Streams<Output>,
    /// Streams that no region is to continue.
    closed: Vec<Output>,
    /// What regions that are gone have lost, by the name of the stream.
    lost: BTreeMap<String, Lost>,
    /// Makes `writer` when the first stream needs it.
    start: Option<StartWriter>,
    writer: Option<Arc<Writer>>,
    met: Arc<Met>,
    firsts: Arc<Firsts>,
    names: Option<Arc<Names>>,
}

/// Events lost of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    cpu: usize,
    events: u64,
    is_unknown: bool,
    overwritten: OverwrittenTotal,
}

type StartWriter = Box<dyn FnOnce() -> std::io::Result<Writer> + Send>;

impl UserTrace {
    /// The trace in `folder`, whose `index` folder is made here.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Dir, recording: Uuid) -> Result<Self, Error> {
        let met = Arc::new(Met::new());
        Ok(Self {
            folder: TraceDir::new(folder)?,
            recording,
            made: 0,
            streams: Streams::new(),
            closed: Vec::new(),
            lost: BTreeMap::new(),
            start: None,
            writer: None,
            met,
            firsts: Arc::default(),
            names: None,
        })
    }

    /// Lets a thread of its own write, behind a queue in memory, so that buffers are drained also while the disk stalls.
    /// The thread starts with the first stream; it calls `prepare` first and keeps what that gives.
    ///
    /// Not for buffers that are to survive this process: what waits in the queue does not.
    pub fn write_behind<G>(mut self, prepare: impl FnOnce() -> G + Send + 'static) -> Self {
        self.start = Some(Box::new(|| Writer::start(prepare)));
        self
    }

    /// Has names read of threads of other processes.
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = Some(names);
        self
    }

    /// Where names are read.
    pub fn names(&self) -> Option<&Names> {
        self.names.as_deref()
    }

    /// Identity of the recording.
    pub fn recording(&self) -> Uuid {
        self.recording
    }

    /// What becomes of first events of classes.
    pub fn firsts(&self) -> &Arc<Firsts> {
        &self.firsts
    }

    /// Whether there was an event of the class with this id.
    pub fn has_met(&self, id: u16) -> bool {
        self.met.has(id)
    }

    pub(crate) fn stream(&mut self, name: &str, cpu: usize) -> Result<Stream, Error> {
        let stream = Stream::create(&self.folder, name, self.recording, self.made, cpu as u32)?;
        self.made += 1;
        Ok(stream)
    }

    /// A stream for a buffer whose first packet does not begin before `begin`: a new one, or one that another region is done
    /// with.
    pub(crate) fn output(&mut self, label: &str, cpu: usize, begin: u64) -> Result<Output, Error> {
        if let Some(mut output) = self.streams.take(label, cpu, begin, Output::end) {
            output.begin_region();
            return Ok(output);
        }
        let name = self.streams.name(label, cpu);
        let stream = self.stream(&name, cpu)?;
        if let Some(start) = self.start.take() {
            // Where there is no thread to be had, the disk is waited for.
            self.writer = start().ok().map(Arc::new);
        }
        let (met, firsts, names) = (self.met.clone(), self.firsts.clone(), self.names.clone());
        Ok(Output::new(stream, cpu, self.writer.clone(), met, firsts, names))
    }

    /// A region is done with a stream; another one can continue it, or must not.
    pub(crate) fn give_back(&mut self, label: &str, output: Output, can_continue: bool) {
        match can_continue {
            true => self.streams.give_back(label, output.cpu(), output),
            false => self.closed.push(output),
        }
    }

    /// A region that is gone has lost that much of a stream.
    pub(crate) fn lose(
        &mut self,
        stream: &str,
        cpu: usize,
        events: u64,
        is_unknown: bool,
        overwritten: OverwrittenTotal,
    ) {
        if events > 0 || is_unknown || overwritten.sub_buffers > 0 {
            let lost = self.lost.entry(stream.to_owned()).or_default();
            lost.cpu = cpu;
            lost.events = lost.events.saturating_add(events);
            lost.is_unknown |= is_unknown;
            lost.overwritten.add(overwritten);
        }
    }

    /// The streams of regions that are gone, a line each: those that have files, and those that lost everything.
    pub fn summary(&self) -> Vec<StreamSummary> {
        let mut lost = self.lost.clone();
        let outputs = self.streams.idle().chain(&self.closed);
        let mut all: Vec<StreamSummary> = outputs
            .map(|output| {
                let Lost { events, is_unknown, overwritten, .. } =
                    lost.remove(output.name()).unwrap_or_default();
                StreamSummary { is_lost_unknown: is_unknown, ..output.summary(events, overwritten) }
            })
            .collect();
        all.extend(lost.into_iter().map(|(name, lost)| StreamSummary {
            name,
            cpu: lost.cpu as u32,
            events: 0,
            packets: 0,
            bytes: 0,
            lost: lost.events,
            is_lost_unknown: lost.is_unknown,
            begin: None,
            overwritten: lost.overwritten,
        }));
        all.sort_by(|one, other| (one.cpu, &one.name).cmp(&(other.cpu, &other.name)));
        all
    }

    /// Waits until everything is written of the regions that are gone, and gives what could not be, and why.
    pub fn settle(&mut self, clock: &TraceClock) -> (Vec<LossRange>, Result<(), Error>) {
        let (mut losses, mut result) = (Vec::new(), Ok(()));
        for output in self.streams.idle().chain(&self.closed) {
            let events = output.settle();
            result = result.and_then(|()| output.check());
            if events > 0 {
                let (stream, reason) = (output.name().to_owned(), UNWRITTEN.to_owned());
                losses.push(LossRange { stream, reason, events, begin: output.end(), end: clock.now() });
                let lost = self.lost.entry(output.name().to_owned()).or_default();
                lost.cpu = output.cpu();
                lost.events = lost.events.saturating_add(events);
            }
        }
        (losses, result)
    }

    /// Whether a packet of `len` bytes can be written now, without waiting.
    pub fn has_room(&self, len: usize) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.has_room(len))
    }

    /// Waits until it can.
    pub fn wait_for_room(&self, len: usize) {
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
    /// Events lost, as far as that is known.
    pub lost: u64,
    /// Whether more were lost: a process has overwritten the counters with nonsense.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lost_unknown: bool,
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
    /// Bytes of events that were in them, with their headers. Those are of different lengths, so no number of events follows from it.
    pub bytes: u64,
}

impl OverwrittenTotal {
    /// Adds others to them.
    pub fn add(&mut self, other: Self) {
        self.sub_buffers = self.sub_buffers.saturating_add(other.sub_buffers);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
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

/// The note for a buffer whose losses are unknown.
pub(crate) const UNKNOWN_LOSSES: &str =
    "a process has written nonsense into the loss counters: number of lost events unknown";

/// The one consumer of a region.
pub struct Drain {
    name: String,
    /// What its streams are called, without number and `_CPU`.
    label: String,
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

    /// As [`Drain::new`], for a child that is not forked yet, which its memory's name tells in `/proc/PID/maps`.
    ///
    /// # Errors
    /// As [`Drain::new`].
    pub fn for_child(
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Result<Self, Error> {
        let memory = SharedMemory::named("tracewing-child", geometry.size())?;
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
        Self { label: name.clone(), name, buffers, region, polled, origin, stamp: origin, memory }
    }

    /// Says in the region what real time its stamps are by the calibration at the recording's begin, for whoever finds it in
    /// a core dump.
    pub fn tell_real_time(&self, clock: &TraceClock, begin: &Calibration) {
        let (seconds, cycles) = clock.offset(begin);
        self.region.tell_real_time(clock.frequency(), seconds, cycles);
    }

    /// Keeps the region from children of the processes that get it: they count what they lose in a page apart.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn with_children(mut self) -> Result<Self, Error> {
        let children = ChildLosses::new(self.region.majors().load(Relaxed))?; // a wish, which orders nothing
        if let Some(first) = self.buffers.first_mut() {
            first.children = Some(children);
        }
        Ok(self)
    }

    fn children(&self) -> Option<&ChildLosses> {
        self.buffers.first()?.children.as_ref()
    }

    /// Descriptors for a process that is to write to the region: of that, and of the children's page where there is one.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn for_writers(&self) -> std::io::Result<Vec<OwnedFd>> {
        let region = self.memory.for_writers()?;
        let children = self.children().map(ChildLosses::for_writers).transpose()?;
        Ok([Some(region), children].into_iter().flatten().collect())
    }

    /// Whether any process can write to the region, or to the children's page.
    pub fn has_writers(&self) -> bool {
        self.memory.has_writers() || self.children().is_some_and(ChildLosses::has_writers)
    }

    /// Has the writers look at this for each event: which major classes are wanted.
    pub fn set_majors(&self, majors: u64) {
        self.region.majors().store(majors, Relaxed); // a wish, which orders nothing
        self.children().into_iter().for_each(|children| children.set_majors(majors));
    }

    /// Whether nothing was ever written to it, or lost.
    pub fn is_untouched(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.reader.waiting() == 0) && self.summary().is_empty()
    }

    /// Has its streams called by this, in place of the name: the regions with one label share streams, one after another.
    #[must_use]
    pub fn labelled(mut self, label: String) -> Self {
        self.label = label;
        self
    }

    /// The region's name, by which its file is called.
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
        self.look_at_file();
        for buffer in &mut self.buffers {
            buffer.check()?;
            let waiting = buffer.reader.waiting();
            buffer.note_losses(&self.label, self.region, clock, self.stamp, stamp);
            if waiting == 0 || buffer.is_dead {
                buffer.waiting_since = now;
                continue;
            }
            found.fullest = found.fullest.max(waiting as f64 / capacity);
            let mut target = Target { trace, label: &self.label, region: self.region, memory: &self.memory };
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
        self.look_at_file();
        for buffer in &mut self.buffers {
            buffer.note_losses(&self.label, self.region, clock, self.stamp, stamp);
        }
        self.stamp = stamp;
    }

    /// What was in a file that a program has shortened is not known.
    fn look_at_file(&mut self) {
        if self.memory.is_shortened() {
            self.buffers.iter_mut().for_each(|buffer| buffer.is_lost_unknown = true);
        }
    }

    /// Label, clock when it was made, memory and buffers, for a snapshot.
    pub(crate) fn parts(&mut self) -> (&str, u64, &SharedMemory, &mut [Buffer]) {
        (&self.label, self.origin, &self.memory, &mut self.buffers)
    }

    /// Closes the region for its writers.
    pub fn close(&self) {
        // First: who finds the region closed is to find this closed, too.
        self.children().into_iter().for_each(ChildLosses::close);
        self.region.close();
    }

    /// Writes all that is left, and a last packet where events were lost since the one before. Call it once nobody
    /// writes any more, or after [`Drain::close`]; what is emitted meanwhile is not waited for. With protocol `Smp`, what a
    /// dead process has reserved and not committed is skipped and counted lost.
    ///
    /// # Errors
    /// A file could not be written; what was for it is counted lost, and the other buffers are written all the same.
    pub fn finish(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        self.write_last(trace, clock, Buffer::finish)
    }

    /// Bytes of events that are not written yet, at most.
    pub fn waiting(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.reader.waiting()).sum()
    }

    /// In place of [`Drain::finish`] for a region to which others come: what is left is given to the trace and not waited for,
    /// and the streams are there for other regions. What could not be written, [`UserTrace::settle`] knows.
    ///
    /// # Errors
    /// A file could not be written; then everything that was not is counted lost.
    pub fn retire(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        self.write_last(trace, clock, Buffer::write_rest)
    }

    /// Writes the last of every buffer; what cannot be written is counted lost.
    fn write_last(
        &mut self,
        trace: &mut UserTrace,
        clock: &TraceClock,
        write: impl Fn(&mut Buffer, &mut Target<'_>, &TraceClock, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        for buffer in &mut self.buffers {
            let mut target = Target { trace, label: &self.label, region: self.region, memory: &self.memory };
            let written = write(buffer, &mut target, clock, self.stamp);
            if written.is_err() {
                buffer.abandon(&self.label, self.region, clock, self.stamp);
            }
            result = result.and(written);
        }
        self.stamp = clock.now();
        self.look_at_file();
        result
    }

    /// Hands the streams back to the trace, after [`Drain::retire`] or [`Drain::abandon`], and after what was lost and
    /// damaged has been asked for.
    pub fn give_back(&mut self, trace: &mut UserTrace) {
        self.buffers.iter_mut().for_each(|buffer| buffer.retire(trace, &self.label));
    }

    /// In place of [`Drain::finish`] when the trace cannot be written: counts what is left in the buffers as lost.
    pub fn abandon(&mut self, clock: &TraceClock) {
        for buffer in &mut self.buffers {
            buffer.abandon(&self.label, self.region, clock, self.stamp);
        }
        self.stamp = clock.now();
    }

    /// One line per buffer that had events or losses.
    pub fn summary(&self) -> Vec<StreamSummary> {
        self.buffers.iter().filter_map(|buffer| buffer.summary(&self.label)).collect()
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
            let damage = buffer.damage.map(|damage| format!("{damage}{more}"));
            let counters = buffer.is_lost_unknown.then(|| UNKNOWN_LOSSES.to_owned());
            let what: Vec<String> = damage.into_iter().chain(counters).collect();
            (!what.is_empty()).then(|| format!("user/{}: {}", buffer.name(&self.label), what.join("; ")))
        })
    }
}
