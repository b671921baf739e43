//! All CPU buffers of one region: writes what is due, and records losses with the interval in which they
//! happened.
//!
//! The drain is driven by a timer that its owner keeps: programs never wake their consumer. Full sub-buffers
//! are written at once; a partly filled one only when its oldest event would otherwise reach the disk too
//! late.
//!
//! The region may be written by hostile processes. The worst that they can do is to lose events and to fill
//! the trace with nonsense: the `ring` crate's reader bounds everything that it hands out, what it finds
//! damaged is skipped and counted as a loss, events are checked to follow each other before they are written,
//! and a count of losses that the time does not allow is unknown, not part of any total.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracewing_abi::region::{Geometry, Protocol};
use tracewing_ctf::model::Uuid;
use tracewing_ring::{Region, UpTo};
use tracewing_units::{Cpu, Cycles};

use crate::Error;
use crate::archive::Archive;
use crate::buffer::{Buffer, Target};
use crate::children::ChildLosses;
use crate::clock::{Calibration, TraceClock};
use crate::memory::SharedMemory;
use crate::outside::Insider;
use crate::summary::{LossRange, OverwrittenRange, StreamSummary};
use crate::survival::BufferFolder;
use crate::trace::UserTrace;

/// Findings of a look at the buffers.
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
    /// The process of another PID namespace that writes to it.
    insider: Option<Insider>,
    polled: Instant,
    /// The clock when the region was made, and at the last look.
    origin: Cycles,
    stamp: Cycles,
    // Last, so that it is unmapped after all that points into it.
    memory: SharedMemory,
}

/// Where the buffers of a region are.
#[derive(Debug, Clone, Copy)]
pub enum Backing<'a> {
    /// In memory that only the processes hold.
    Memory,
    /// In memory whose name in `/proc/PID/maps` says that it is reserved for a child that is not forked yet.
    Child,
    /// In a file of this folder, which survives the processes.
    File(&'a BufferFolder),
}

impl Backing<'_> {
    /// Makes zeroed memory for a region of this size.
    fn memory(self, name: &str, geometry: Geometry) -> Result<SharedMemory, Error> {
        match self {
            Self::Memory => SharedMemory::new(geometry.size()),
            Self::Child => SharedMemory::named("tracewing-child", geometry.size()),
            Self::File(folder) => folder.memory(name, geometry),
        }
    }
}

impl Drain {
    /// Creates a region. Its streams are named `name` plus `_CPU`.
    ///
    /// # Errors
    /// There is no memory for it, or no room for its file.
    pub fn new(
        backing: Backing<'_>,
        name: String,
        geometry: Geometry,
        protocol: Protocol,
        clock: &TraceClock,
        recording: Uuid,
    ) -> Result<Self, Error> {
        let memory = backing.memory(&name, geometry)?;
        // SAFETY: the memory is new, zeroed, mapped at a page and as large as the geometry says; `Drain`
        // keeps it mapped while it has the region and its readers.
        let region = unsafe { Region::create(memory.base(), geometry, protocol, clock.kind(), recording, 0) };
        let (polled, origin) = (Instant::now(), clock.now());
        let buffers = (0..geometry.cpus())
            // SAFETY: the region is new, so these are its first readers, and it gets no others.
            .map(|cpu| Buffer::new(Cpu::at(cpu), unsafe { region.reader(cpu) }, polled, origin))
            .collect();
        let (label, insider) = (name.clone(), None);
        Ok(Self { label, name, buffers, region, insider, polled, origin, stamp: origin, memory })
    }

    /// Stores the real time of the clock's origin in the region, according to the calibration at the
    /// recording's beginning, so that it is known in a core dump.
    pub fn set_real_time(&self, clock: &TraceClock, begin: &Calibration) {
        let (seconds, cycles) = clock.offset(begin);
        self.region.set_real_time(clock.frequency(), seconds, cycles);
    }

