//! How many threads may work at a time. A thread that is stopped keeps its place until it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places for threads.
#[derive(Debug, Default)]
pub(crate) struct Places(Arc<AtomicUsize>);

/// A place that is taken; it is given back with this value.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    /// A place, if fewer than so many are taken.
    pub(crate) fn take(&self, most: usize) -> Option<Place> {
        // Nothing else is published with the number.
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Place(self.0.clone()))
    }

    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
