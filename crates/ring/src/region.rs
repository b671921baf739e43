//! A buffer region and one CPU's buffer in it.
//!
//! The region is shared with other processes, some of them hostile. Its shape is checked and copied once,
//! when the region is attached; later only the atomics of its control pages are read from it, each with its
//! own check. An index or offset from shared memory is masked, so that it cannot leave its CPU's data.
//!
//! `mapped` is the region as it ships, a mapping; `modelled` the one that the model checker runs, made of its
//! atomics.

#[cfg(not(loom))]
mod mapped;
#[cfg(loom)]
mod modelled;

use tracewing_abi::region::{Loss, Mode, Reference, TableEntry};

#[cfg(not(loom))]
pub use mapped::{Buffer, Region};
#[cfg(loom)]
pub use modelled::{Buffer, Region};

use crate::sync::Ordering::*;

/// Attempts to claim a table entry. A failure means that the reader has exchanged the entry's sub-buffer
/// meanwhile, which it does at most twice a lap.
const CLAIM_ATTEMPTS: u32 = 8;

/// Whether a writer may open a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It may open the sub-buffer with this index in the data.
    Granted(usize),
    /// The reader has not released it.
    Full,
    /// The number is old: other writers were faster.
    Stale,
}

impl Region {
    /// The loss counters of a buffer, one per [`Loss`].
    ///
    /// # Panics
    /// The region has no such buffer.
    pub fn lost(&self, buffer: usize) -> [u64; Loss::COUNT] {
        self.buffer(buffer).lost()
    }
}

impl Buffer {
    /// Counts one lost event for this reason.
    pub fn count_loss(&self, loss: Loss) {
        self.control().lost[loss as usize].fetch_add(1, Relaxed);
    }

    /// The loss counters, in the order of [`Loss`].
    pub fn lost(&self) -> [u64; Loss::COUNT] {
        Loss::ALL.map(|loss| self.control().lost[loss as usize].load(Relaxed))
    }

    /// Sum of the loss counters.
    pub fn lost_total(&self) -> u64 {
        self.lost().into_iter().fold(0, u64::wrapping_add)
    }

    /// The table's entry for a sub-buffer number.
    pub(crate) fn entry(&self, sequence: u64) -> &TableEntry {
        &self.control().table[self.geometry().entry(sequence)]
    }

    /// The sub-buffer of the data that the table lists for number `sequence`.
    pub(crate) fn reference(&self, sequence: u64) -> Reference {
        match self.geometry().mode() {
            Mode::Discard => Reference { sequence, physical: self.geometry().entry(sequence) },
            // Acquire, with an earlier reader's exchange: what it returned is marked as read.
            Mode::Overwrite => Reference::unpack(self.entry(sequence).reference.load(Acquire)),
        }
    }

    /// Claims sub-buffer `next`, before a writer opens it. In discard mode the reader must have released it:
    /// the negation of Buffer Full (Desnoyers and Dagenais, Equation 1). In overwrite mode the writer takes
    /// it away from the reader, which the paper calls pushing the reader: the first writer changes the
    /// entry's number from the last lap's to `next`. Any writer may do so, at any time and on any CPU, since
    /// numbers only grow; a writer that is killed right after has taken away a sub-buffer that would have
    /// been next anyway.
    pub(crate) fn claim(&self, next: u64) -> Claim {
        let geometry = self.geometry();
        let slots = geometry.sub_buffers() as u64;
        if geometry.mode() == Mode::Discard {
            // Acquire, with the release store in `Reader::release`: the reader's last access to the
            // sub-buffer came before.
            let consumed = geometry.sequence(self.control().consumed.load(Acquire));
            // Below 0: the reader is past it, so others opened it long ago; the writer finds out later.
            let full = geometry.distance(consumed, next) >= slots as i64;
            return if full { Claim::Full } else { Claim::Granted(geometry.entry(next)) };
        }
        let entry = &self.entry(next).reference;
        for _ in 0..CLAIM_ATTEMPTS {
            let word = entry.load(Acquire); // with the reader's exchange: it no longer uses what it gave
            let old = Reference::unpack(word);
            if old.sequence == next {
                return Claim::Granted(old.physical);
            }
            if old.sequence != geometry.later(next, slots.wrapping_neg()) {
                return Claim::Stale;
            }
            let new = Reference { sequence: next, ..old }.pack();
            // Acquire, with the reader's exchange once more: it may have given back what it took after the
            // load. No release: others learn of the claim from `head` and from the bytes written after it.
            if entry.compare_exchange(word, new, Acquire, Relaxed).is_ok() {
                return Claim::Granted(old.physical);
            }
        }
        Claim::Stale
    }

    /// Initialises an unused buffer whose first sub-buffer gets number `origin`: nothing is written or
    /// readable, and the table looks as if the previous lap had just been read.
    pub(crate) fn prepare(&self, origin: u64) {
        let (geometry, control) = (self.geometry(), self.control());
        let slots = geometry.sub_buffers() as u64;
        control.head.store(geometry.position(origin, geometry.entry(origin), 0), Relaxed);
        control.consumed.store(geometry.position(origin, 0, 0), Relaxed);
        for sequence in (0..slots).map(|slot| geometry.later(origin, slot)) {
            let entry = self.entry(sequence);
            let last_lap = geometry.later(sequence, slots.wrapping_neg());
            let reference = Reference { sequence: last_lap, physical: geometry.entry(sequence) };
            entry.reference.store(reference.pack(), Relaxed);
            entry.committed.store(geometry.commit_count(sequence), Relaxed);
            entry.commit_seq.store(geometry.commit_count(sequence), Relaxed);
        }
    }
}
