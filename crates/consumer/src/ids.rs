//! Sets of ids of event classes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One bit per class id.
pub(crate) struct Ids(Box<[AtomicU64]>);

impl Ids {
    pub(crate) fn new() -> Self {
        Self((0..=u16::MAX / 64).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(crate) fn insert(&self, id: u16) {
        let (word, bit) = self.place(id);
        // No other data depends on a bit; and a word that is only read stays in every CPU's cache.
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn has(&self, id: u16) -> bool {
        let (word, bit) = self.place(id);
        word.load(Relaxed) & bit != 0
    }

    #[inline]
    fn place(&self, id: u16) -> (&AtomicU64, u64) {
        (&self.0[usize::from(id / 64)], 1 << (id % 64))
    }
}
