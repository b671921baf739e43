//! The reading side of one CPU's buffer, the same for both protocols.
//!
//! Everything between `tail` (where this reader is) and `head` is stable: writers reuse a sub-buffer only after the
//! reader has released it by counting `consumed` up. A [`Chunk`] is a stretch of whole events inside one sub-buffer,
//! to be written elsewhere straight from shared memory.
//!
//! The words that say where events end come from processes that may be hostile or damaged: each is copied once and
//! checked. What fails a check is skipped as [`Damaged`], a whole sub-buffer at most, and reading goes on behind it.

use core::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, extend_stamp, split_header_word};
use tracewing_abi::region::{Protocol, SUB_BUFFER_HEADER};

use crate::Cpu;

/// Reads one CPU's buffer from its beginning on.
pub struct Reader {
    cpu: Cpu,
    protocol: Protocol,
    /// Position up to which everything has been released or skipped.
    tail: u64,
    /// Full stamp that no event behind `tail` is below.
    last: u64,
    /// Loss count to carry forward, so that it never goes backwards.
    lost: u64,
}

/// A stretch of whole events in shared memory, valid until it is released.
#[derive(Debug)]
pub struct Chunk {
    /// First byte of the first event.
    pub start: *const u8,
    /// Bytes; at least one event.
    pub len: usize,
    /// Stamp of the first event, in the recording's clock; or an earlier one not below the previous chunk's `end`.
    pub begin: u64,
    /// A stamp that no event of the chunk is above and none behind it is below.
    pub end: u64,
    /// Events lost on this CPU before the chunk's last event, cumulative.
    pub lost: u64,
    next_tail: u64,
}

/// A stretch of a buffer that cannot be read: its words contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Bytes that were skipped. 0: the write position itself is damaged, nothing can be read before that changes.
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
    /// Bytes skipped. They held at least one event; or none, where the process died after it had reserved in the next
    /// sub-buffer and before it closed this one: then the next is unfinished too.
    pub bytes: u64,
}

/// What a sub-buffer's words say about the stretch that can be read.
struct Extent {
    end: u64,
    whole: bool,
}

impl Reader {
    pub(crate) fn new(cpu: Cpu, protocol: Protocol) -> Self {
        Self { cpu, protocol, tail: 0, last: 0, lost: 0 }
    }

    /// Bytes written and not yet released, an upper bound; one load. Comparing it with the buffer's size tells how
    /// much time the reader has.
    pub fn waiting(&self) -> usize {
        let head = self.cpu.control().head.load(Relaxed);
        (head.saturating_sub(self.tail)).min(self.cpu.geometry().data_bytes() as u64) as usize
    }

    /// The next stretch: what is left of the oldest full sub-buffer; or, with `partial`, what the current one holds so
    /// far. `None` when there is nothing (yet).
    ///
    /// # Errors
    /// The buffer's words contradict each other; what they were about is skipped already, and the next call goes on
    /// behind it.
    pub fn next(&mut self, partial: bool) -> Result<Option<Chunk>, Damaged> {
        // A round that gives nothing leaves a sub-buffer behind. Not for ever, since writers go on meanwhile.
        for _ in 0..=self.cpu.geometry().sub_buffers() {
            let Some(extent) = self.extent(partial)? else { return Ok(None) };
            let sequence = self.sequence();
            let first = self.start_of(sequence) + SUB_BUFFER_HEADER as u64;
            if self.tail < first {
                self.enter(sequence, first, &extent)?;
            }
            if extent.end > self.tail {
                return self.chunk(extent).map(Some);
            }
            if !extent.whole {
                return Ok(None);
            }
            self.leave(sequence); // all of it was read in parts
        }
        Ok(None)
    }

    /// Gives a stretch back: writers may use its sub-buffer again once it was the last of it.
    pub fn release(&mut self, chunk: Chunk) {
        let sequence = self.sequence();
        self.tail = chunk.next_tail;
        self.last = chunk.end;
        self.lost = chunk.lost;
        if self.sequence() != sequence {
            self.give_back(sequence);
        }
    }

