//! The reading side of one CPU's buffer; it is the same for all protocols and both modes.
//!
//! A [`Chunk`] is a stretch of whole events inside one sub-buffer, which can be written elsewhere straight
//! from shared memory. [`Reader::next`] is ReadGetSubbuf (Desnoyers and Dagenais, Algorithm 6) and
//! [`Reader::release`] is ReadPutSubbuf (Algorithm 7), both refined to parts of a sub-buffer.
//!
//! In discard mode everything between the reader's position and `head` is stable: writers reuse a sub-buffer
//! only after the reader has moved `consumed` past it. In overwrite mode the reader takes a sub-buffer out of
//! the ring before it reads (`exchange`), and counts those that writers overwrote first.
//! [`Reader::give_back`] puts one into the ring again, for snapshots that overlap.
//!
//! The words that say where events end come from processes that may be hostile or damaged: each is copied
//! once and checked (`check`). Bytes that fail a check, a whole sub-buffer at most, are skipped as
//! [`Damaged`], and reading continues after them.

mod check;
mod contradiction;
mod exchange;

pub use contradiction::Contradiction;

use tracewing_abi::region::{Mode, Protocol, SUB_BUFFER_HEADER};
use tracewing_abi::shared::SharedBytes;
use tracewing_units::Cycles;

use crate::region::{Buffer, Region};
use crate::sync::Ordering::*;

/// The only reader of one CPU's buffer; made by `Region::reader`.
pub struct Reader {
    buffer: Buffer,
    protocol: Protocol,
    origin: u64,
    /// Number of the sub-buffer that the reader is at.
    sequence: u64,
    /// Bytes of it that were released or skipped.
    at: usize,
    /// Whether its header was read.
    is_entered: bool,
    /// Overwrite mode: index in the data of the sub-buffer that the reader owns.
    spare: usize,
    /// Overwrite mode: index of the sub-buffer that the ring got in exchange, while a chunk is out.
    lent: usize,
    /// Time at which that sub-buffer was opened; the stamps of its events count from it.
    begin: u64,
    /// Lower bound of all later stamps.
    last: u64,
    /// Loss count to carry forward, so that it never goes backwards.
    lost: u64,
    /// Bytes of events before the reader's position, as the writers count them.
    before: u64,
    /// Sub-buffers skipped since the last one read.
    skipped: u64,
    overwritten: Overwritten,
}

/// Data that was overwritten before it could be read, cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overwritten {
    /// Sub-buffers that were not read completely.
    pub sub_buffers: u64,
    /// Bytes of unread events in them, headers included: an event of the extended form is 10 bytes longer.
    /// That can be all events of a sub-buffer: with `Smp`, while the thread that reserved its first event has
    /// not opened it and is not running.
    pub bytes: u64,
}

/// A stretch of whole events in shared memory, valid until it is released or given back.
#[derive(Debug)]
pub struct Chunk {
    bytes: SharedBytes,
    /// Lower bound of the chunk's stamps, in the recording's clock; not below the previous chunk's `end`.
    pub begin: Cycles,
    /// Upper bound of the chunk's stamps and lower bound of all later ones.
    pub end: Cycles,
    /// Events lost on this CPU up to `end`, as far as the buffer says; cumulative.
    pub lost: u64,
    /// Data overwritten before the chunk, cumulative.
    pub overwritten: Overwritten,
    /// Index in the data of the chunk's sub-buffer.
    physical: usize,
    at: usize,
    /// Whether the sub-buffer ends with this chunk.
    is_last: bool,
    /// Whether writers are still in its sub-buffer. They may have lost events before its last one: where a
    /// long event finds no room, a short one still may.
    pub is_open: bool,
    /// Whether the sub-buffer was taken out of the ring.
    is_taken: bool,
}

impl Chunk {
    /// The chunk's bytes; at least one event.
    pub fn bytes(&self) -> SharedBytes {
        self.bytes
    }
}

