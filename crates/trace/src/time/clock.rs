//! Turns a clock's cycles into nanoseconds since its origin.
//!
//! babeltrace2 computes in double precision where the frequency is not 1 GHz, so the last digits of a stamp
//! are those of a rounded product, not of the exact quotient. The same arithmetic here gives the same digits;
//! it is monotonic, and at 52 bits of cycles off by at most a few nanoseconds.

use tracewing_ctf::model::ClockClass;

const NS_PER_S: u64 = 1_000_000_000;

/// A clock, ready to convert.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Nanoseconds from the origin to cycle 0.
    base: i64,
    frequency: u64,
}

impl Clock {
    /// `None` where the offset does not fit 64 bits of nanoseconds.
    pub(crate) fn new(class: &ClockClass) -> Option<Self> {
        let frequency = class.frequency.max(1);
        let seconds = class.offset_seconds.checked_add_unsigned(class.offset_cycles / frequency)?;
        let whole = seconds.checked_mul(NS_PER_S as i64)?;
        let base = whole.checked_add_unsigned(scale(class.offset_cycles % frequency, frequency))?;
        Some(Clock { base, frequency })
    }

    /// Nanoseconds since the origin; `None` where 64 bits cannot hold them.
    #[inline]
    pub(crate) fn ns(&self, cycles: u64) -> Option<i64> {
        self.base.checked_add_unsigned(scale(cycles, self.frequency))
    }
}

impl Clock {
    /// The cycles that are `ns` nanoseconds since the origin, as nearly as can be said; `None` where there
    /// are none.
    pub(crate) fn cycles(&self, ns: i64) -> Option<u64> {
        let since = u128::try_from(i128::from(ns) - i128::from(self.base)).ok()?;
        let cycles = (since * u128::from(self.frequency)).div_ceil(u128::from(NS_PER_S));
        u64::try_from(cycles).ok()
    }
}

#[inline]
fn scale(cycles: u64, frequency: u64) -> u64 {
    if frequency == NS_PER_S { cycles } else { (1e9 * cycles as f64 / frequency as f64) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_in_seconds_and_in_cycles() {
        let class = ClockClass { offset_seconds: 10, offset_cycles: 2_500, ..ClockClass::new("c", 1000) };
        let clock = Clock::new(&class).unwrap();
        assert_eq!(clock.ns(0), Some(12_500_000_000));
        assert_eq!(clock.ns(1), Some(12_501_000_000));
        assert_eq!(clock.ns(u64::MAX), None);
        let class = ClockClass { offset_seconds: i64::MAX, ..ClockClass::new("c", 1) };
        assert!(Clock::new(&class).is_none());
    }
}
