//! The reading side of one CPU's buffer, the same for all protocols and both modes.
//!
//! A [`Chunk`] is a stretch of whole events inside one sub-buffer, to be written elsewhere straight from
//! shared memory. [`Reader::next`] is the papers' ReadGetSubbuf (002, Algorithm 6) and [`Reader::release`]
//! its ReadPutSubbuf (Algorithm 7), both refined to parts of a sub-buffer.
//!
//! In discard mode everything between the reader's position and `head` is stable: writers reuse a sub-buffer
//! only after the reader has moved `consumed` past it. In overwrite mode the reader takes a sub-buffer out of
//! the ring before it reads (`exchange`), and counts those that writers were faster with.
//! [`Reader::give_back`] puts one into the ring again, for snapshots that overlap.
//!
//! The words that say where events end come from processes that may be hostile or damaged: each is copied
//! once and checked (`check`). What fails a check is skipped as [`Damaged`], a whole sub-buffer at most, and
//! reading goes on behind it.

mod check;
mod exchange;

use tracewing_abi::region::{Mode, Protocol, SUB_BUFFER_HEADER};
use tracewing_abi::shared::SharedBytes;

use crate::region::{Cpu, Region};
use crate::sync::Ordering::*;

/// Reads one CPU's buffer.
pub struct Reader {
    cpu: Cpu,
    protocol: Protocol,
    origin: u64,
    /// Number of the sub-buffer that is read, or will be.
    sequence: u64,
    /// Bytes of it that were released or skipped.
    at: usize,
    /// Whether its header has been looked at.
    is_entered: bool,
    /// Overwrite mode: the data's sub-buffer that is the reader's.
    spare: usize,
    /// The one that the ring got for it, while a chunk is out.
    lent: usize,
    /// Time at which that sub-buffer was opened, which its events' stamps count from.
    begin: u64,
    /// Stamp that no event from here on is given one below.
    last: u64,
    /// Loss count to carry forward, so that it never goes backwards.
    lost: u64,
    /// Bytes of events in front of the reader's position, as the writers count them.
    before: u64,
    /// Sub-buffers skipped since the last one that was read.
    skipped: u64,
    overwritten: Overwritten,
}

/// What was overwritten before it could be read, cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overwritten {
    /// Sub-buffers of which at least a part was not read.
    pub sub_buffers: u64,
    /// Bytes of events in them that were not read, with their headers: those of the extended form are 10
    /// bytes longer. That may be all of a sub-buffer: with `Smp`, while the thread that has reserved its
    /// first event has not opened it and does not run.
    pub bytes: u64,
}

/// A stretch of whole events in shared memory, valid until it is released or given back.
#[derive(Debug)]
pub struct Chunk {
    bytes: SharedBytes,
    /// Stamp of the first event, in the recording's clock; or an earlier one not below the previous chunk's
    /// `end`.
    pub begin: u64,
    /// A stamp that no event of the chunk is above and none behind it is below.
    pub end: u64,
    /// Events lost on this CPU before the chunk's last event, cumulative.
    pub lost: u64,
    /// What was overwritten in front of the chunk.
    pub overwritten: Overwritten,
    /// Where the bytes lie in the data.
    physical: usize,
    at: usize,
    /// Whether the sub-buffer ends with the chunk.
    is_last: bool,
    /// Whether it was taken out of the ring.
    is_taken: bool,
}

impl Chunk {
    /// Its bytes; at least one event.
    pub fn bytes(&self) -> SharedBytes {
        self.bytes
    }
}

/// A stretch of a buffer that cannot be read: its words contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Bytes that were skipped. 0: the write position itself is damaged, nothing can be read before that
    /// changes.
    pub bytes: u64,
    /// What was wrong.
    pub cause: &'static str,
}

impl core::fmt::Display for Damaged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} bytes of a buffer skipped: {}", self.bytes, self.cause)
    }
}

impl core::error::Error for Damaged {}

/// What a dead process left reserved and uncommitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Stamp before the first lost event.
    pub after: u64,
    /// Bytes skipped. They held at least one event; or none, where the process died after it had reserved in
    /// the next sub-buffer and before it closed this one: then the next is unfinished too.
    pub bytes: u64,
}

/// What is left of the writers that are dead.
#[derive(Debug)]
pub enum Left {
    /// Whole events.
    Chunk(Chunk),
    /// Something that they have not finished. It is skipped already.
    Unfinished(Unfinished),
    /// Nothing more.
    Nothing,
}

