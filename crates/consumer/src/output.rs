//! A stream as a buffer sees it: written directly, or asynchronously through the queue of [`crate::writer`].
//!
//! A rotation closes the stream's file; the next packet goes to a new file of the same name in the next
//! archive. Times and counts continue for the buffer, and begin anew in the file.

use std::cell::Cell;
use std::sync::Arc;

use tracewing_ring::Chunk;
use tracewing_streams::{PacketTimes, Stream};
use tracewing_units::{Cpu, Cycles};

use crate::Error;
use crate::firsts::{Firsts, Replaced};
use crate::ids::Ids;
use crate::memory::SharedMemory;
use crate::names::Names;
use crate::outside::Insider;
use crate::summary::{OverwrittenTotal, StreamSummary};
use crate::whole_events::whole_events;
use crate::writer::{Counted, QueuedStream, Tally, Writer};

/// A stream that receives packets of several regions in turn.
pub(crate) struct Output {
    name: String,
    cpu: Cpu,
    /// `None` before the first packet, and after a rotation before the next one.
    way: Option<Way>,
    /// Classes that had an event.
    seen: Arc<Ids>,
    /// Classes whose events are counted as state.
    of_state: Arc<Ids>,
    firsts: Arc<Firsts>,
    names: Option<Arc<Names>>,
    /// State after the last packet, whether it was written or not.
    end: Cycles,
    lost: u64,
    skipped: u64,
    /// State after the last packet of the previous region, since each region counts from 0.
    lost_before: u64,
    skipped_before: u64,
    /// State when the current archive began, in which the file counts from 0.
    archived: Counts,
}

/// Counts of a stream over all archives.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    end: Cycles,
    lost: u64,
    skipped: u64,
}

/// The closed file of a stream, of whose packets some may still be in the queue.
pub(crate) struct Closed {
    pub(crate) name: String,
    pub(crate) cpu: Cpu,
    /// The end of the last packet.
    pub(crate) end: Cycles,
    way: Way,
}

/// Result of writing a chunk.
pub(crate) struct Appended {
    /// Bytes of its whole events: all, unless a process wrote nonsense.
    pub(crate) len: usize,
    /// First events of classes without a description.
    pub(crate) lost: u64,
}

enum Way {
    Direct {
        stream: Stream,
        count: Counted,
    },
    /// `pushed` packets were put into the queue.
    Queued {
        stream: Arc<QueuedStream>,
        writer: Arc<Writer>,
        pushed: u64,
    },
}

impl Way {
    fn new(stream: Stream, writer: Option<Arc<Writer>>) -> Self {
        match writer {
            None => Self::Direct { stream, count: Counted::default() },
            Some(writer) => Self::Queued { stream: QueuedStream::new(stream), writer, pushed: 0 },
        }
    }

    /// # Errors
    /// An earlier packet could not be written.
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Direct { .. } => Ok(()),
            Self::Queued { stream, .. } => stream.check(),
        }
    }

    /// What has been written so far.
    fn tally(&self) -> Tally {
        match self {
            Self::Direct { stream, count } => Tally::of(stream, *count),
            Self::Queued { stream, .. } => stream.tally(),
        }
    }
}

impl Closed {
    /// Whether no packet is in the queue any more.
    pub(crate) fn is_settled(&self) -> bool {
        match &self.way {
            Way::Direct { .. } => true,
            Way::Queued { stream, pushed, .. } => stream.finished() >= *pushed,
        }
    }

    /// Takes the number of events that could not be written.
    pub(crate) fn take_unwritten(&self) -> u64 {
        match &self.way {
            Way::Direct { .. } => 0,
            Way::Queued { stream, .. } => stream.take_unwritten(),
        }
    }

    /// # Errors
    /// A packet could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.way.check()
    }

    /// Waits until no packet is in the queue any more.
    pub(crate) fn wait(&self) {
        if let Way::Queued { writer, .. } = &self.way {
            writer.sync();
        }
    }

    /// The summary of the file, with these losses.
    pub(crate) fn summary(&self, lost: u64, overwritten: OverwrittenTotal) -> StreamSummary {
        summary(&self.name, self.cpu, self.way.tally(), lost, overwritten)
    }
}

/// What a block's events are changed by before they are written.
struct Replacer<'a> {
    insider: Option<&'a Insider>,
    firsts: &'a Firsts,
    names: Option<&'a Names>,
    seen: &'a Ids,
    of_state: &'a Ids,
    cpu: Cpu,
    /// The begin of the block's packet.
    begin: Cycles,
    is_last: bool,
    /// Whether the block has something to replace.
    is_needed: Cell<bool>,
    /// Number of events in it that are state.
    state: Cell<u64>,
}

