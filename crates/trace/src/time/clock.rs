//! Turns a clock's cycles into time stamps and back: no other place does.
//!
//! babeltrace2 computes in double precision where the frequency is not 1 GHz, so the last digits of a stamp
//! are those of a rounded product, not of the exact quotient. The same arithmetic here gives the same digits;
//! it is monotonic, and at 52 bits of cycles off by at most a few nanoseconds.

use tracewing_ctf::model::ClockClass;
use tracewing_units::{Cycles, Duration, Timestamp};

const NS_PER_S: u64 = 1_000_000_000;

/// A clock, ready to convert.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// When cycle 0 was.
    base: Timestamp,
    frequency: u64,
}

impl Clock {
    /// `None` where the offset does not fit 64 bits of nanoseconds.
    pub(crate) fn new(class: &ClockClass) -> Option<Self> {
        let frequency = class.frequency.max(1);
        let seconds = class.offset_seconds.checked_add_unsigned(class.offset_cycles.0 / frequency)?;
        let whole = seconds.checked_mul(NS_PER_S as i64)?;
        let offset = Cycles(class.offset_cycles.0 % frequency);
        let base = Timestamp::from_ns(whole).checked_add(duration(offset, frequency))?;
        Some(Clock { base, frequency })
    }

    /// When it shows these cycles; `None` where 64 bits of nanoseconds cannot hold that.
    #[inline]
    pub(crate) fn time(&self, cycles: Cycles) -> Option<Timestamp> {
        self.base.checked_add(duration(cycles, self.frequency))
    }

    /// What it shows then, as nearly as can be said; `None` before its first cycle.
    pub(crate) fn cycles(&self, time: Timestamp) -> Option<Cycles> {
        let since = u128::from(time.checked_since(self.base)?.as_ns());
        let cycles = (since * u128::from(self.frequency)).div_ceil(u128::from(NS_PER_S));
        u64::try_from(cycles).ok().map(Cycles)
    }
}

#[inline]
fn duration(Cycles(cycles): Cycles, frequency: u64) -> Duration {
    let ns = if frequency == NS_PER_S { cycles } else { (1e9 * cycles as f64 / frequency as f64) as u64 };
    Duration::from_ns(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_in_seconds_and_in_cycles() {
        let class =
            ClockClass { offset_seconds: 10, offset_cycles: Cycles(2_500), ..ClockClass::new("c", 1000) };
        let clock = Clock::new(&class).unwrap();
        assert_eq!(clock.time(Cycles(0)), Some(Timestamp::from_ns(12_500_000_000)));
        assert_eq!(clock.time(Cycles(1)), Some(Timestamp::from_ns(12_501_000_000)));
        assert_eq!(clock.time(Cycles(u64::MAX)), None);
        let class = ClockClass { offset_seconds: i64::MAX, ..ClockClass::new("c", 1) };
        assert!(Clock::new(&class).is_none());
    }
}
