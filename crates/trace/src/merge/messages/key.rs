//! The order of what streams have next.

use tracewing_units::Timestamp;

/// When something comes, and what decides among equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) ns: Timestamp,
    /// The stream's rank, and below it the stream, so that one comparison is enough for both.
    among_equals: u64,
}

impl Key {
    /// After all others.
    pub(super) const LAST: Key = Key { ns: Timestamp::MAX, among_equals: u64::MAX };

    #[inline]
    pub(super) fn new(ns: Timestamp, rank: u32, stream: usize) -> Self {
        Key { ns, among_equals: u64::from(rank) << 32 | stream as u64 & u64::from(u32::MAX) }
    }

    #[inline]
    pub(super) fn rank(&self) -> u32 {
        (self.among_equals >> 32) as u32
    }

    #[inline]
    pub(super) fn stream(&self) -> usize {
        self.among_equals as u32 as usize
    }

    /// Whether it comes before another one.
    #[inline]
    pub(super) fn is_before(&self, other: &Self) -> bool {
        // In one subtraction of 128 bits, without a branch that would often be missed.
        let order = |key: &Self| i128::from(key.ns.as_ns()) << 64 | i128::from(key.among_equals);
        order(self) < order(other)
    }
}
