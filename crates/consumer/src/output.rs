//! A stream as a buffer sees it: written at once, or behind its back through the queue of [`crate::writer`].

use std::sync::Arc;

use tracewing_ring::Chunk;

use crate::Error;
use crate::buffer::whole_events;
use crate::memory::SharedMemory;
use crate::met::Met;
use crate::stream::{Events, PacketTimes, Stream};
use crate::writer::{QueuedStream, Tally, Writer};

/// A stream that packets are given to.
pub(crate) struct Output {
    way: Way,
    met: Arc<Met>,
    /// What the last packet said, written or not.
    end: u64,
    lost: u64,
    skipped: u64,
}

enum Way {
    Direct { stream: Stream, events: u64 },
    Queued { stream: Arc<QueuedStream>, writer: Arc<Writer> },
}

impl Output {
    pub(crate) fn new(stream: Stream, writer: Option<Arc<Writer>>, met: Arc<Met>) -> Self {
        let way = match writer {
            None => Way::Direct { stream, events: 0 },
            Some(writer) => Way::Queued { stream: QueuedStream::new(stream), writer },
        };
        Self { way, met, end: 0, lost: 0, skipped: 0 }
    }

    /// Appends the whole events of a chunk of `memory` as a packet, and gives the bytes that they take: all, unless some
    /// process wrote nonsense. Afterwards the chunk is not needed any more.
    ///
    /// # Errors
    /// It, or in the queue one before, could not be written. Directly written, the chunk is still to be counted.
    pub(crate) fn write(
        &mut self,
        memory: &SharedMemory,
        chunk: &Chunk,
        times: PacketTimes,
    ) -> Result<usize, Error> {
        let note = |id| self.met.note(id);
        let len = match &mut self.way {
            Way::Direct { stream, events } => {
                // SAFETY: the chunk lies in the region's mapping and is not released before the call's end.
                let (count, len) = unsafe { whole_events(chunk.start, chunk.len, note) };
                // SAFETY: as above, and `len` is at most the chunk's.
                unsafe { stream.write(Events { start: chunk.start, len }, times)? };
                *events += count;
                len
            }
            Way::Queued { stream, writer } => {
                stream.check()?;
                let mut block = writer.block();
                memory.copy_into(&mut block, chunk.start, chunk.len);
                // SAFETY: these are the block's own bytes.
                let (count, len) = unsafe { whole_events(block.as_ptr(), block.len(), note) };
                block.truncate(len);
                writer.push(stream, block, count, times);
                len
            }
        };
        self.note(times);
        Ok(len)
    }

    /// Appends a packet without events, so that losses after the last event are seen.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub(crate) fn write_empty(&mut self, times: PacketTimes) -> Result<(), Error> {
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

    fn note(&mut self, times: PacketTimes) {
        self.end = self.end.max(times.begin).max(times.end);
        self.lost = self.lost.max(times.lost);
        self.skipped = self.skipped.max(times.skipped);
    }

    /// # Errors
    /// A packet could not be written, as is known now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.way {
            Way::Direct { .. } => Ok(()),
            Way::Queued { stream, .. } => stream.check(),
        }
    }

    /// Waits until everything is written or has failed, and gives how many events have failed since the last call.
    pub(crate) fn settle(&self) -> u64 {
        match &self.way {
            Way::Direct { .. } => 0,
            Way::Queued { stream, writer } => {
                writer.sync();
                stream.take_unwritten()
            }
        }
    }

    /// What is written by now.
    pub(crate) fn tally(&self) -> Tally {
        match &self.way {
            Way::Direct { stream, events } => Tally::of(stream, *events),
            Way::Queued { stream, .. } => stream.tally(),
        }
    }

    /// The end of the last packet, cycles.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Events lost, as the last packet says.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets skipped, as the last packet's number says.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }
}
