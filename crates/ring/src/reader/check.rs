//! Reads the buffer's control words and checks them before use.

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, extend_stamp, split_header_word};
use tracewing_abi::region::{Mode, Protocol};
use tracewing_abi::shared::SharedBytes;
use tracewing_units::Cycles;

use super::{
    Ahead, Chunk, Contradiction, Damaged, Extent, FIRST, Found, Header, Left, Reader, Unfinished, UpTo,
};
use crate::sync::Ordering::*;

/// Attempts to catch up with writers that go around the ring: each failure means that they filled a
/// sub-buffer between two loads. A reader that gave up too early would leave a snapshot without its end.
const CATCH_UPS: u32 = 64;

impl Reader {
    /// How far the writers are ahead; `None` if they are before the reader. In overwrite mode the reader
    /// catches up if they have overwritten its position.
    pub(super) fn ahead(&mut self) -> Result<Option<Ahead>, Damaged> {
        let geometry = self.buffer.geometry();
        let slots = geometry.sub_buffers() as i64;
        for _ in 0..CATCH_UPS {
            let count = self.buffer.entry(self.sequence).committed.load(Acquire); // with the add in `commit_slot`
            // Acquire, with the store that ends a writer's sequence (`Publish`), or its compare-and-swap (the
            // others). Loaded after the commit count: if that equals what `head` says was reserved, nothing
            // below `head` is uncommitted.
            let head = self.buffer.control().head.load(Acquire);
            let sub_buffers = geometry.distance(self.sequence, geometry.sequence(head));
            if sub_buffers < slots {
                let committed = match self.protocol {
                    Protocol::Publish if sub_buffers == 0 => geometry.at(head) as u64,
                    Protocol::Publish => geometry.sub_buffer_bytes() as u64,
                    Protocol::Smp | Protocol::Local => geometry.committed(count, self.sequence),
                };
                return Ok((sub_buffers >= 0).then_some(Ahead { head, sub_buffers, committed }));
            }
            if geometry.mode() == Mode::Discard {
                return Err(Damaged { bytes: 0, cause: Contradiction::HeadOutside });
            }
            let gone = (sub_buffers - (slots - 1)) as u64;
            self.skipped = self.skipped.saturating_add(gone);
            self.sequence = geometry.later(self.sequence, gone - 1);
            self.step();
        }
        Ok(None) // lapped each time: give up for now
    }

    /// Discard mode: how much of the reader's sub-buffer can be read.
    pub(super) fn find(&mut self, ahead: &Ahead, up_to: UpTo) -> Result<Found, Damaged> {
        let geometry = self.buffer.geometry();
        let physical = geometry.entry(self.sequence);
        if ahead.sub_buffers > 0 {
            if !self.is_complete(ahead) {
                return Ok(Found::Nothing);
            }
            return self.whole(physical, false).map(Found::Extent);
        }
        if up_to == UpTo::LastFull || !self.has_more(ahead) {
            return Ok(Found::Nothing);
        }
        let (header, end) = (self.header(physical), geometry.at(ahead.head));
        Ok(Found::Extent(Extent { header, physical, end, whole: false, is_taken: false }))
    }

    /// Sub-buffer Ready (Desnoyers and Dagenais, Equation 2): every byte of a sub-buffer that the writers
    /// have left is committed.
    pub(super) fn is_complete(&self, ahead: &Ahead) -> bool {
        ahead.committed == self.buffer.geometry().sub_buffer_bytes() as u64
    }

    /// Whether the writers' current sub-buffer (Equation 4: Sub-buffer Written) holds unread events and
    /// nothing that is reserved but uncommitted.
    pub(super) fn has_more(&self, ahead: &Ahead) -> bool {
        let at = self.buffer.geometry().at(ahead.head);
        at > self.at.max(FIRST) && ahead.committed == at as u64
    }

    /// The extent of a full sub-buffer. Its header is complete, since `head` has left it or it is committed.
    pub(super) fn whole(&mut self, physical: usize, is_taken: bool) -> Result<Extent, Damaged> {
        let header = self.header(physical);
        let size = self.buffer.geometry().sub_buffer_bytes() as u64;
        let makes_sense = (FIRST as u64..=size).contains(&header.used) && header.used >= self.at as u64;
        let end = header.used as usize;
        let extent = Extent { header, physical, end, whole: true, is_taken };
        match makes_sense {
            true => Ok(extent),
            false => Err(self.skip(&extent, Contradiction::Size)),
        }
    }

    pub(super) fn header(&self, physical: usize) -> Header {
        let header = self.buffer.header(physical);
        Header {
            number: header.sequence.load(Acquire), // with the release in `switch_new_sub_buffer`
            begin: header.begin.load(Relaxed),
            end: header.end.load(Relaxed),
            used: header.used.load(Relaxed),
            lost: header.lost.load(Relaxed),
            before: header.before.load(Relaxed),
        }
    }

    /// Enters a new sub-buffer: checks its header and takes over the values.
    pub(super) fn enter(&mut self, extent: &Extent) -> Result<(), Damaged> {
        let header = &extent.header;
        if header.number != self.sequence + 1 {
            return Err(self.skip(extent, Contradiction::Number));
        }
        if extent.whole && header.end < header.begin {
            return Err(self.skip(extent, Contradiction::Time));
        }
        self.at = self.at.max(FIRST);
        self.is_entered = true;
        self.begin = header.begin;
        self.last = self.last.max(header.begin); // above it if the clock stepped back: then time stands still
        self.lost = self.lost.max(header.lost);
        if self.skipped > 0 {
            let most = self.skipped.saturating_mul(self.buffer.geometry().sub_buffer_bytes() as u64);
            let bytes = header.before.wrapping_sub(self.before).min(most);
            self.overwritten.sub_buffers = self.overwritten.sub_buffers.saturating_add(self.skipped);
            self.overwritten.bytes = self.overwritten.bytes.saturating_add(bytes);
            self.skipped = 0;
        }
        self.before = header.before.wrapping_add((self.at - FIRST) as u64);
        Ok(())
    }

