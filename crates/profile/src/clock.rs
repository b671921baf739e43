//! Converts times of the kernel's records to the recording's clock.
//!
//! The kernel cannot stamp records with the time stamp counter, so they are stamped with
//! `CLOCK_MONOTONIC_RAW`, which is never adjusted. If the counter is the kernel's clock source, the two
//! differ by a constant factor. In any case both clocks are read at each drain of the buffers, so that a
//! stamp lies between two such pairs, or just after one.

use rustix::time::{ClockId, clock_gettime};
use tracewing_abi::region::Clock;
use tracewing_consumer::clock::TraceClock;
use tracewing_units::{Cycles, Duration, Timestamp};

/// Number of readings, of which the tightest is used.
const ATTEMPTS: usize = 8;
/// Pairs closer together than this do not determine the rate precisely enough.
const APART: Duration = Duration::from_ns(100_000_000);
/// As long as [`TraceClock::frequency`] cycles are.
const SECOND: Duration = Duration::from_ns(1_000_000_000);

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    /// `CLOCK_MONOTONIC_RAW`.
    raw: Timestamp,
    cycles: Cycles,
}

/// Converts the stamps of records.
#[derive(Debug)]
pub(crate) struct Conversion {
    clock: TraceClock,
    /// The pair that the rate is measured from.
    earlier: Pair,
    later: Pair,
}

impl Conversion {
    /// For a recording with this clock.
    pub(crate) fn new(clock: TraceClock) -> Self {
        let later = pair(&clock);
        // Until there are two pairs far enough apart, the clock's nominal rate is used.
        let earlier = Pair {
            raw: later.raw.saturating_sub(SECOND),
            cycles: Cycles(later.cycles.0.saturating_sub(clock.frequency())),
        };
        Self { clock, earlier, later }
    }

    /// Reads both clocks again; call it about when the records to convert are read.
    pub(crate) fn refresh(&mut self) {
        let now = pair(&self.clock);
        if now.raw - self.later.raw >= APART {
            (self.earlier, self.later) = (self.later, now);
        }
    }

    /// Current time of the recording's clock.
    pub(crate) fn now(&self) -> Cycles {
        self.clock.now()
    }

    /// The time of the recording's clock at a record's stamp.
    pub(crate) fn cycles(&self, stamp: Timestamp) -> Cycles {
        match self.clock.kind() {
            // The recording's clock counts nanoseconds.
            Clock::Monotonic => Cycles(stamp.as_ns().cast_unsigned()),
            Clock::Tsc => convert(self.earlier, self.later, stamp),
        }
    }
}

fn convert(earlier: Pair, later: Pair, stamp: Timestamp) -> Cycles {
    let since = i128::from(stamp.as_ns()) - i128::from(later.raw.as_ns());
    let apart = (later.raw - earlier.raw).as_ns().max(1);
    let rate = (i128::from(later.cycles.0 - earlier.cycles.0), i128::from(apart));
    u64::try_from(i128::from(later.cycles.0) + since * rate.0 / rate.1).map_or(Cycles::ZERO, Cycles)
}

fn pair(clock: &TraceClock) -> Pair {
    let reading = || {
        let before = clock.now();
        let raw = raw_time();
        let apart = clock.now().since(before);
        (apart, Pair { raw, cycles: Cycles(before.0 + apart.0 / 2) })
    };
    let tightest = (1..ATTEMPTS)
        .map(|_| reading())
        .fold(reading(), |best, next| if next.0 < best.0 { next } else { best });
    tightest.1
}

/// `CLOCK_MONOTONIC_RAW`, which begins near the start of the machine.
fn raw_time() -> Timestamp {
    let time = clock_gettime(ClockId::MonotonicRaw);
    Timestamp::from_ns(time.tv_sec * SECOND.as_ns() as i64 + time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_consumer::clock::ClockChoice;

    #[test]
    fn stamps_lie_on_the_line_through_two_pairs() {
        let pair = |ns, cycles| Pair { raw: Timestamp::from_ns(ns), cycles: Cycles(cycles) };
        let (earlier, later) = (pair(1000, 5000), pair(2000, 8000));
        for (ns, cycles) in [(2000, 8000), (1000, 5000), (1500, 6500), (2100, 8300), (900, 4700)] {
            assert_eq!(convert(earlier, later, Timestamp::from_ns(ns)), Cycles(cycles), "{ns}");
        }
    }

    #[test]
    fn a_stamp_of_now_is_now() {
        let Ok(clock) = TraceClock::new(ClockChoice::Tsc) else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Tsc,
                "this machine's time stamp counter is not usable as a clock",
            );
        };
        let conversion = Conversion::new(clock);
        let Cycles(before) = clock.now();
        let time = raw_time();
        let Cycles(after) = clock.now();
        let cycles = conversion.cycles(time).0;
        // Tolerance: the time that reading the pair took, and the error of the rate since then.
        let slack = clock.frequency() / 1_000_000;
        assert!((before - slack..=after + slack).contains(&cycles), "{before} {cycles} {after}");
    }
}