/// A stretch of a buffer that cannot be read because its words contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Bytes skipped. 0: the write position itself is damaged; nothing can be read until it changes.
    pub bytes: u64,
    /// Which words contradict each other.
    pub cause: Contradiction,
}

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes of a buffer skipped: {}", self.bytes, self.cause)
    }
}

impl core::error::Error for Damaged {}

/// Space that a dead process reserved and never committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Stamp before the first lost event.
    pub after: Cycles,
    /// Bytes skipped. They held at least one event; or none, if the process died after it had reserved in the
    /// next sub-buffer and before it closed this one: then the next one is unfinished too.
    pub bytes: u64,
}

/// One piece of what dead writers left.
#[derive(Debug)]
pub enum Left {
    /// Whole events, not read before.
    Chunk(Chunk),
    /// Uncommitted space; it is already skipped.
    Unfinished(Unfinished),
    /// Nothing is left to read.
    Nothing,
}

/// How far [`Reader::next`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpTo {
    /// To the end of the last full sub-buffer.
    LastFull,
    /// To the last event written: also what the current sub-buffer holds.
    LastWritten,
}

/// How much there is to read (Desnoyers and Dagenais, Algorithm 5: READPOLL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// No sub-buffer is full.
    Nothing,
    /// At least one sub-buffer is full.
    Ready,
    /// The writers are in the last sub-buffer that they may use. In discard mode they will soon lose events;
    /// in overwrite mode the reader will.
    Urgent,
}

/// How far the writers are ahead.
struct Ahead {
    head: u64,
    /// Sub-buffers between the reader's and the writers'.
    sub_buffers: i64,
    /// Committed bytes of the reader's sub-buffer: with protocol `Publish`, all bytes before `head`.
    committed: u64,
}

/// A copy of a sub-buffer's header.
struct Header {
    number: u64,
    begin: u64,
    end: u64,
    used: u64,
    lost: u64,
    before: u64,
}

/// How much of the current sub-buffer can be read.
struct Extent {
    header: Header,
    /// Index of the sub-buffer in the data.
    physical: usize,
    /// Offset after the last byte of events.
    end: usize,
    /// Whether that is the end of the sub-buffer.
    whole: bool,
    is_taken: bool,
}

enum Found {
    Extent(Extent),
    /// Nothing to read yet.
    Nothing,
    /// Writers overwrote it first.
    Overwritten,
}

impl Region {
    /// The only reader of a buffer; it starts after what earlier readers released.
    ///
    /// # Safety
    /// The buffer has no other reader, in this process or another, for as long as this one lives.
    ///
    /// # Panics
    /// The region has no such buffer.
    pub unsafe fn reader(&self, buffer: usize) -> Reader {
        Reader::new(self.buffer(buffer), self.protocol(), self.origin())
    }
}

impl Reader {
    fn new(buffer: Buffer, protocol: Protocol, origin: u64) -> Self {
        let geometry = buffer.geometry();
        let consumed = buffer.control().consumed.load(Acquire); // with the release in `release` of an earlier reader
        let spare = exchange::spare(&buffer);
        Self {
            buffer,
            protocol,
            origin,
            sequence: geometry.sequence(consumed),
            at: geometry.at(consumed),
            is_entered: false,
            spare,
            lent: spare,
            begin: 0,
            last: 0,
            lost: 0,
            before: 0,
            skipped: 0,
            overwritten: Overwritten::default(),
        }
    }

    /// Bytes written and not yet released, an upper bound; costs one load. Its ratio to the buffer's capacity
    /// shows how much time the reader has.
    pub fn waiting(&self) -> usize {
        let geometry = self.buffer.geometry();
        let head = self.buffer.control().head.load(Relaxed);
        let ahead = geometry.distance(self.sequence, geometry.sequence(head));
        let bytes = ahead.saturating_mul(geometry.sub_buffer_bytes() as i64);
        let bytes = bytes.saturating_add(geometry.at(head) as i64).saturating_sub(self.at as i64);
        bytes.clamp(0, geometry.capacity() as i64) as usize
    }

