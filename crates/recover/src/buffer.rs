//! One CPU's buffer in memory written by another process: the sub-buffers that exist, and the events in them.
//!
//! This is not the recorder's reader (`tracewing_ring::Reader`), which takes turns with living writers and
//! changes the buffer. This one changes nothing, reads everything that still exists, whether or not a
//! recorder has read it, and trusts nothing:
//!
//! - A sub-buffer is found by the number in its own header, wherever it is; that number must be one that the
//!   ring can hold now: at most one lap before the write position.
//! - A sub-buffer that the writers have left records how much of it is used; the write position determines
//!   the current one's size. With protocols `Smp` and `Local`, only bytes committed without a gap are used.
//! - Events must follow each other without a gap, none older than its sub-buffer's beginning or younger than
//!   its end, and no sub-buffer older than the one before it. Everything after the first violation is treated
//!   as damaged.
//! - In memory that other threads may be writing to, a sub-buffer is copied first, then the write position is
//!   read again: if that has come around meanwhile, or the header has changed, the copy is dropped. If a
//!   writer has closed it meanwhile, which changes only its end and size, it is copied again.
//! - In overwrite mode, a sub-buffer that a recorder has taken out of the ring and not released is treated
//!   like the others. One that it has released or used for a copy no longer has a number.

use std::mem::{offset_of, size_of};

use tracewing_abi::region::{
    CONTROL, CpuControl, Geometry, Loss, Mode, Protocol, SUB_BUFFER_HEADER, SubBufferHeader, TableEntry,
};
use tracewing_units::{Cpu, Cycles};

use crate::events::{Event, events};
use crate::region::Region;

/// The buffer of one CPU, as it was when this was created.
pub struct Buffer<'a> {
    region: Region<'a>,
    cpu: Cpu,
    head: u64,
    /// Position up to which the reader has released.
    consumed: u64,
    lost: u64,
    /// Sorted by age, the oldest first.
    found: Vec<Found>,
    /// Sub-buffer numbers that the ring cannot hold, given the write position.
    strangers: Vec<u64>,
}

/// A sub-buffer that the ring can hold.
#[derive(Debug, Clone, Copy)]
struct Found {
    sequence: u64,
    physical: usize,
    header: Header,
}

/// The used part of a sub-buffer.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// Bytes that writers have reserved.
    reserved: usize,
    /// Bytes from the beginning on that are completely written. A sub-buffer that is not completely written
    /// is not closed either.
    finished: usize,
    /// Upper bound of the stamps, if known.
    end: Cycles,
}

/// A copy of a sub-buffer's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    number: u64,
    begin: Cycles,
    end: Cycles,
    used: u64,
    lost: u64,
    before: u64,
}

/// The contents of one sub-buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubBuffer {
    /// Its number. The next one's number is higher by one, unless some are missing between. Numbers wrap
    /// around ([`Geometry::distance`]).
    pub sequence: u64,
    /// Lower bound of the stamps.
    pub begin: Cycles,
    /// Upper bound of the stamps.
    pub end: Cycles,
    /// Events that this CPU had lost when the sub-buffer was opened, cumulative.
    pub lost: u64,
    /// Bytes of events that the writers put into all sub-buffers before it.
    pub before: u64,
    /// Whole events, in the layout of `tracewing-abi`'s module `event`.
    pub bytes: Vec<u8>,
    /// Why the bytes after these events could not be read.
    pub damage: Option<Damage>,
}

impl SubBuffer {
    /// The events in [`SubBuffer::bytes`].
    pub fn events(&self) -> impl Iterator<Item = Event> {
        events(&self.bytes, self.begin, self.end)
    }
}

/// Why a stretch of a buffer could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageCause {
    /// A sub-buffer claims more bytes than it has, or fewer than its header.
    #[error("an impossible size")]
    Size,
    /// A sub-buffer ends before it begins, or begins before the previous one.
    #[error("its time goes backwards")]
    Time,
    /// A trace cannot have stamps as late as these.
    #[error("its time lies beyond what a trace can say")]
    LateTime,
    /// The memory has a hole there.
    #[error("it is not in the memory that was kept")]
    NotKept,
    /// What follows the last event is none.
    #[error("no event follows the last one")]
    NoEvent,
    /// A writer had reserved the space, and not finished its event.
    #[error("a writer had not finished there")]
    Unfinished,
    /// A sub-buffer of this number cannot be where the write position is.
    #[error("its number and the write position do not fit")]
    Number,
}

