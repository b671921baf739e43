//! The order of what streams have next.

use std::cmp::Ordering;
use tracewing_units::Timestamp;

/// When something comes, and what decides among equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) ns: Timestamp,
    pub(super) rank: u32,
    stream: u32,
}

impl Key {
    #[inline]
    pub(super) fn new(ns: Timestamp, rank: u32, stream: usize) -> Self {
        Key { ns, rank, stream: stream as u32 }
    }

    /// All of it as one number, so that a comparison is one, too.
    #[inline]
    fn order(&self) -> i128 {
        i128::from(self.ns.as_ns()) << 64 | i128::from(self.rank) << 32 | i128::from(self.stream)
    }

    #[inline]
    pub(super) fn stream(&self) -> usize {
        self.stream as usize
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
