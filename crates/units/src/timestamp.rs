//! Moments on a trace's clock.

use crate::Duration;
use core::fmt;
use core::ops::{Add, Sub};

/// A moment, in nanoseconds since the clock's origin, which is the Unix epoch for most traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest moment.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// The latest moment.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// The moment `ns` nanoseconds after the origin, or before it if negative.
    #[inline]
    pub const fn from_ns(ns: i64) -> Self {
        Timestamp(ns)
    }

    /// Nanoseconds since the origin; negative before it.
    #[inline]
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// The origin of the clock, at 0 ns.
    pub const ORIGIN: Timestamp = Timestamp(0);

    /// The nanosecond before it, or [`Timestamp::MIN`].
    #[inline]
    pub const fn previous(self) -> Self {
        Timestamp(self.0.saturating_sub(1))
    }

    /// The nanosecond after it, or [`Timestamp::MAX`].
    #[inline]
    pub const fn next(self) -> Self {
        Timestamp(self.0.saturating_add(1))
    }

    /// Whole seconds since the origin, and the nanoseconds after them.
    #[inline]
    pub const fn as_seconds(self) -> (i64, u32) {
        (self.0.div_euclid(1_000_000_000), self.0.rem_euclid(1_000_000_000) as u32)
    }

    /// The moment `duration` later; `None` if it does not fit 64 bits.
    #[inline]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.0.checked_add_unsigned(duration.as_ns()) {
            Some(ns) => Some(Timestamp(ns)),
            None => None,
        }
    }

    /// The time since `earlier`; `None` if that is later.
    #[inline]
    pub const fn checked_since(self, earlier: Timestamp) -> Option<Duration> {
        // The difference of two 64-bit numbers, the lesser subtracted from the greater, fits 64 bits.
        if self.0 < earlier.0 { None } else { Some(Duration::from_ns(self.0.wrapping_sub(earlier.0) as u64)) }
    }

    /// The time between the two, whichever is earlier.
    #[inline]
    pub const fn abs_diff(self, other: Timestamp) -> Duration {
        Duration::from_ns(self.0.abs_diff(other.0))
    }

    /// The moment `duration` earlier, or [`Timestamp::MIN`].
    #[inline]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Timestamp(self.0.saturating_sub_unsigned(duration.as_ns()))
    }
}

/// The time since an earlier moment; [`Duration::ZERO`] since a later one.
impl Sub for Timestamp {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Timestamp) -> Duration {
        self.checked_since(earlier).unwrap_or(Duration::ZERO)
    }
}

/// A later moment, or [`Timestamp::MAX`].
impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    #[inline]
    fn add(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add_unsigned(duration.as_ns()))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

crate::transparent!(Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_any_two_moments_is_exact() {
        let whole = Timestamp::MAX - Timestamp::MIN;
        assert_eq!(whole, Duration::from_ns(u64::MAX));
        assert_eq!(Timestamp::MIN + whole, Timestamp::MAX);
        assert_eq!(Timestamp::MAX.saturating_sub(whole), Timestamp::MIN);
        assert_eq!(Timestamp::from_ns(3) - Timestamp::from_ns(-4), Duration::from_ns(7));
    }

    #[test]
    fn no_time_lies_between_a_moment_and_a_later_one() {
        let (earlier, later) = (Timestamp::from_ns(-1), Timestamp::from_ns(1));
        assert_eq!(earlier - later, Duration::ZERO);
        assert_eq!(earlier.checked_since(later), None);
        assert_eq!(later.checked_since(later), Some(Duration::ZERO));
    }

    #[test]
    fn moments_that_64_bits_cannot_hold_are_the_last_or_none() {
        let second = Duration::from_ns(1_000_000_000);
        assert_eq!(Timestamp::MAX + second, Timestamp::MAX);
        assert_eq!(Timestamp::MAX.checked_add(second), None);
        assert_eq!(Timestamp::MIN.saturating_sub(second), Timestamp::MIN);
    }

    #[test]
    fn seconds_before_the_origin_have_nanoseconds_after_them() {
        assert_eq!(Timestamp::from_ns(-1).as_seconds(), (-1, 999_999_999));
        assert_eq!(Timestamp::from_ns(1_500_000_000).as_seconds(), (1, 500_000_000));
    }
}
