//! Turns a clock's cycles into time stamps and back: no other place does.
//!
//! babeltrace2 computes in double precision where the frequency is not 1 GHz (`bt_common_cycles_to_ns`,
//! common/common.h). Up to 2^53 ns, 104 days from cycle 0, its stamps are at most 2 ns from the exact
//! quotient, and the same arithmetic here gives the same digits. Beyond, doubles lie 2 ns and more apart
//! (256 ns at the time since 1970), and stamps that differ would become equal: there the quotient is exact.
//! As the first are below 2^53 and the others not, stamps are in the order of cycles.

use tracewing_ctf::model::ClockClass;
use tracewing_units::{Cycles, Duration, Timestamp};

const NS_PER_S: u64 = 1_000_000_000;

/// In nanoseconds: each integer below it is a double.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

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
        let base = Timestamp::from_ns(whole).checked_add(duration(offset, frequency)?)?;
        Some(Clock { base, frequency })
    }

    /// When it shows these cycles; `None` where 64 bits of nanoseconds cannot hold that.
    #[inline]
    pub(crate) fn time(&self, cycles: Cycles) -> Option<Timestamp> {
        self.base.checked_add(duration(cycles, self.frequency)?)
    }

    /// What it shows then, as nearly as can be said; `None` before its first cycle.
    pub(crate) fn cycles(&self, time: Timestamp) -> Option<Cycles> {
        let since = u128::from(time.checked_since(self.base)?.as_ns());
        let cycles = (since * u128::from(self.frequency)).div_ceil(u128::from(NS_PER_S));
        u64::try_from(cycles).ok().map(Cycles)
    }

    /// The first cycle that is not before a time.
    pub(crate) fn first_cycle(&self, time: Timestamp) -> Cycles {
        let (mut first, mut end) = (0, u64::MAX);
        while first < end {
            let middle = first + (end - first) / 2;
            // Where 64 bits cannot hold the time, it is after all others.
            match self.time(Cycles(middle)).is_some_and(|at| at < time) {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        Cycles(first)
    }

    /// The last cycle that is not after a time; the first one if all are.
    pub(crate) fn last_cycle(&self, time: Timestamp) -> Cycles {
        match time {
            Timestamp::MAX => Cycles::MAX,
            _ => Cycles(self.first_cycle(time.next()).0.saturating_sub(1)),
        }
    }
}

#[inline]
fn duration(Cycles(cycles): Cycles, frequency: u64) -> Option<Duration> {
    if frequency == NS_PER_S {
        return Some(Duration::from_ns(cycles));
    }
    let rounded = (1e9 * cycles as f64 / frequency as f64) as u64;
    if rounded < EXACT_IN_DOUBLE {
        Some(Duration::from_ns(rounded))
    } else {
        exact(Cycles(cycles), frequency)
    }
}

#[cold]
fn exact(Cycles(cycles): Cycles, frequency: u64) -> Option<Duration> {
    let ns = u128::from(cycles) * u128::from(NS_PER_S) / u128::from(frequency);
    u64::try_from(ns).ok().map(|ns| Duration::from_ns(ns.max(EXACT_IN_DOUBLE)))
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
    /// Microseconds since 1970, as a 32-bit ARM board's clock may count, and a TSC that has run for a year.
    #[test]
    fn stamps_are_exact_where_doubles_are_not() {
        for (frequency, first) in [(1_000_000, 1_700_000_000_000_000), (2_593_906_000, 1_u64 << 56)] {
            let clock = Clock::new(&ClockClass::new("c", frequency)).unwrap();
            for cycles in first..first + 1000 {
                let ns = u128::from(cycles) * u128::from(NS_PER_S) / u128::from(frequency);
                let time = clock.time(Cycles(cycles)).unwrap();
                assert_eq!(i128::from(time.as_ns()), ns.cast_signed(), "{cycles} cycles of {frequency} Hz");
            }
        }
    }

    #[test]
    fn stamps_are_in_the_order_of_cycles_where_the_arithmetic_changes() {
        for frequency in [1_000, 32_768, 999_999_937, 2_593_906_000, 5_000_000_000] {
            let clock = Clock::new(&ClockClass::new("c", frequency)).unwrap();
            let change = u128::from(EXACT_IN_DOUBLE) * u128::from(frequency) / u128::from(NS_PER_S);
            let change = u64::try_from(change).unwrap();
            let times = (change - 100..change + 100).map(|cycles| clock.time(Cycles(cycles)).unwrap());
            assert!(times.is_sorted(), "{frequency} Hz");
        }
    }
}
