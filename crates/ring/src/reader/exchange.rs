//! Overwrite mode: the reader reads only what it has taken out of the ring.
//!
//! There is one sub-buffer more than the table has entries, and the reader owns it (Desnoyers and Dagenais,
//! section 4.3.2). The reader changes an entry from (number, p) to (number, its own), and then writers cannot
//! reach p. Writers change an entry from (last lap's number, p) to (new number, p) before they write
//! (`Buffer::claim`). Both are compare-and-swaps of one word, so one of the two is first:
//!
//! 1. The reader: the writer finds the entry changed, tries again, and gets the sub-buffer that was the
//!    reader's.
//! 2. The writer: the reader's attempt fails, and that sub-buffer is treated as overwritten.
//!
//! The writers' current sub-buffer cannot be taken. What it holds so far is copied into the reader's own, and
//! the copy is valid if the entry still has the number afterwards: a reader that sees a byte of a later lap
//! also sees that lap's number.
//!
//! Giving back is the reverse exchange. If a writer has claimed the entry meanwhile, it got the sub-buffer
//! that was the reader's, and the reader keeps the other.
//!
//! The header of the reader's own sub-buffer has number 0: if it gets into the ring, a reader that looks at
//! the entry again knows that it was read.

use tracewing_abi::region::{Mode, Reference};

use super::{Ahead, Damaged, Extent, FIRST, Found, Reader, UpTo};
use crate::Buffer;
use crate::sync::Ordering::*;
use crate::sync::fence;

/// The sub-buffer that no entry refers to: it belongs to a new reader, or to one whose predecessor died at
/// any step.
pub(super) fn spare(buffer: &Buffer) -> usize {
    let geometry = buffer.geometry();
    if geometry.mode() == Mode::Discard {
        return 0;
    }
    let in_table = |physical: usize| {
        let entries = &buffer.control().table[..geometry.sub_buffers()];
        // Acquire, with the exchanges of an earlier reader.
        entries.iter().any(|entry| Reference::unpack(entry.reference.load(Acquire)).physical == physical)
    };
    let spare = (0..geometry.sub_buffers()).find(|physical| !in_table(*physical));
    let spare = spare.unwrap_or(geometry.sub_buffers());
    buffer.header(spare).sequence.store(0, Release); // as in `disown`
    spare
}

impl Reader {
    /// Takes the reader's sub-buffer out of the ring if it is full; copies its new bytes if it is the current
    /// one.
    pub(super) fn take(&mut self, ahead: &Ahead, up_to: UpTo) -> Result<Found, Damaged> {
        let reference = self.buffer.reference(self.sequence);
        if reference.sequence != self.sequence {
            // An older number: the sub-buffer is not opened yet. Writers that are past it nevertheless are
            // not honest.
            let is_older = self.buffer.geometry().distance(self.sequence, reference.sequence) < 0;
            let is_unopened = is_older && ahead.sub_buffers == 0;
            return Ok(if is_unopened { Found::Nothing } else { Found::Overwritten });
        }
        if ahead.sub_buffers == 0 {
            return Ok(self.copied(ahead, up_to, reference));
        }
        // Acquire, with `disown`.
        if self.buffer.header(reference.physical).sequence.load(Acquire) == 0 {
            return Ok(Found::Overwritten); // an earlier reader took it
        }
        if !self.is_complete(ahead) {
            return Ok(Found::Nothing);
        }
        let lent = Reference { physical: self.spare, ..reference };
        if !self.exchange(reference, lent) {
            return Ok(Found::Overwritten);
        }
        (self.lent, self.spare) = (self.spare, reference.physical);
        self.whole(reference.physical, true).map(Found::Extent)
    }

    /// Copies the new bytes of the current sub-buffer.
    fn copied(&mut self, ahead: &Ahead, up_to: UpTo, reference: Reference) -> Found {
        if up_to == UpTo::LastFull || !self.has_more(ahead) {
            return Found::Nothing;
        }
        let header = self.header(reference.physical);
        let end = self.buffer.geometry().at(ahead.head);
        self.buffer.copy(reference.physical, self.spare, self.at.max(FIRST)..end);
        // Partners: the release fences after a reservation (`lttng::reserve`); with `Publish`, every store
        // after a claim. If the copy has a byte of a later lap, or the header a word, the number is that
        // lap's.
        fence(Acquire);
        let now = self.buffer.entry(self.sequence).reference.load(Relaxed); // ordered by the fence
        if now != reference.pack() {
            return Found::Overwritten;
        }
        Found::Extent(Extent { header, physical: self.spare, end, whole: false, is_taken: false })
    }

    /// Marks a sub-buffer that was taken as the reader's own.
    pub(super) fn disown(&mut self, physical: usize) {
        // Release, with the acquire load in `take`: a later reader that finds it in the table knows that it
        // was read.
        self.buffer.header(physical).sequence.store(0, Release);
    }

    /// Returns a taken sub-buffer to the ring, unless writers have claimed its entry.
    pub(super) fn put_back(&mut self, physical: usize) {
        let sequence = self.buffer.geometry().later(self.sequence, u64::MAX); // the reader has passed it
        let lent = Reference { sequence, physical: self.lent };
        if self.exchange(lent, Reference { sequence, physical }) {
            self.spare = self.lent;
        } else {
            self.disown(physical);
        }
    }

    fn exchange(&self, from: Reference, to: Reference) -> bool {
        let word = &self.buffer.entry(from.sequence).reference;
        // Release, with the acquire loads and claim in `Buffer::claim`: the reader's accesses to what it
        // returns come first. No acquire: the sub-buffer that it gets was committed, as `ahead` has found
        // out.
        word.compare_exchange(from.pack(), to.pack(), Release, Relaxed).is_ok()
    }
}
