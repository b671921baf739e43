//! Durations between moments.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// The time between two moments, in nanoseconds.
///
/// Sums saturate at [`Duration::MAX`], which nonsensical time stamps can reach: tables show it as unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Duration(u64);

impl Duration {
    /// Zero nanoseconds.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration; also the result of saturation.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A duration of `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns)
    }

    /// The duration in nanoseconds.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The sum; `None` if it is too long.
    #[inline]
    pub const fn checked_add(self, other: Duration) -> Option<Duration> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Duration(sum)),
            None => None,
        }
    }

    /// The absolute difference of two durations.
    #[inline]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// Whether it is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This duration as a percentage of `whole`; NaN if `whole` is zero.
    #[inline]
    pub fn percent_of(self, whole: Duration) -> f64 {
        self.0 as f64 * 100.0 / whole.0 as f64
    }

    /// The average of `count` durations whose sum this is; `None` for a count of 0. If the sum is
    /// [`Duration::MAX`], so is the average.
    #[inline]
    pub const fn mean(self, count: u64) -> Option<Duration> {
        match self.0 {
            u64::MAX if count > 0 => Some(Duration::MAX),
            sum => match sum.checked_div(count) {
                Some(mean) => Some(Duration(mean)),
                None => None,
            },
        }
    }
}

/// Saturates at [`Duration::MAX`].
impl Add for Duration {
    type Output = Duration;

    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

/// Saturates at [`Duration::MAX`].
impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

/// The difference; [`Duration::ZERO`] if the other is longer.
impl Sub for Duration {
    type Output = Duration;

    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

/// Saturates at [`Duration::ZERO`].
impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

/// The product; saturates at [`Duration::MAX`].
impl Mul<u64> for Duration {
    type Output = Duration;

    #[inline]
    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

/// The quotient; [`Duration::MAX`] for a divisor of 0.
impl Div<u64> for Duration {
    type Output = Duration;

    #[inline]
    fn div(self, parts: u64) -> Duration {
        self.0.checked_div(parts).map_or(Duration::MAX, Duration)
    }
}

/// Saturates at [`Duration::MAX`].
impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(durations: I) -> Duration {
        durations.fold(Duration::ZERO, Duration::add)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

crate::transparent!(Duration);

/// A number of nanoseconds.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Duration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: Duration = Duration::from_ns(1);

    #[test]
    fn sums_and_differences_end_at_the_longest_and_at_none() {
        let mut sum = Duration::MAX;
        sum += NS;
        assert_eq!(sum, Duration::MAX);
        assert_eq!([Duration::MAX, NS].into_iter().sum::<Duration>(), Duration::MAX);
        assert_eq!(Duration::from_ns(5) - Duration::from_ns(3), Duration::from_ns(2));
        assert_eq!(Duration::from_ns(3) - Duration::from_ns(5), Duration::ZERO);
    }

    #[test]
    fn averages_of_none_and_of_sums_without_a_number_are_not_made_up() {
        assert_eq!(Duration::from_ns(7).mean(2), Some(Duration::from_ns(3)));
        assert_eq!(Duration::ZERO.mean(0), None);
        assert_eq!(Duration::MAX.mean(2), Some(Duration::MAX));
        assert_eq!(Duration::from_ns(7) / 2, Duration::from_ns(3));
        assert_eq!(Duration::from_ns(7) / 0, Duration::MAX);
    }
}