    /// Whether the writers' position is before the reader's, which writers never cause.
    pub fn is_passed_back(&self) -> bool {
        let geometry = self.buffer.geometry();
        let head = self.buffer.control().head.load(Relaxed);
        match geometry.distance(self.sequence, geometry.sequence(head)) {
            0 => geometry.at(head) < self.at,
            ahead => ahead < 0,
        }
    }

    /// Whether there is a full sub-buffer, and whether reading it is urgent; costs one load.
    pub fn poll(&self) -> Readiness {
        let geometry = self.buffer.geometry();
        let head = self.buffer.control().head.load(Relaxed);
        match geometry.distance(self.sequence, geometry.sequence(head)) {
            ..=0 => Readiness::Nothing,
            ahead if ahead + 1 < geometry.sub_buffers() as i64 => Readiness::Ready,
            _ => Readiness::Urgent,
        }
    }

    /// The next stretch: the unread rest of the oldest full sub-buffer; or, with [`UpTo::LastWritten`], what
    /// the current one holds so far. `None` if there is nothing to read yet.
    ///
    /// # Errors
    /// The buffer's words contradict each other; the bytes they describe are already skipped, and the next
    /// call continues after them.
    pub fn next(&mut self, up_to: UpTo) -> Result<Option<Chunk>, Damaged> {
        // A round without a result advances by one sub-buffer. The loop is bounded, since writers continue
        // meanwhile.
        for _ in 0..=2 * self.buffer.geometry().sub_buffers() {
            let Some(ahead) = self.ahead()? else { return Ok(None) };
            let found = match self.buffer.geometry().mode() {
                Mode::Discard => self.find(&ahead, up_to)?,
                Mode::Overwrite => self.take(&ahead, up_to)?,
            };
            let extent = match found {
                Found::Extent(extent) => extent,
                Found::Nothing => return Ok(None),
                Found::Overwritten => {
                    self.skipped += 1;
                    self.step();
                    continue;
                }
            };
            if !self.is_entered {
                self.enter(&extent)?;
            }
            if extent.end > self.at {
                return self.chunk(&extent).map(Some);
            }
            if !extent.whole {
                return Ok(None);
            }
            self.leave(&extent); // all of it was read in parts
        }
        Ok(None)
    }

    /// Releases a chunk. Once it was the last of its sub-buffer, writers may use that sub-buffer again.
    pub fn release(&mut self, chunk: Chunk) {
        self.pass(&chunk);
        if chunk.is_taken {
            self.disown(chunk.physical);
        }
        self.publish_position();
    }

    /// In overwrite mode, in place of [`Reader::release`]: the chunk stays in the ring, where a reader that
    /// rewinds finds it again unless writers need its space first.
    pub fn give_back(&mut self, chunk: Chunk) {
        self.pass(&chunk);
        if chunk.is_taken {
            self.put_back(chunk.physical);
        }
    }

    /// Eight bytes of a chunk, for the model checker, whose regions have no addresses.
    #[cfg(loom)]
    pub fn word(&self, chunk: &Chunk, at: usize) -> u64 {
        self.buffer.word(chunk.physical, chunk.at + at)
    }

    /// In overwrite mode: goes back to the oldest sub-buffer still in the ring, for a snapshot. Everything
    /// before it is treated as overwritten.
    pub fn rewind(&mut self) {
        let geometry = self.buffer.geometry();
        let newest = geometry.sequence(self.buffer.control().head.load(Acquire)); // as in `ahead`
        let kept = geometry.sub_buffers() as i64 - 1;
        let written = geometry.distance(self.origin, newest);
        self.sequence = match written {
            0.. if written <= kept => self.origin,
            _ => geometry.later(newest, kept.wrapping_neg() as u64),
        };
        (self.at, self.is_entered) = (0, false);
        (self.last, self.lost, self.before) = (0, 0, 0);
        self.overwritten = Overwritten::default();
        self.skipped = geometry.distance(self.origin, self.sequence).max(0) as u64;
    }

