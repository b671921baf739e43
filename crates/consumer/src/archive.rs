//! The part of a user trace that a rotation has closed: the files of its streams, and what was lost
//! meanwhile.
//!
//! Packets of these files may still be in the queue to the disk. What each thread does with them, and when:
//!
//! - The thread that drains the buffers pushes packets, closes files and pushes further packets to new files.
//!   The queue is one for all files, in the order of pushes. So once it has passed the last packet of a
//!   closed file, no packet of that file can come any more: the archive is settled, and its totals are final.
//! - The thread that writes takes packets from the queue and writes each to the file that it was pushed for.
//!   It knows nothing of archives, so a rotation never waits for it, nor does it wait for a rotation.
//! - A file that is closed stays open as a descriptor until its last packet is written. Its folder may be
//!   renamed meanwhile, since nothing is looked up by a path again.
//! - Programs write to the buffers all the while. A rotation reads the buffers as every look does, with the
//!   same protocol: what is not read then stays in the buffer and goes to the next archive.
//!
//! So an event is in the archive for whose file its packet was pushed, and in no other.

use std::collections::BTreeMap;

use tracewing_units::Cpu;

use crate::Error;
use crate::clock::TraceClock;
use crate::output::Closed;
use crate::summary::{LossRange, OverwrittenRange, OverwrittenTotal, StreamSummary};

/// Why events are missing that could not be written to the file system.
pub(crate) const UNWRITTEN: &str = "trace could not be written";

/// Losses of a stream's regions in one archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) cpu: Cpu,
    pub(crate) events: u64,
    pub(crate) is_unknown: bool,
    pub(crate) overwritten: OverwrittenTotal,
}

impl Lost {
    pub(crate) fn none(cpu: Cpu) -> Self {
        Self { cpu, events: 0, is_unknown: false, overwritten: OverwrittenTotal::default() }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.events == 0 && !self.is_unknown && self.overwritten.sub_buffers == 0
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.events = self.events.saturating_add(other.events);
        self.is_unknown |= other.is_unknown;
        self.overwritten.add(other.overwritten);
    }
}

/// What a rotation has closed.
#[derive(Default)]
pub struct Archive {
    closed: Vec<Closed>,
    /// Streams that were written at once.
    streams: Vec<StreamSummary>,
    /// By the name of the stream.
    lost: BTreeMap<String, Lost>,
    losses: Vec<LossRange>,
    overwritten: Vec<OverwrittenRange>,
}

/// What an archive amounts to.
pub struct ArchiveSummary {
    /// Those that have a file, or losses.
    pub streams: Vec<StreamSummary>,
    /// Losses with their times.
    pub losses: Vec<LossRange>,
    /// Data that was overwritten before it was read.
    pub overwritten: Vec<OverwrittenRange>,
    /// Why not all of it could be written.
    pub error: Option<Error>,
}

impl Archive {
    pub(crate) fn new(lost: BTreeMap<String, Lost>) -> Self {
        Self { lost, ..Self::default() }
    }

    pub(crate) fn close(&mut self, file: Option<Closed>) {
        self.closed.extend(file);
    }

    pub(crate) fn add_stream(&mut self, stream: Option<StreamSummary>) {
        self.streams.extend(stream);
    }

    /// Adds losses of a stream.
    pub(crate) fn lose(&mut self, stream: &str, lost: &Lost) {
        if !lost.is_nothing() {
            self.lost.entry(stream.to_owned()).or_insert_with(|| Lost::none(lost.cpu)).add(lost);
        }
    }

    /// Adds ranges of losses, whose events [`Archive::lose`] or the trace has counted.
    pub fn add_ranges(
        &mut self,
        losses: impl IntoIterator<Item = LossRange>,
        overwritten: impl IntoIterator<Item = OverwrittenRange>,
    ) {
        self.losses.extend(losses);
        self.overwritten.extend(overwritten);
    }

    /// Whether everything is written, or has failed.
    pub fn is_settled(&self) -> bool {
        self.closed.iter().all(Closed::is_settled)
    }

    /// The totals. Waits for packets that are still in the queue; none is if it [`Archive::is_settled`].
    pub fn finish(self, clock: &TraceClock) -> ArchiveSummary {
        let Self { closed, mut streams, mut lost, mut losses, overwritten } = self;
        let mut error = None;
        for file in &closed {
            file.wait();
            let mut of_it = lost.remove(&file.name).unwrap_or_else(|| Lost::none(file.cpu));
            let events = file.take_unwritten();
            if events > 0 {
                of_it.events = of_it.events.saturating_add(events);
                let (stream, reason) = (file.name.clone(), UNWRITTEN.to_owned());
                losses.push(LossRange { stream, reason, events, begin: file.end, end: clock.now() });
            }
            error = error.or(file.check().err());
            let Lost { events, is_unknown, overwritten, .. } = of_it;
            streams.push(StreamSummary { is_lost_unknown: is_unknown, ..file.summary(events, overwritten) });
        }
        streams.extend(lost.iter().map(|(name, lost)| without_file(name, lost)));
        streams.sort_by(|one, other| (one.cpu, &one.name).cmp(&(other.cpu, &other.name)));
        ArchiveSummary { streams, losses, overwritten, error }
    }
}

/// The summary of a stream that has only losses.
pub(crate) fn without_file(name: &str, lost: &Lost) -> StreamSummary {
    let Lost { cpu, events, is_unknown, overwritten } = *lost;
    StreamSummary {
        is_lost_unknown: is_unknown,
        ..StreamSummary::without_file(name, cpu, events, overwritten)
    }
}
