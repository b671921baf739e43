//! A stream as a buffer sees it: written directly, or asynchronously through the queue of [`crate::writer`].

use std::cell::Cell;
use std::sync::Arc;

use tracewing_ring::Chunk;
use tracewing_streams::{PacketTimes, Stream};
use tracewing_units::{Cpu, Cycles};

use crate::Error;
use crate::firsts::{Firsts, Replaced};
use crate::memory::SharedMemory;
use crate::names::Names;
use crate::outside::Insider;
use crate::seen::Seen;
use crate::summary::{OverwrittenTotal, StreamSummary};
use crate::whole_events::whole_events;
use crate::writer::{QueuedStream, Tally, Writer};

/// A stream that receives packets of several regions in turn.
pub(crate) struct Output {
    name: String,
    cpu: Cpu,
    way: Way,
    seen: Arc<Seen>,
    firsts: Arc<Firsts>,
    names: Option<Arc<Names>>,
    /// State after the last packet, whether it was written or not.
    end: Cycles,
    lost: u64,
    skipped: u64,
    /// State after the last packet of the previous region, since each region counts from 0.
    lost_before: u64,
    skipped_before: u64,
}

/// Result of writing a chunk.
pub(crate) struct Appended {
    /// Bytes of its whole events: all, unless a process wrote nonsense.
    pub(crate) len: usize,
    /// First events of classes without a description.
    pub(crate) lost: u64,
}

enum Way {
    Direct { stream: Stream, events: u64 },
    Queued { stream: Arc<QueuedStream>, writer: Arc<Writer> },
}

/// What a block's events are changed by before they are written.
struct Replacer<'a> {
    insider: Option<&'a Insider>,
    firsts: &'a Firsts,
    names: Option<&'a Names>,
    seen: &'a Seen,
    cpu: Cpu,
    /// The begin of the block's packet.
    begin: Cycles,
    is_last: bool,
    /// Whether the block has something to replace.
    is_needed: Cell<bool>,
}

impl Replacer<'_> {
    /// Takes note of an event of the block.
    #[inline]
    fn note(&self, id: u16) {
        let is_first = self.firsts.is_first(id);
        if !is_first {
            self.seen.note(id);
        }
        if is_first || self.names.is_some_and(|names| names.is_one(id)) {
            self.is_needed.set(true);
        }
    }

    /// Replaces first events; returns how many events are left out, and how many are lost. `None` where
    /// something is not known yet.
    fn replace(&self, block: &mut Vec<u8>) -> Option<Replaced> {
        self.insider.is_none_or(|insider| insider.replace(block, self.is_last)).then_some(())?;
        let replaced = self.firsts.replace(block, self.cpu, self.is_last, |id| self.seen.note(id))?;
        self.names.iter().for_each(|names| names.replace(block, self.begin));
        Some(replaced)
    }
}

impl Output {
    pub(crate) fn new(
        stream: Stream,
        cpu: Cpu,
        writer: Option<Arc<Writer>>,
        seen: Arc<Seen>,
        firsts: Arc<Firsts>,
        names: Option<Arc<Names>>,
    ) -> Self {
        let name = stream.name().to_owned();
        let way = match writer {
            None => Way::Direct { stream, events: 0 },
            Some(writer) => Way::Queued { stream: QueuedStream::new(stream), writer },
        };
        let (end, lost, skipped) = (Cycles::ZERO, 0, 0);
        Self { name, cpu, way, seen, firsts, names, end, lost, skipped, lost_before: 0, skipped_before: 0 }
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
        let times = self.of_stream(times);
        let replacer = Replacer {
            insider,
            firsts: &self.firsts,
            names: self.names.as_deref(),
            seen: &self.seen,
            cpu: self.cpu,
            begin: times.begin,
            is_last,
            is_needed: Cell::new(insider.is_some()),
        };
        let note = |id| replacer.note(id);
        let mut lost = 0;
        let len = match &mut self.way {
            Way::Direct { stream, events } => {
                // SAFETY: the chunk lies in the region's mapping and is not released before the call's end.
                let (mut count, len) = unsafe { whole_events(chunk.bytes(), note) };
                if replacer.is_needed.get() {
                    let mut block = Vec::new();
                    memory.copy_into(&mut block, chunk.bytes().first(len));
                    let Some(replaced) = replacer.replace(&mut block) else { return Ok(None) };
                    lost = replaced.lost;
                    count = count.saturating_sub(replaced.lost + replaced.left_out);
                    stream.write(&block, times)?;
                } else {
                    // SAFETY: as above, and `len` is at most the chunk's.
                    unsafe { stream.write_shared(chunk.bytes().first(len), times)? };
                }
                *events += count;
                len
            }
            Way::Queued { stream, writer } => {
                stream.check()?;
                let mut block = writer.block();
                memory.copy_into(&mut block, chunk.bytes());
                // SAFETY: these are the block's own bytes.
                let (mut count, len) = unsafe { whole_events(block.as_slice().into(), note) };
                block.truncate(len);
                if replacer.is_needed.get() {
                    let Some(replaced) = replacer.replace(&mut block) else { return Ok(None) };
                    lost = replaced.lost;
                    count = count.saturating_sub(replaced.lost + replaced.left_out);
                }
                writer.push(stream, block, count, times);
                len
            }
        };
        self.note(times);
        Ok(Some(Appended { len, lost }))
    }

    /// Appends a packet without events, so that losses after the last event are seen.
    ///
    /// # Errors
    /// As for [`Output::write`].
    pub(crate) fn write_empty(&mut self, times: PacketTimes) -> Result<(), Error> {
        let times = self.of_stream(times);
        match &mut self.way {
            Way::Direct { stream, .. } => stream.write_empty(times)?,
            Way::Queued { stream, writer } => {
                stream.check()?;
                writer.push(stream, Vec::new(), 0, times);
            }
        }
        self.note(times);
        Ok(())
    }

    /// Converts a region's counts to those of the stream.
    fn of_stream(&self, times: PacketTimes) -> PacketTimes {
        PacketTimes {
            lost: self.lost_before.saturating_add(times.lost),
            skipped: self.skipped_before.saturating_add(times.skipped),
            ..times
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
        match &self.way {
            Way::Direct { .. } => Ok(()),
            Way::Queued { stream, .. } => stream.check(),
        }
    }

    /// Waits until everything is written or has failed; returns how many events have failed since the last
    /// call.
    pub(crate) fn settle(&self) -> u64 {
        match &self.way {
            Way::Direct { .. } => 0,
            Way::Queued { stream, writer } => {
                writer.sync();
                stream.take_unwritten()
            }
        }
    }

    /// What has been written so far.
    fn tally(&self) -> Tally {
        match &self.way {
            Way::Direct { stream, events } => Tally::of(stream, *events),
            Way::Queued { stream, .. } => stream.tally(),
        }
    }

    /// The summary so far, with these losses.
    pub(crate) fn summary(&self, lost: u64, overwritten: OverwrittenTotal) -> StreamSummary {
        let Tally { events, packets, bytes, begin } = self.tally();
        let (name, cpu) = (self.name.clone(), self.cpu);
        StreamSummary {
            name,
            cpu,
            events,
            packets,
            bytes,
            lost,
            is_lost_unknown: false,
            begin: Some(begin),
            overwritten,
        }
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