    /// For a `Smp` buffer whose process has died, when [`Reader::next`] with `partial` gives nothing more: reads what
    /// lies in front of the first uncommitted event, skips the rest of that sub-buffer, and says what was lost. `None`
    /// when nothing is left in the buffer.
    ///
    /// Call it until it gives `None`, releasing each chunk.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn finalise(&mut self) -> Result<Option<Result<Chunk, Unfinished>>, Damaged> {
        // As in `next`: a round that gives nothing leaves a sub-buffer behind.
        for _ in 0..=self.cpu.geometry().sub_buffers() {
            let head = self.checked_head()?;
            let sequence = self.sequence();
            let start = self.start_of(sequence);
            let end = head.min(start + self.bytes());
            if end <= self.tail || end <= start + SUB_BUFFER_HEADER as u64 {
                return Ok(None);
            }
            self.tail = self.tail.max(start + SUB_BUFFER_HEADER as u64);
            let cpu = self.cpu;
            let header = cpu.sub_buffer(sequence);
            let opened = header.sequence.load(Acquire) == sequence + 1; // with the writer's release in `open`
            if opened {
                self.last = self.last.max(header.begin.load(Relaxed));
                self.lost = self.lost.max(header.lost.load(Relaxed));
                if let Some(chunk) = self.walk(end, true)? {
                    return Ok(Some(Ok(chunk)));
                }
            }
            let bytes = end - self.tail;
            // The space behind the last event of a sub-buffer that was closed but not committed holds no event.
            let empty_rest = opened && header.used.load(Relaxed) == self.tail - start;
            self.tail = start + self.bytes();
            self.give_back(sequence);
            if !empty_rest {
                return Ok(Some(Err(Unfinished { after: self.last, bytes })));
            }
        }
        Ok(None)
    }

    fn bytes(&self) -> u64 {
        self.cpu.geometry().sub_buffer_bytes() as u64
    }

    /// The number of the sub-buffer that `tail` is in.
    fn sequence(&self) -> u64 {
        self.tail / self.bytes()
    }

    fn start_of(&self, sequence: u64) -> u64 {
        sequence * self.bytes()
    }

    /// `head`, which can lie no further ahead than writers could have got. (One that lies behind `tail` gives nothing to
    /// read.)
    fn checked_head(&mut self) -> Result<u64, Damaged> {
        // Acquire, with the store that ends a writer's sequence (`Publish`), or its compare-and-swap (`Smp`).
        let head = self.cpu.control().head.load(Acquire);
        let limit = self.start_of(self.sequence()) + self.cpu.geometry().data_bytes() as u64;
        if head > limit {
            return Err(Damaged { bytes: 0, cause: "write position outside the buffer" });
        }
        Ok(head)
    }

    /// How far the sub-buffer at `tail` can be read.
    fn extent(&mut self, partial: bool) -> Result<Option<Extent>, Damaged> {
        let sequence = self.sequence();
        let start = self.start_of(sequence);
        let index = sequence as usize & (self.cpu.geometry().sub_buffers() - 1);
        // Acquire, with the release add in `smp::commit`. Loaded before `head`: when it equals what `head` says was
        // reserved, nothing below `head` is uncommitted.
        let committed = self.cpu.control().committed[index].load(Acquire);
        let head = self.checked_head()?;
        let full = head >= start + self.bytes();
        if !full && (!partial || head <= start + SUB_BUFFER_HEADER as u64) {
            return Ok(None);
        }
        if self.protocol == Protocol::Smp {
            let lap = sequence / self.cpu.geometry().sub_buffers() as u64;
            let reserved = (head - start).min(self.bytes());
            if committed != lap * self.bytes() + reserved {
                return Ok(None);
            }
        }
        if !full {
            return Ok(Some(Extent { end: head, whole: false }));
        }
        let used = self.cpu.sub_buffer(sequence).used.load(Relaxed); // visible since `head`, or `committed`, is
        if !(SUB_BUFFER_HEADER as u64..=self.bytes()).contains(&used) || start + used < self.tail {
            return Err(self.skip(sequence, "sub-buffer with an impossible size"));
        }
        Ok(Some(Extent { end: start + used, whole: true }))
    }

    /// Begins with a new sub-buffer: checks and takes over what its header says.
    fn enter(&mut self, sequence: u64, first: u64, extent: &Extent) -> Result<(), Damaged> {
        let header = self.cpu.sub_buffer(sequence);
        let number = header.sequence.load(Acquire); // with the writer's release in `smp::open`
        let (begin, end) = (header.begin.load(Relaxed), header.end.load(Relaxed));
        let lost = header.lost.load(Relaxed);
        if number != sequence.wrapping_add(1) {
            return Err(self.skip(sequence, "sub-buffer with a foreign number"));
        }
        if begin < self.last || extent.whole && end < begin {
            return Err(self.skip(sequence, "sub-buffer whose time goes backwards"));
        }
        self.tail = first;
        self.last = begin;
        self.lost = self.lost.max(lost);
        Ok(())
    }

    fn chunk(&mut self, extent: Extent) -> Result<Chunk, Damaged> {
        let sequence = self.sequence();
        if !extent.whole {
            return match self.walk(extent.end, false)? {
                Some(chunk) => Ok(chunk),
                None => Err(self.skip_to(extent.end, "space without events")),
            };
        }
        let end = self.cpu.sub_buffer(sequence).end.load(Relaxed);
        let first = self.event(self.tail, extent.end, self.last);
        match first {
            Some((_, begin)) if begin <= end => Ok(Chunk {
                start: self.cpu.data(self.tail),
                len: (extent.end - self.tail) as usize,
                begin,
                end,
                lost: self.lost,
                next_tail: self.start_of(sequence) + self.bytes(),
            }),
            _ => Err(self.skip(sequence, "sub-buffer that begins with no event")),
        }
    }

    /// The stretch of events from `tail` to `limit`, found by walking over their lengths; with `marked`, to the first
    /// zero word. `None` when there is no event.
    fn walk(&mut self, limit: u64, marked: bool) -> Result<Option<Chunk>, Damaged> {
        let (mut at, mut last, mut begin) = (self.tail, self.last, None);
        while at < limit {
            let Some((length, stamp)) = self.event(at, limit, last) else {
                if marked {
                    break;
                }
                return Err(self.skip_to(limit, "event with an impossible length or stamp"));
            };
            begin.get_or_insert(stamp);
            (at, last) = (at + length, stamp);
        }
        Ok(begin.map(|begin| Chunk {
            start: self.cpu.data(self.tail),
            len: (at - self.tail) as usize,
            begin,
            end: last,
            lost: self.lost,
            next_tail: at,
        }))
    }

    /// Length and full stamp of the event at `at`, if its words make sense there.
    fn event(&self, at: u64, limit: u64, last: u64) -> Option<(u64, u64)> {
        let room = limit - at;
        if room < (HEADER + CONTEXT) as u64 {
            return None;
        }
        let word = self.word(at);
        let (low, id, length) = split_header_word(word);
        let length = u64::from(length);
        let header = if id == EXTENDED_ID { EXTENDED_HEADER } else { HEADER };
        if length < (header + CONTEXT) as u64 || length > room {
            return None;
        }
        let stamp = if id == EXTENDED_ID { self.word(at + HEADER as u64) } else { extend_stamp(last, low) };
        (stamp >= last).then_some((length, stamp))
    }

    /// Eight bytes of the buffer, copied once.
    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: `data` gives an address inside the CPU's data for any position. Volatile: another process may
            // change the byte, and the copy is what is checked and used.
            *byte = unsafe { self.cpu.data(at + i as u64).read_volatile() };
        }
        u64::from_le_bytes(bytes)
    }

    fn leave(&mut self, sequence: u64) {
        let end = self.cpu.sub_buffer(sequence).end.load(Relaxed);
        self.last = self.last.max(end);
        self.tail = self.start_of(sequence) + self.bytes();
        self.give_back(sequence);
    }

    fn skip(&mut self, sequence: u64, cause: &'static str) -> Damaged {
        let end = self.start_of(sequence) + self.bytes();
        let bytes = end - self.tail;
        self.tail = end;
        self.give_back(sequence);
        Damaged { bytes, cause }
    }

    fn skip_to(&mut self, position: u64, cause: &'static str) -> Damaged {
        let bytes = position - self.tail;
        self.tail = position;
        Damaged { bytes, cause }
    }

    /// Hands sub-buffer `sequence` back to the writers.
    fn give_back(&mut self, sequence: u64) {
        if self.protocol == Protocol::Smp {
            let bytes = self.cpu.geometry().sub_buffer_bytes();
            // SAFETY: `bytes` bytes from a sub-buffer's start on lie in the CPU's data; writers do not touch them
            // before `consumed` says so.
            unsafe { self.cpu.data(self.start_of(sequence)).write_bytes(0, bytes) };
        }
        // Release, with the acquire loads of writers that open the sub-buffer: all accesses above come first.
        self.cpu.control().consumed.store(sequence.wrapping_add(1), Release);
    }
}

// SAFETY: the reader's own words are plain; the buffer is shared between processes anyway.
unsafe impl Send for Reader {}