impl Replacer<'_> {
    /// Takes note of an event of the block.
    #[inline]
    fn note(&self, id: u16) {
        let is_first = self.firsts.is_first(id);
        if !is_first {
            self.note_class(id);
        }
        if is_first || self.names.is_some_and(|names| names.is_one(id)) {
            self.is_needed.set(true);
        }
    }

    #[inline]
    fn note_class(&self, id: u16) {
        self.seen.insert(id);
        self.state.set(self.state.get() + u64::from(self.of_state.has(id)));
    }

    /// What is written of a block of so many events, of which these are left out or lost.
    fn counted(&self, events: u64, Replaced { left_out, lost }: Replaced) -> Counted {
        let events = events.saturating_sub(lost + left_out);
        let state = self.state.get().min(events);
        Counted { events: events - state, state }
    }

    /// Replaces first events; returns how many events are left out, and how many are lost. `None` where
    /// something is not known yet.
    fn replace(&self, block: &mut Vec<u8>) -> Option<Replaced> {
        self.insider.is_none_or(|insider| insider.replace(block, self.is_last)).then_some(())?;
        let replaced = self.firsts.replace(block, self.cpu, self.is_last, |id| self.note_class(id))?;
        self.names.iter().for_each(|names| names.replace(block, self.begin));
        Some(replaced)
    }
}

impl Output {
    /// A stream without a file ([`Output::open`]).
    pub(crate) fn new(
        name: String,
        cpu: Cpu,
        (seen, of_state): (Arc<Ids>, Arc<Ids>),
        firsts: Arc<Firsts>,
        names: Option<Arc<Names>>,
    ) -> Self {
        let (end, lost, skipped, lost_before, skipped_before) = (Cycles::ZERO, 0, 0, 0, 0);
        let (way, archived) = (None, Counts::default());
        Self {
            name,
            cpu,
            way,
            seen,
            of_state,
            firsts,
            names,
            end,
            lost,
            skipped,
            lost_before,
            skipped_before,
            archived,
        }
    }

    /// Whether it has a file in the current archive.
    pub(crate) fn is_open(&self) -> bool {
        self.way.is_some()
    }

    /// Gives it its file in the current archive.
    pub(crate) fn open(&mut self, stream: Stream, writer: Option<Arc<Writer>>) {
        self.way = Some(Way::new(stream, writer));
    }

    /// Closes the file, if it has one: the next packet goes to another one.
    pub(crate) fn close(&mut self) -> Option<Closed> {
        let way = self.way.take()?;
        self.archived = Counts { end: self.end, lost: self.lost, skipped: self.skipped };
        Some(Closed { name: self.name.clone(), cpu: self.cpu, end: self.end, way })
    }

    /// The following packets are those of another region.
    pub(crate) fn begin_region(&mut self) {
        (self.lost_before, self.skipped_before) = (self.lost, self.skipped);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Appends the whole events of a chunk of `memory`, which `insider` has written, as a packet. Afterwards
    /// the chunk may be released. Returns `None`, and does nothing, if something in it is not known yet; with
    /// `is_last` it is not waited for.
    ///
    /// # Errors
    /// This packet, or an earlier one in the queue, could not be written. If it was written directly, the
    /// chunk has not been counted yet.
    pub(crate) fn write(
        &mut self,
        memory: &SharedMemory,
        insider: Option<&Insider>,
        chunk: &Chunk,
        times: PacketTimes,
        is_last: bool,
    ) -> Result<Option<Appended>, Error> {
        let (times, in_file) = self.converted(times);
        let replacer = Replacer {
            insider,
            firsts: &self.firsts,
            names: self.names.as_deref(),
            seen: &self.seen,
            of_state: &self.of_state,
            cpu: self.cpu,
            begin: times.begin,
            is_last,
            is_needed: Cell::new(insider.is_some()),
            state: Cell::new(0),
        };
        let mut replaced = Replaced::default();
        let Some(way) = &mut self.way else { return Ok(None) };
        let len = match way {
            Way::Direct { stream, count } => {
                // SAFETY: the chunk lies in the region's mapping and is not released before the call's end.
                let (events, len) = unsafe { whole_events(chunk.bytes(), |id| replacer.note(id)) };
                if replacer.is_needed.get() {
                    let mut block = Vec::new();
                    memory.copy_into(&mut block, chunk.bytes().first(len));
                    let Some(all) = replacer.replace(&mut block) else { return Ok(None) };
                    replaced = all;
                    stream.write(&block, in_file)?;
                } else {
                    // SAFETY: as above, and `len` is at most the chunk's.
                    unsafe { stream.write_shared(chunk.bytes().first(len), in_file)? };
                }
                count.add(replacer.counted(events, replaced));
                len
            }
            Way::Queued { stream, writer, pushed } => {
                stream.check()?;
                let mut block = writer.block();
                memory.copy_into(&mut block, chunk.bytes());
                // SAFETY: these are the block's own bytes.
                let (events, len) = unsafe { whole_events(block.as_slice().into(), |id| replacer.note(id)) };
                block.truncate(len);
                if replacer.is_needed.get() {
                    let Some(all) = replacer.replace(&mut block) else { return Ok(None) };
                    replaced = all;
                }
                *pushed += 1;
                writer.push(stream, block, replacer.counted(events, replaced), in_file);
                len
            }
        };
        self.note(times);
        Ok(Some(Appended { len, lost: replaced.lost }))
    }

    /// Appends events of the recorder's own as a packet.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub(crate) fn append(
        &mut self,
        own: Vec<u8>,
        own_count: Counted,
        times: PacketTimes,
    ) -> Result<(), Error> {
        let (times, in_file) = self.converted(times);
        let Some(way) = &mut self.way else { return Ok(()) };
        match way {
            Way::Direct { stream, count } => {
                stream.write(&own, in_file)?;
                count.add(own_count);
            }
            Way::Queued { stream, writer, pushed } => {
                stream.check()?;
                *pushed += 1;
                writer.push(stream, own, own_count, in_file);
            }
        }
        self.note(times);
        Ok(())
    }