/// A stretch that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("buffer of CPU {cpu}, sub-buffer {sequence}: {bytes} bytes skipped: {cause}")]
pub struct Damage {
    /// Number of the CPU whose buffer has the damage.
    pub cpu: Cpu,
    /// Number of the sub-buffer.
    pub sequence: u64,
    /// Upper bound of the unreadable bytes of events.
    pub bytes: usize,
    /// Why these bytes cannot be read.
    pub cause: DamageCause,
}

impl<'a> Region<'a> {
    /// The buffer of a CPU. `None` if the memory does not contain its words.
    ///
    /// # Panics
    /// The region has no such CPU.
    pub fn buffer(&self, cpu: Cpu) -> Option<Buffer<'a>> {
        assert!(cpu.index() < self.geometry.cpus(), "CPU {cpu} of {}", self.geometry.cpus());
        let control = self.control(cpu);
        let head = self.memory.word(control + offset_of!(CpuControl, head) as u64)?;
        let consumed = self.memory.word(control + offset_of!(CpuControl, consumed) as u64)?;
        let counters = control + offset_of!(CpuControl, lost) as u64;
        let lost = (0..Loss::COUNT as u64)
            .map(|reason| self.memory.word(counters + 8 * reason))
            .try_fold(0_u64, |sum, count| Some(sum.wrapping_add(count?)))?;
        let mut this =
            Buffer { region: *self, cpu, head, consumed, lost, found: Vec::new(), strangers: Vec::new() };
        this.find();
        Some(this)
    }
}