    /// The size of a sub-buffer without its header, in bytes.
    pub fn sub_buffer_bytes(&self) -> usize {
        self.buffer.geometry().sub_buffer_bytes()
    }

    /// Data overwritten before the reader's position, as far as the reader knows; cumulative.
    pub fn overwritten(&self) -> Overwritten {
        let sub_buffers = self.overwritten.sub_buffers + self.skipped;
        Overwritten { sub_buffers, ..self.overwritten }
    }

    /// Reads what dead writers left in a `Smp` or `Local` buffer, once [`Reader::next`] with
    /// [`UpTo::LastWritten`] returns `None`: the events committed before the first gap. It then skips the
    /// rest of that sub-buffer and reports what was lost.
    ///
    /// Call it until it gives [`Left::Nothing`], releasing each chunk.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn finalise(&mut self) -> Result<Left, Damaged> {
        // As in `next`: a round without a result advances by one sub-buffer. Dead writers leave at most one
        // gap per slot.
        let (geometry, begin) = (self.buffer.geometry(), self.sequence);
        for _ in 0..=2 * geometry.sub_buffers() {
            if geometry.distance(begin, self.sequence) > geometry.sub_buffers() as i64 {
                break;
            }
            if let Some(chunk) = self.next(UpTo::LastWritten)? {
                return Ok(Left::Chunk(chunk));
            }
            let Some(ahead) = self.ahead()? else { break };
            match self.left_by_the_dead(&ahead)? {
                Left::Nothing if ahead.sub_buffers == 0 => break,
                Left::Nothing => {}
                left => return Ok(left),
            }
        }
        Ok(Left::Nothing)
    }

    /// Moves the reader past a chunk.
    fn pass(&mut self, chunk: &Chunk) {
        self.last = chunk.end.0;
        self.lost = chunk.lost;
        self.before = self.before.wrapping_add(chunk.bytes.len() as u64);
        if chunk.is_last {
            self.step();
        } else {
            self.at = chunk.at + chunk.bytes.len();
        }
    }

    /// Moves the reader to the next sub-buffer. In discard mode it clears this one's size, so that it is not
    /// taken for that of a later lap.
    fn step(&mut self) {
        if self.buffer.geometry().mode() == Mode::Discard {
            self.buffer.header(self.buffer.geometry().entry(self.sequence)).used.store(0, Relaxed);
        }
        self.sequence = self.buffer.geometry().later(self.sequence, 1);
        (self.at, self.is_entered) = (0, false);
    }

    fn leave(&mut self, extent: &Extent) {
        self.last = self.last.max(extent.header.end);
        self.step();
        if extent.is_taken {
            self.put_back(extent.physical);
        }
        self.publish_position();
    }

    /// Publishes the reader's position to the writers and to a later reader.
    fn publish_position(&mut self) {
        let position = self.buffer.geometry().position(self.sequence, 0, self.at);
        // Release, with the acquire load in `Buffer::claim`: all accesses to the released bytes come first.
        self.buffer.control().consumed.store(position, Release);
    }

    fn skip(&mut self, extent: &Extent, cause: Contradiction) -> Damaged {
        let bytes = self.buffer.geometry().sub_buffer_bytes() - self.at;
        self.step();
        if extent.is_taken {
            self.disown(extent.physical);
        }
        self.publish_position();
        Damaged { bytes: bytes as u64, cause }
    }

    fn skip_to(&mut self, end: usize, cause: Contradiction) -> Damaged {
        let bytes = end - self.at;
        self.at = end;
        Damaged { bytes: bytes as u64, cause }
    }
}

// SAFETY: the reader's own words are plain; the buffer is shared between processes anyway.
unsafe impl Send for Reader {}
// SAFETY: it says where bytes of that buffer lie; reading them is unsafe on any thread.
unsafe impl Send for Chunk {}

/// First offset at which an event can start.
const FIRST: usize = SUB_BUFFER_HEADER;
