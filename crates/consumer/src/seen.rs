//! Event classes that had an event.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One bit per class id.
pub(crate) struct Seen(Box<[AtomicU64]>);

impl Seen {
    pub(crate) fn new() -> Self {
        Self((0..=u16::MAX / 64).map(|_| AtomicU64::new(0)).collect())
    }

    /// Records that an event of the class with this id was seen.
    #[inline]
    pub(crate) fn note(&self, id: u16) {
        let (word, bit) = self.place(id);
        // No other data depends on a bit; and a word that is only read stays in every CPU's cache.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    pub(crate) fn has(&self, id: u16) -> bool {
        let (word, bit) = self.place(id);
        word.load(Relaxed) & bit != 0
    }

    fn place(&self, id: u16) -> (&AtomicU64, u64) {
        (&self.0[usize::from(id / 64)], 1 << (id % 64))
    }
}