    /// Withholds the region from children of the processes that get it: they count their losses in a separate
    /// page.
    ///
    /// # Errors
    /// There is no memory for the page.
    pub fn with_children(mut self) -> Result<Self, Error> {
        let children = ChildLosses::new(self.region.majors().load(Relaxed))?; // a mask, which orders nothing
        if let Some(first) = self.buffers.first_mut() {
            first.children = Some(children);
        }
        Ok(self)
    }

    fn children(&self) -> Option<&ChildLosses> {
        self.buffers.first()?.children.as_ref()
    }

    /// Descriptors for a process that will write to the region: the region's and, if there is one, that of
    /// the children's page.
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

    /// Sets the mask of enabled major classes, which writers test for each event.
    pub fn set_majors(&self, majors: u64) {
        self.region.majors().store(majors, Relaxed); // a mask, which orders nothing
        self.children().into_iter().for_each(|children| children.set_majors(majors));
    }

    /// Whether nothing was ever written to the region, or lost.
    pub fn is_untouched(&self) -> bool {
        self.buffers.iter().all(|buffer| buffer.reader.waiting() == 0) && self.summary().is_empty()
    }

    /// Names its streams by a label instead of the region's name: regions with the same label share streams,
    /// one after another.
    #[must_use]
    pub fn labelled(mut self, label: String) -> Self {
        self.label = label;
        self
    }

    /// Sets the process of another PID namespace that writes to it, whose thread numbers are translated.
    #[must_use]
    pub fn of_insider(mut self, insider: Option<Insider>) -> Self {
        self.insider = insider;
        self
    }

    /// The process of another PID namespace that writes to it.
    pub fn insider(&mut self) -> Option<&mut Insider> {
        self.insider.as_mut()
    }

    /// The region's name, which is also that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The region that this drain reads.
    pub fn region(&self) -> Region {
        self.region
    }