impl Buffer<'_> {
    /// Number of the CPU.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Shape of the region that the buffer is in.
    pub fn geometry(&self) -> Geometry {
        self.region.geometry
    }

    /// Events lost on this CPU, cumulative.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Removes the events that the reader has released: the recorder has written them.
    pub(crate) fn drop_released(&self, sub_buffer: &mut SubBuffer) {
        let geometry = self.region.geometry;
        let ahead = geometry.distance(sub_buffer.sequence, geometry.sequence(self.consumed));
        let released = geometry.at(self.consumed).saturating_sub(SUB_BUFFER_HEADER);
        match ahead {
            ..0 => {}
            0 => {
                let is_boundary = |event: Event| event.at == released;
                if released >= sub_buffer.bytes.len() {
                    sub_buffer.bytes.clear();
                } else if sub_buffer.events().any(is_boundary) {
                    sub_buffer.bytes.drain(..released);
                }
            }
            1.. => sub_buffer.bytes.clear(),
        }
    }

    /// The sub-buffers that hold events, the oldest first, or the reason why one cannot be read.
    pub fn sub_buffers(&self) -> impl Iterator<Item = Result<SubBuffer, Damage>> {
        let bytes = self.region.geometry.sub_buffer_bytes() - SUB_BUFFER_HEADER;
        let cause = DamageCause::Number;
        let strangers =
            self.strangers.iter().map(move |&sequence| Damage { cpu: self.cpu, sequence, bytes, cause });
        self.readable().chain(strangers.map(Err))
    }

    fn readable(&self) -> impl Iterator<Item = Result<SubBuffer, Damage>> {
        let mut last = Cycles::ZERO;
        self.found.iter().filter_map(move |found| {
            let read = self.read_unchanged(*found, last)?.transpose()?;
            if let Ok(sub_buffer) = &read {
                last = sub_buffer.end;
            }
            Some(read)
        })
    }

    /// Reads a sub-buffer; `None` if writers, or the recorder, may have changed it meanwhile.
    fn read_unchanged(&self, mut found: Found, last: Cycles) -> Option<Result<Option<SubBuffer>, Damage>> {
        // Its end and its size are stored once each.
        for _ in 0..=2 {
            let read = self.read(&found, last);
            if !self.region.memory.is_live() {
                return Some(read);
            }
            let now = self.header_if_kept(&found)?;
            if !self.was_closed(&found, now) {
                // Of no size, but closed: the recorder has it.
                let is_taken = now.used == 0
                    && self.region.geometry.mode() == Mode::Discard
                    && matches!(read, Err(Damage { cause: DamageCause::Size, .. }));
                return (!is_taken).then_some(read);
            }
            found.header = now;
        }
        None
    }

    /// Finds sub-buffers with a number of the ring's current lap.
    fn find(&mut self) {
        let geometry = self.region.geometry;
        let newest = geometry.sequence(self.head);
        let unused = newest == self.region.origin && geometry.at(self.head) == 0;
        if unused {
            return;
        }
        for physical in 0..geometry.physical_sub_buffers() {
            let Some(header) = self.header(physical) else { continue };
            // Never opened, or nonsense below: a number with more bits than numbers have.
            let Some(sequence) = header.number.checked_sub(1) else { continue };
            let age = geometry.distance(sequence, newest);
            let fits =
                sequence == geometry.later(sequence, 0) && (0..=geometry.sub_buffers() as i64).contains(&age);
            if !fits || !self.is_at_home(sequence, physical, age) {
                // The next sub-buffer's header is written before the write position goes there.
                if !fits && age != -1 {
                    self.strangers.push(sequence);
                }
                continue;
            }
            // A number that occurs twice: one of the headers is wrong.
            if self.found.iter().all(|other| other.sequence != sequence) {
                self.found.push(Found { sequence, physical, header });
            }
        }
        self.found.sort_by_key(|found| -geometry.distance(found.sequence, newest));
        // While writers run, the write position may be out of date by several numbers. Also, a sleeping
        // recorder keeps one old sub-buffer out of the ring.
        let mine = usize::from(geometry.mode() == Mode::Overwrite);
        if self.region.memory.is_live() || self.strangers.len() <= mine {
            self.strangers.clear();
        }
    }

    /// Whether sub-buffer number `sequence`, which is `age` numbers before the newest, may be in `physical`.
    fn is_at_home(&self, sequence: u64, physical: usize, age: i64) -> bool {
        let geometry = self.region.geometry;
        if age == 0 {
            return geometry.at(self.head) != 0 && physical == geometry.physical(self.head);
        }
        match geometry.mode() {
            Mode::Discard => physical == geometry.entry(sequence) && age < geometry.sub_buffers() as i64,
            Mode::Overwrite => true,
        }
    }

    fn read(&self, found: &Found, last: Cycles) -> Result<Option<SubBuffer>, Damage> {
        let Found { sequence, physical, header } = *found;
        let geometry = self.region.geometry;
        let damage = |bytes, cause| Damage { cpu: self.cpu, sequence, bytes, cause };
        let Extent { reserved, finished, end } = self.extent(found);
        let size = geometry.sub_buffer_bytes();
        if !(SUB_BUFFER_HEADER..=size).contains(&reserved) {
            return Err(damage(size - SUB_BUFFER_HEADER, DamageCause::Size));
        }
        if header.begin < last || end < header.begin {
            return Err(damage(reserved - SUB_BUFFER_HEADER, DamageCause::Time));
        }
        let start = self.address(physical) + SUB_BUFFER_HEADER as u64;
        let Some(mut bytes) = self.region.memory.read(start, finished - SUB_BUFFER_HEADER) else {
            return Err(damage(reserved - SUB_BUFFER_HEADER, DamageCause::NotKept));
        };
        let (valid, youngest) = events(&bytes, header.begin, end)
            .last()
            .map_or((0, header.begin), |event| (event.at + event.len, event.stamp));
        let skipped = reserved - SUB_BUFFER_HEADER - valid;
        let cause = if valid < bytes.len() {
            Some(DamageCause::NoEvent)
        } else if finished < reserved {
            Some(DamageCause::Unfinished)
        } else {
            None
        };
        bytes.truncate(valid);
        if bytes.is_empty() {
            return cause.map_or(Ok(None), |cause| Err(damage(skipped, cause)));
        }
        Ok(Some(SubBuffer {
            sequence,
            begin: header.begin,
            end: if end == Cycles::MAX || cause.is_some() { youngest } else { end },
            lost: header.lost,
            before: header.before,
            bytes,
            damage: cause.map(|cause| damage(skipped, cause)),
        }))
    }

    fn extent(&self, found: &Found) -> Extent {
        let geometry = self.region.geometry;
        let size = geometry.sub_buffer_bytes();
        let is_current = found.sequence == geometry.sequence(self.head);
        let reserved = if is_current { geometry.at(self.head) } else { size };
        if let Some((all, without_gap)) = self.committed(found.sequence)
            && all != reserved
        {
            let finished = without_gap.min(reserved).max(SUB_BUFFER_HEADER);
            return Extent { reserved, finished, end: Cycles::MAX };
        }
        if is_current {
            return Extent { reserved, finished: reserved, end: Cycles::MAX };
        }
        let used = self.used(found);
        Extent { reserved: used, finished: used, end: found.header.end }
    }

    /// Used bytes of a closed sub-buffer. In discard mode a reader that releases it clears that number; then
    /// it follows from the next sub-buffer, which counts the bytes before it.
    fn used(&self, found: &Found) -> usize {
        let geometry = self.region.geometry;
        let next = geometry.later(found.sequence, 1);
        let written = self.found.iter().find(|other| other.sequence == next).map(|next| {
            next.header.before.wrapping_sub(found.header.before).saturating_add(SUB_BUFFER_HEADER as u64)
        });
        let used = if found.header.used == 0 { written.unwrap_or(0) } else { found.header.used };
        usize::try_from(used).unwrap_or(usize::MAX)
    }

    /// Protocols `Smp` and `Local`: committed bytes of a sub-buffer, and committed bytes from its beginning
    /// on without a gap.
    fn committed(&self, sequence: u64) -> Option<(usize, usize)> {
        let geometry = self.region.geometry;
        if self.region.protocol == Protocol::Publish {
            return None;
        }
        // The count of a slot in which writers are a lap further is above a sub-buffer's size; that of a slot
        // they have not reached is "rather 2^40" (see `Geometry::committed`).
        let size = geometry.sub_buffer_bytes() as u64;
        let count = |part| {
            let count = self.entry(sequence, part).map_or(0, |count| geometry.committed(count, sequence));
            if count <= 2 * size { count.min(size) as usize } else { 0 }
        };
        Some((count(offset_of!(TableEntry, committed)), count(offset_of!(TableEntry, commit_seq))))
    }

    /// The present header of a sub-buffer; `None` if writers, or the recorder, may have used the sub-buffer
    /// for something else since it was found.
    fn header_if_kept(&self, found: &Found) -> Option<Header> {
        let geometry = self.region.geometry;
        let head = self.region.memory.word(self.control(offset_of!(CpuControl, head)))?;
        let age = geometry.distance(found.sequence, geometry.sequence(head));
        let header = self.header(found.physical)?;
        let is_same = Header { end: header.end, used: header.used, ..found.header } == header;
        ((0..geometry.sub_buffers() as i64).contains(&age) && is_same).then_some(header)
    }

    /// Whether a sub-buffer that the writers have left was closed between two looks at its header: the first
    /// one may have an earlier lap's end or size. A reader that releases it clears the size.
    fn was_closed(&self, found: &Found, now: Header) -> bool {
        let is_current = found.sequence == self.region.geometry.sequence(self.head);
        let is_size_new = now.used != found.header.used && now.used != 0;
        !is_current && (now.end != found.header.end || is_size_new)
    }

    fn header(&self, physical: usize) -> Option<Header> {
        let bytes = self.region.memory.read(self.address(physical), size_of::<SubBufferHeader>())?;
        let word =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Some(Header {
            number: word(offset_of!(SubBufferHeader, sequence)),
            begin: Cycles(word(offset_of!(SubBufferHeader, begin))),
            end: Cycles(word(offset_of!(SubBufferHeader, end))),
            used: word(offset_of!(SubBufferHeader, used)),
            lost: word(offset_of!(SubBufferHeader, lost)),
            before: word(offset_of!(SubBufferHeader, before)),
        })
    }

    /// A word of the table entry of a sub-buffer number.
    fn entry(&self, sequence: u64, part: usize) -> Option<u64> {
        let entry = self.region.geometry.entry(sequence) * size_of::<TableEntry>();
        self.region.memory.word(self.control(offset_of!(CpuControl, table) + entry + part))
    }

    fn control(&self, offset: usize) -> u64 {
        self.region.control(self.cpu) + offset as u64
    }

    fn address(&self, physical: usize) -> u64 {
        self.control(CONTROL) + (physical * self.region.geometry.sub_buffer_bytes()) as u64
    }
}
