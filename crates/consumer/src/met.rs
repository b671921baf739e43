//! Of which event classes there was an event.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A bit for each id.
pub(crate) struct Met(Box<[AtomicU64]>);

impl Met {
    pub(crate) fn new() -> Self {
        Self((0..=u16::MAX / 64).map(|_| AtomicU64::new(0)).collect())
    }

    /// There was an event of the class with this id.
    #[inline]
    pub(crate) fn note(&self, id: u16) {
        let (word, bit) = self.place(id);
        // Nothing goes with a bit; and a word that is only read stays in everybody's cache.
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