    /// The memory of the region, to be passed to other processes.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Writes full sub-buffers, and the content of others that would be older than `flush` at the next look,
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
        self.insider.iter().for_each(Insider::look_at_times);
        for buffer in &mut self.buffers {
            buffer.check()?;
            let waiting = buffer.reader.waiting();
            buffer.note_losses(&self.label, self.region, clock, self.stamp, stamp);
            if waiting == 0 || buffer.is_dead {
                buffer.waiting_since = now;
                continue;
            }
            found.fullest = found.fullest.max(waiting as f64 / capacity);
            let mut target =
                Target::new(trace, &self.label, self.region, &self.memory, self.insider.as_ref(), clock);
            let full = buffer.write(&mut target, UpTo::LastFull)?;
            if full > 0 {
                // The remaining events were emitted after the sub-buffer that was current at the last look
                // had been closed.
                buffer.waiting_since = self.polled.max(buffer.waiting_since);
            }
            found.written += full;
            if now.duration_since(buffer.waiting_since) + interval >= flush {
                found.written += buffer.write(&mut target, UpTo::LastWritten)?;
                buffer.waiting_since = now;
            }
        }
        (self.polled, self.stamp) = (now, stamp);
        Ok(found)
    }

    /// Before a rotation: writes what the buffers hold by now, as far as the queue to the disk has room for
    /// it, and accounts for losses. What remains goes to the next archive.
    ///
    /// # Errors
    /// As for [`Drain::poll`].
    pub fn end_part(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        self.poll(trace, clock, Duration::ZERO, Duration::ZERO)?;
        for buffer in self.buffers.iter_mut().filter(|buffer| !buffer.is_dead) {
            let mut target =
                Target::new(trace, &self.label, self.region, &self.memory, self.insider.as_ref(), clock);
            buffer.end_part(&mut target, clock, self.stamp)?;
        }
        Ok(())
    }

    /// Moves the files of its streams to an archive; further packets go to the next one.
    pub fn rotate(&mut self, archive: &mut Archive) {
        self.buffers.iter_mut().for_each(|buffer| buffer.rotate(&self.label, archive));
    }

    /// Replaces [`Drain::poll`] for a flight recorder, which writes nothing: records the losses.
    pub fn watch(&mut self, clock: &TraceClock) {
        let stamp = clock.now();
        self.look_at_file();
        self.insider.iter().for_each(Insider::look_at_times);
        for buffer in &mut self.buffers {
            buffer.note_losses(&self.label, self.region, clock, self.stamp, stamp);
        }
        self.stamp = stamp;
    }

    /// If a program has shortened the file, the number of lost events is unknown.
    fn look_at_file(&mut self) {
        if self.memory.is_shortened() {
            self.buffers.iter_mut().for_each(|buffer| buffer.is_lost_unknown = true);
        }
    }

    /// Label, clock at creation, memory, writer and buffers, for a snapshot.
    pub(crate) fn parts(&mut self) -> (&str, Cycles, &SharedMemory, Option<&Insider>, &mut [Buffer]) {
        (&self.label, self.origin, &self.memory, self.insider.as_ref(), &mut self.buffers)
    }

    /// Closes the region for its writers.
    pub fn close(&self) {
        // Closed first: a writer that finds the region closed must find the children's page closed, too.
        self.children().into_iter().for_each(ChildLosses::close);
        self.region.close();
    }

    /// Writes all remaining events, and a last packet if events were lost since the one before. Call it when
    /// there are no more writers, or after [`Drain::close`]; events emitted during the call may be missed.
    /// With protocol `Smp`, what a dead process has reserved and not committed is skipped and counted as
    /// lost.
    ///
    /// # Errors
    /// A file could not be written; what it should have received is counted as lost, and the other buffers
    /// are still written.
    pub fn finish(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        self.write_last(trace, clock, Buffer::finish)
    }

    /// Upper limit of bytes of events that are not written yet.
    pub fn waiting(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.reader.waiting()).sum()
    }

    /// Replaces [`Drain::finish`] for a region that is followed by others: hands the remaining events to the
    /// trace without waiting, and frees the streams for other regions. [`UserTrace::settle`] reports what
    /// could not be written.
    ///
    /// # Errors
    /// A file could not be written; then everything that remains is counted as lost.
    pub fn retire(&mut self, trace: &mut UserTrace, clock: &TraceClock) -> Result<(), Error> {
        self.write_last(trace, clock, Buffer::write_rest)
    }

    /// Writes the remaining events of every buffer; what cannot be written is counted as lost.
    fn write_last(
        &mut self,
        trace: &mut UserTrace,
        clock: &TraceClock,
        write: impl Fn(&mut Buffer, &mut Target<'_>, &TraceClock, Cycles) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        for buffer in &mut self.buffers {
            let mut target =
                Target::new(trace, &self.label, self.region, &self.memory, self.insider.as_ref(), clock);
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

    /// Returns the streams to the trace, after [`Drain::retire`] or [`Drain::abandon`], and after the losses
    /// and damages have been queried.
    pub fn give_back(&mut self, trace: &mut UserTrace) {
        self.buffers.iter_mut().for_each(|buffer| buffer.retire(trace, &self.label));
    }

    /// Replaces [`Drain::finish`] if the trace cannot be written: counts the remaining events as lost.
    pub fn abandon(&mut self, clock: &TraceClock) {
        for buffer in &mut self.buffers {
            buffer.abandon(&self.label, self.region, clock, self.stamp);
        }
        self.stamp = clock.now();
    }

    /// A summary of each buffer that had events or losses.
    pub fn summary(&self) -> Vec<StreamSummary> {
        self.buffers.iter().filter_map(|buffer| buffer.summary(&self.label)).collect()
    }

    /// Losses with their times, ordered by CPU and time.
    pub fn losses(&self) -> impl Iterator<Item = &LossRange> {
        self.buffers.iter().flat_map(|buffer| &buffer.ranges)
    }

    /// Data that was overwritten before it was read, ordered by CPU and time.
    pub fn overwritten(&self) -> impl Iterator<Item = &OverwrittenRange> {
        self.buffers.iter().flat_map(|buffer| &buffer.overwritten_ranges)
    }

    /// Buffers in which a process wrote nonsense, one line each.
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
