//! Converts times of the kernel's records to the recording's clock.
//!
//! The kernel cannot stamp records with the time stamp counter, so they are stamped with
//! `CLOCK_MONOTONIC_RAW`, which is never adjusted. If the counter is the kernel's clock source, the two
//! differ by a constant factor. In any case both clocks are read at each drain of the buffers, so that a
//! stamp lies between two such pairs, or just after one.

use rustix::time::{ClockId, clock_gettime};
use tracewing_abi::region::Clock;
use tracewing_consumer::clock::TraceClock;

const NANOSECONDS: u64 = 1_000_000_000;
/// Number of readings, of which the tightest is used.
const ATTEMPTS: usize = 8;
/// Pairs closer together than this, in ns, do not determine the rate precisely enough.
const APART: u64 = NANOSECONDS / 10;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    ns: u64,
    cycles: u64,
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
            ns: later.ns.saturating_sub(NANOSECONDS),
            cycles: later.cycles.saturating_sub(clock.frequency()),
        };
        Self { clock, earlier, later }
    }

    /// Reads both clocks again; call it about when the records to convert are read.
    pub(crate) fn refresh(&mut self) {
        let now = pair(&self.clock);
        if now.ns.saturating_sub(self.later.ns) >= APART {
            (self.earlier, self.later) = (self.later, now);
        }
    }

    /// Current time of the recording's clock.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The time of the recording's clock at a record's stamp.
    pub(crate) fn cycles(&self, ns: u64) -> u64 {
        match self.clock.kind() {
            Clock::Monotonic => ns,
            Clock::Tsc => convert(self.earlier, self.later, ns),
        }
    }
}

fn convert(earlier: Pair, later: Pair, ns: u64) -> u64 {
    let since = i128::from(ns) - i128::from(later.ns);
    let rate = (i128::from(later.cycles - earlier.cycles), i128::from((later.ns - earlier.ns).max(1)));
    u64::try_from(i128::from(later.cycles) + since * rate.0 / rate.1).unwrap_or(0)
}

fn pair(clock: &TraceClock) -> Pair {
    let reading = || {
        let before = clock.now();
        let time = clock_gettime(ClockId::MonotonicRaw);
        let apart = clock.now().saturating_sub(before);
        let ns = time.tv_sec as u64 * NANOSECONDS + time.tv_nsec as u64;
        (apart, Pair { ns, cycles: before + apart / 2 })
    };
    let tightest = (1..ATTEMPTS)
        .map(|_| reading())
        .fold(reading(), |best, next| if next.0 < best.0 { next } else { best });
    tightest.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_consumer::clock::ClockChoice;

    #[test]
    fn stamps_lie_on_the_line_through_two_pairs() {
        let (earlier, later) = (Pair { ns: 1000, cycles: 5000 }, Pair { ns: 2000, cycles: 8000 });
        for (ns, cycles) in [(2000, 8000), (1000, 5000), (1500, 6500), (2100, 8300), (900, 4700)] {
            assert_eq!(convert(earlier, later, ns), cycles, "{ns}");
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
        let before = clock.now();
        let time = clock_gettime(ClockId::MonotonicRaw);
        let after = clock.now();
        let cycles = conversion.cycles(time.tv_sec as u64 * NANOSECONDS + time.tv_nsec as u64);
        // Tolerance: the time that reading the pair took, and the error of the rate since then.
        let slack = clock.frequency() / 1_000_000;
        assert!((before - slack..=after + slack).contains(&cycles), "{before} {cycles} {after}");
    }
}