/// How far [`Reader::next`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To the end of the last full sub-buffer.
    Full,
    /// As far as is written: also what the current sub-buffer holds.
    Written,
}

/// What there is to read (002, Algorithm 5: READPOLL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// No full sub-buffer.
    Nothing,
    /// At least one.
    Ready,
    /// The writers are in the last one that they may use: in discard mode they lose events soon, in overwrite
    /// mode the reader.
    Urgent,
}

/// How far the writers are.
struct Ahead {
    head: u64,
    /// Sub-buffers between the reader's and theirs.
    sub_buffers: i64,
    /// Bytes of the reader's sub-buffer that are committed: all of those in front of `head`, with protocol
    /// `Publish`.
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

/// How far the current sub-buffer can be read.
struct Extent {
    header: Header,
    /// The data's sub-buffer that it is.
    physical: usize,
    /// Offset behind the last byte of events.
    end: usize,
    /// Whether that is the sub-buffer's last.
    whole: bool,
    is_taken: bool,
}

enum Found {
    Extent(Extent),
    /// Nothing to read yet.
    Nothing,
    /// Writers were faster.
    Overwritten,
}

impl Region {
    /// The one reader of a CPU's buffer, behind what earlier readers have released.
    ///
    /// # Safety
    /// The buffer has no other reader, in this process or another, for as long as this one lives.
    ///
    /// # Panics
    /// The region has no such CPU.
    pub unsafe fn reader(&self, cpu: usize) -> Reader {
        Reader::new(self.cpu(cpu), self.protocol(), self.origin())
    }
}

impl Reader {
    fn new(cpu: Cpu, protocol: Protocol, origin: u64) -> Self {
        let geometry = cpu.geometry();
        let consumed = cpu.control().consumed.load(Acquire); // with the release in `release` of an earlier reader
        let spare = exchange::spare(&cpu);
        Self {
            cpu,
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

    /// Bytes written and not yet released, an upper bound; one load. Comparing it with the buffer's capacity
    /// tells how much time the reader has.
    pub fn waiting(&self) -> usize {
        let geometry = self.cpu.geometry();
        let head = self.cpu.control().head.load(Relaxed);
        let ahead = geometry.distance(self.sequence, geometry.sequence(head));
        let bytes = ahead.saturating_mul(geometry.sub_buffer_bytes() as i64);
        let bytes = bytes.saturating_add(geometry.at(head) as i64).saturating_sub(self.at as i64);
        bytes.clamp(0, geometry.capacity() as i64) as usize
    }

    /// Whether the writers' position lies before the reader's, which writers never bring about.
    pub fn is_passed_back(&self) -> bool {
        let geometry = self.cpu.geometry();
        let head = self.cpu.control().head.load(Relaxed);
        match geometry.distance(self.sequence, geometry.sequence(head)) {
            0 => geometry.at(head) < self.at,
            ahead => ahead < 0,
        }
    }

    /// Whether there is a full sub-buffer, and whether it is urgent to read; one load.
    pub fn poll(&self) -> Readiness {
        let geometry = self.cpu.geometry();
        let head = self.cpu.control().head.load(Relaxed);
        match geometry.distance(self.sequence, geometry.sequence(head)) {
            ..=0 => Readiness::Nothing,
            ahead if ahead + 1 < geometry.sub_buffers() as i64 => Readiness::Ready,
            _ => Readiness::Urgent,
        }
    }

    /// The next stretch: what is left of the oldest full sub-buffer; or, with [`Reach::Written`], what the
    /// current one holds so far. `None` when there is nothing (yet).
    ///
    /// # Errors
    /// The buffer's words contradict each other; what they were about is skipped already, and the next call
    /// goes on behind it.
    pub fn next(&mut self, reach: Reach) -> Result<Option<Chunk>, Damaged> {
        // A round that gives nothing leaves a sub-buffer behind. Not for ever, since writers go on meanwhile.
        for _ in 0..=2 * self.cpu.geometry().sub_buffers() {
            let Some(ahead) = self.ahead()? else { return Ok(None) };
            let found = match self.cpu.geometry().mode() {
                Mode::Discard => self.find(&ahead, reach)?,
                Mode::Overwrite => self.take(&ahead, reach)?,
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

    /// Gives a stretch up: writers may use its sub-buffer again once it was the last of it.
    pub fn release(&mut self, chunk: Chunk) {
        self.pass(&chunk);
        if chunk.is_taken {
            self.disown(chunk.physical);
        }
        self.publish_position();
    }

    /// In overwrite mode, in place of [`Reader::release`]: the stretch stays in the ring, where a reader that
    /// goes back finds it again unless writers need its place first.
    pub fn give_back(&mut self, chunk: Chunk) {
        self.pass(&chunk);
        if chunk.is_taken {
            self.put_back(chunk.physical);
        }
    }

    /// Eight bytes of a chunk, for the model checker, whose regions have no addresses.
    #[cfg(loom)]
    pub fn word(&self, chunk: &Chunk, at: usize) -> u64 {
        self.cpu.word(chunk.physical, chunk.at + at)
    }

    /// In overwrite mode: goes back to the oldest sub-buffer that is still in the ring, for a snapshot. What
    /// came before it counts as overwritten.
    pub fn rewind(&mut self) {
        let geometry = self.cpu.geometry();
        let newest = geometry.sequence(self.cpu.control().head.load(Acquire)); // as in `ahead`
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
        self.cpu.geometry().sub_buffer_bytes()
    }

    /// What was overwritten in front of the reader's position, as far as it knows.
    pub fn overwritten(&self) -> Overwritten {
        let sub_buffers = self.overwritten.sub_buffers + self.skipped;
        Overwritten { sub_buffers, ..self.overwritten }
    }

    /// For a `Smp` or `Local` buffer whose writers are dead, when [`Reader::next`] with [`Reach::Written`]
    /// gives nothing more: reads what was committed in front of the first gap, skips the rest of that
    /// sub-buffer, and says what was lost.
    ///
    /// Call it until it gives [`Left::Nothing`], releasing each chunk.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn finalise(&mut self) -> Result<Left, Damaged> {
        // As in `next`: a round that gives nothing leaves a sub-buffer behind. Dead writers leave no more
        // than there are slots.
        let (geometry, begin) = (self.cpu.geometry(), self.sequence);
        for _ in 0..=2 * geometry.sub_buffers() {
            if geometry.distance(begin, self.sequence) > geometry.sub_buffers() as i64 {
                break;
            }
            if let Some(chunk) = self.next(Reach::Written)? {
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

    /// Moves the reader behind a chunk.
    fn pass(&mut self, chunk: &Chunk) {
        self.last = chunk.end;
        self.lost = chunk.lost;
        self.before = self.before.wrapping_add(chunk.bytes.len() as u64);
        if chunk.is_last {
            self.step();
        } else {
            self.at = chunk.at + chunk.bytes.len();
        }
    }

    /// Moves the reader to the next sub-buffer. In discard mode nobody takes this one's size for that of a
    /// later lap.
    fn step(&mut self) {
        if self.cpu.geometry().mode() == Mode::Discard {
            self.cpu.header(self.cpu.geometry().entry(self.sequence)).used.store(0, Relaxed);
        }
        self.sequence = self.cpu.geometry().later(self.sequence, 1);
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

    /// Lets the writers, and a reader that comes after this one, know how far it is.
    fn publish_position(&mut self) {
        let position = self.cpu.geometry().position(self.sequence, 0, self.at);
        // Release, with the acquire load in `Cpu::claim`: all accesses to what is given up come first.
        self.cpu.control().consumed.store(position, Release);
    }

    fn skip(&mut self, extent: &Extent, cause: &'static str) -> Damaged {
        let bytes = self.cpu.geometry().sub_buffer_bytes() - self.at;
        self.step();
        if extent.is_taken {
            self.disown(extent.physical);
        }
        self.publish_position();
        Damaged { bytes: bytes as u64, cause }
    }

    fn skip_to(&mut self, end: usize, cause: &'static str) -> Damaged {
        let bytes = end - self.at;
        self.at = end;
        Damaged { bytes: bytes as u64, cause }
    }
}

// SAFETY: the reader's own words are plain; the buffer is shared between processes anyway.
unsafe impl Send for Reader {}
// SAFETY: it says where bytes of that buffer lie; reading them is unsafe on any thread.
unsafe impl Send for Chunk {}

/// First offset at which an event can lie.
const FIRST: usize = SUB_BUFFER_HEADER;