    pub(super) fn chunk(&mut self, extent: &Extent) -> Result<Chunk, Damaged> {
        if !extent.whole {
            return match self.walk(extent.physical, extent.end)? {
                Some(chunk) => Ok(Chunk { is_open: true, ..chunk }),
                None => Err(self.skip_to(extent.end, Contradiction::NoEvent)),
            };
        }
        self.lost = self.lost.max(self.lost_until_closed());
        match self.event(extent.physical, self.at, extent.end, self.last) {
            Some((_, begin)) if begin <= extent.header.end.max(self.last) => Ok(Chunk {
                bytes: SharedBytes::new(self.buffer.data(extent.physical, self.at), extent.end - self.at),
                begin: Cycles(begin),
                end: Cycles(extent.header.end.max(begin)),
                lost: self.lost,
                overwritten: self.overwritten,
                physical: extent.physical,
                at: self.at,
                is_last: true,
                is_open: false,
                is_taken: extent.is_taken,
            }),
            _ => Err(self.skip(extent, Contradiction::NoFirstEvent)),
        }
    }

    /// The count with which the next sub-buffer was opened, in discard mode: while there was none, events
    /// were lost, and the reader's sub-buffer was closed only then. 0 where there is no next one yet.
    fn lost_until_closed(&self) -> u64 {
        let geometry = self.buffer.geometry();
        if geometry.mode() != Mode::Discard {
            return 0;
        }
        let next = geometry.later(self.sequence, 1);
        let header = self.header(geometry.entry(next));
        if header.number == next + 1 { header.lost } else { 0 }
    }

    /// What dead writers left in the reader's sub-buffer: the events before the first gap, and after those
    /// the gap itself.
    pub(super) fn left_by_the_dead(&mut self, ahead: &Ahead) -> Result<Left, Damaged> {
        let geometry = self.buffer.geometry();
        let is_full = ahead.sub_buffers > 0;
        let reserved = if is_full { geometry.sub_buffer_bytes() } else { geometry.at(ahead.head) };
        if self.protocol == Protocol::Publish || reserved <= self.at {
            return Ok(Left::Nothing);
        }
        let reference = self.buffer.reference(self.sequence);
        let seq = self.buffer.entry(self.sequence).commit_seq.load(Acquire); // with the release in `commit_slot`
        let committed = geometry.committed(seq, self.sequence).min(reserved as u64 + 1) as usize;
        let header = self.header(reference.physical);
        let is_opened = reference.sequence == self.sequence && header.number == self.sequence + 1;
        let used = header.used;
        if is_opened {
            let physical = reference.physical;
            let extent = Extent { header, physical, end: committed, whole: false, is_taken: false };
            if !self.is_entered {
                self.enter(&extent)?;
            }
            if (self.at + 1..=reserved).contains(&committed)
                && let Some(chunk) = self.walk(physical, committed)?
            {
                return Ok(Left::Chunk(Chunk { is_open: !is_full, ..chunk }));
            }
        }
        // The space after the last event of a sub-buffer that was closed but not committed holds no event. In
        // overwrite mode the size may be an earlier lap's.
        let is_closed = is_full && geometry.mode() == Mode::Discard && used == self.at as u64;
        let is_rest_empty = is_opened && (self.at >= reserved || is_closed);
        let bytes = reserved.saturating_sub(self.at) as u64;
        self.step();
        self.publish_position();
        Ok(match is_rest_empty {
            true => Left::Nothing,
            false => Left::Unfinished(Unfinished { after: Cycles(self.last), bytes }),
        })
    }

    /// The stretch of events from the reader's position to `limit`, found by walking over their lengths.
    /// `None` if there is no event.
    fn walk(&mut self, physical: usize, limit: usize) -> Result<Option<Chunk>, Damaged> {
        let (mut at, mut last, mut begin) = (self.at, self.last, None);
        while at < limit {
            let Some((length, stamp)) = self.event(physical, at, limit, last) else {
                return Err(self.skip_to(limit, Contradiction::Event));
            };
            begin.get_or_insert(stamp);
            (at, last) = (at + length, stamp);
        }
        Ok(begin.map(|begin| Chunk {
            bytes: SharedBytes::new(self.buffer.data(physical, self.at), at - self.at),
            begin: Cycles(begin),
            end: Cycles(last),
            lost: self.lost,
            overwritten: self.overwritten,
            physical,
            at: self.at,
            is_last: false,
            is_open: false,
            is_taken: false,
        }))
    }

    /// Length and full stamp of the event at `at`, if its words are plausible there. A stamp below the
    /// previous one is replaced by that one: the clock stepped back (suspend, restore), or the clocks of two
    /// CPUs differ.
    fn event(&self, physical: usize, at: usize, limit: usize, last: u64) -> Option<(usize, u64)> {
        let room = limit - at;
        if room < HEADER + CONTEXT {
            return None;
        }
        let (low, id, length) = split_header_word(self.buffer.word(physical, at));
        let length = usize::from(length);
        let header = if id == EXTENDED_ID { EXTENDED_HEADER } else { HEADER };
        if length < header + CONTEXT || length > room {
            return None;
        }
        let stamp = match id {
            EXTENDED_ID => self.buffer.word(physical, at + HEADER),
            _ => extend_stamp(self.begin, low),
        };
        (id == EXTENDED_ID || stamp >= self.begin).then_some((length, stamp.max(last)))
    }
}