    /// Appends a packet without events, so that losses after the last event are seen.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub(crate) fn write_empty(&mut self, times: PacketTimes) -> Result<(), Error> {
        let (times, in_file) = self.converted(times);
        let Some(way) = &mut self.way else { return Ok(()) };
        match way {
            Way::Direct { stream, .. } => stream.write_empty(in_file)?,
            Way::Queued { stream, writer, pushed } => {
                stream.check()?;
                *pushed += 1;
                writer.push(stream, Vec::new(), Counted::default(), in_file);
            }
        }
        self.note(times);
        Ok(())
    }

    /// The times and counts of a region, converted to those of the stream, and to those of its file.
    fn converted(&self, times: PacketTimes) -> (PacketTimes, PacketTimes) {
        let times = self.of_stream(times);
        (times, self.of_file(times))
    }

    /// Converts a region's counts to those of the stream.
    fn of_stream(&self, times: PacketTimes) -> PacketTimes {
        PacketTimes {
            lost: self.lost_before.saturating_add(times.lost),
            skipped: self.skipped_before.saturating_add(times.skipped),
            ..times
        }
    }

    /// Converts times and counts of the stream to those of its file in the current archive.
    fn of_file(&self, times: PacketTimes) -> PacketTimes {
        let Counts { end, lost, skipped } = self.archived;
        let (begin, end) = (times.begin.max(end), times.end.max(end));
        PacketTimes {
            begin,
            end,
            lost: times.lost.saturating_sub(lost),
            skipped: times.skipped.saturating_sub(skipped),
        }
    }

    fn note(&mut self, times: PacketTimes) {
        self.end = self.end.max(times.begin).max(times.end);
        self.lost = self.lost.max(times.lost);
        self.skipped = self.skipped.max(times.skipped);
    }

    /// # Errors
    /// An earlier packet could not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.way.as_ref().map_or(Ok(()), Way::check)
    }

    /// Waits until everything is written or has failed; returns how many events have failed since the last
    /// call.
    pub(crate) fn settle(&self) -> u64 {
        match &self.way {
            None | Some(Way::Direct { .. }) => 0,
            Some(Way::Queued { stream, writer, .. }) => {
                writer.sync();
                stream.take_unwritten()
            }
        }
    }

    /// The summary of the file so far, with these losses; `None` without a file.
    pub(crate) fn summary(&self, lost: u64, overwritten: OverwrittenTotal) -> Option<StreamSummary> {
        let tally = self.way.as_ref()?.tally();
        Some(summary(&self.name, self.cpu, tally, lost, overwritten))
    }

    /// The end of the last packet.
    pub(crate) fn end(&self) -> Cycles {
        self.end
    }

    /// Events that the region has lost, according to the last packet.
    pub(crate) fn lost(&self) -> u64 {
        self.lost - self.lost_before
    }

    /// Packets of the region that were skipped, according to the last packet's number.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped - self.skipped_before
    }
}

fn summary(
    name: &str,
    cpu: Cpu,
    Tally { count: Counted { events, state }, packets, bytes, begin }: Tally,
    lost: u64,
    overwritten: OverwrittenTotal,
) -> StreamSummary {
    StreamSummary {
        begin: (packets > 0).then_some(begin),
        events,
        state_events: state,
        packets,
        bytes,
        ..StreamSummary::without_file(name, cpu, lost, overwritten)
    }
}
