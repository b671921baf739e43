//! The clock of a recording: which counter, how fast it runs, and what time it is when it shows a value.
//!
//! User events and kernel events are stamped by the same counter (the kernel's trace clocks `x86-tsc` and
//! `mono` read what programs read), so one clock class serves both traces and any reader merges them. Real
//! time comes in only here: pairs of counter and `CLOCK_REALTIME`, taken at the recording's beginning and
//! end.

use rustix::time::{ClockId, clock_gettime};
use tracewing_abi::region;
use tracewing_units::{Cycles, Duration, Timestamp};

use crate::Error;

#[cfg_attr(target_arch = "x86_64", path = "tsc.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "no_tsc.rs")]
mod tsc;

const NANOSECONDS: u64 = 1_000_000_000;
/// Number of readings in a calibration, which keeps the tightest.
const ATTEMPTS: usize = 32;

/// Which clock a user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockChoice {
    /// The time stamp counter where the machine has a good one, else `CLOCK_MONOTONIC`.
    #[default]
    Auto,
    /// The time stamp counter, or an error.
    Tsc,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// The clock of a recording: which counter, its frequency and its offset from the time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceClock {
    kind: region::Clock,
    frequency: u64,
}

/// What real time it was when the recording's clock showed a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Calibration {
    /// The recording's clock (nanoseconds for `CLOCK_MONOTONIC`).
    pub cycles: Cycles,
    /// `CLOCK_REALTIME` at that moment: nanoseconds since 1970.
    #[serde(rename = "realtime_ns")]
    pub realtime: Timestamp,
    /// How far apart the two can have been read.
    #[serde(rename = "uncertainty_ns")]
    pub uncertainty: Duration,
}

impl TraceClock {
    /// The clock for a choice.
    ///
    /// # Errors
    /// [`Error::Clock`]: the time stamp counter was asked for and is not usable.
    pub fn new(choice: ClockChoice) -> Result<Self, Error> {
        let monotonic = Self { kind: region::Clock::Monotonic, frequency: NANOSECONDS };
        let tsc = || tsc::usable().map(|()| Self { kind: region::Clock::Tsc, frequency: tsc::frequency() });
        match choice {
            ClockChoice::Monotonic => Ok(monotonic),
            ClockChoice::Tsc => tsc().map_err(Error::Clock),
            ClockChoice::Auto => Ok(tsc().unwrap_or(monotonic)),
        }
    }

    /// Which counter it is.
    pub fn kind(&self) -> region::Clock {
        self.kind
    }

    /// Its name in the metadata: `tsc` or `monotonic`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            region::Clock::Tsc => "tsc",
            region::Clock::Monotonic => "monotonic",
        }
    }

    /// Cycles per second.
    pub fn frequency(&self) -> u64 {
        self.frequency
    }

    /// The value of the clock now, as an event of a program would have it.
    pub fn now(&self) -> Cycles {
        Cycles(match self.kind {
            region::Clock::Tsc => tsc::read(),
            region::Clock::Monotonic => nanoseconds(ClockId::Monotonic),
        })
    }

    /// Reads both clocks many times and keeps the pair that was read within the shortest time.
    pub fn calibrate(&self) -> Calibration {
        let reading = || {
            let before = self.now();
            let realtime = Timestamp::from_ns(nanoseconds(ClockId::Realtime).cast_signed());
            let apart = self.now().since(before);
            let uncertainty = Duration::from_ns(self.duration(apart).as_ns().div_ceil(2));
            Calibration { cycles: Cycles(before.0 + apart.0 / 2), realtime, uncertainty }
        };
        (1..ATTEMPTS)
            .map(|_| reading())
            .fold(reading(), |best, next| if next.uncertainty < best.uncertainty { next } else { best })
    }

    /// How long so many cycles last.
    fn duration(&self, Cycles(cycles): Cycles) -> Duration {
        Duration::from_ns((u128::from(cycles) * u128::from(NANOSECONDS) / u128::from(self.frequency)) as u64)
    }

    /// The real time of a stamp by the calibration at the recording's beginning: what readers of the trace
    /// compute from the clock class.
    pub fn real_time(&self, begin: &Calibration, stamp: Cycles) -> Timestamp {
        let (cycles, time) = (begin.cycles, begin.realtime);
        if stamp >= cycles {
            time + self.duration(stamp.since(cycles))
        } else {
            time.saturating_sub(self.duration(cycles.since(stamp)))
        }
    }

    /// The clock class's offset: real time at which the counter would have shown 0, as whole seconds since
    /// 1970 and the cycles that are missing (CTF 1.8, section 8: `offset_s`, `offset`).
    pub fn offset(&self, begin: &Calibration) -> (i64, Cycles) {
        let frequency = i128::from(self.frequency);
        let realtime = i128::from(begin.realtime.as_ns()) * frequency / i128::from(NANOSECONDS);
        let offset = realtime - i128::from(begin.cycles.0);
        (offset.div_euclid(frequency) as i64, Cycles(offset.rem_euclid(frequency) as u64))
    }
}

/// A clock of the kernel's, nanoseconds.
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * NANOSECONDS + time.tv_nsec as u64
}

/// The frequency of a counter by comparing it with `CLOCK_MONOTONIC_RAW` for a while, Hz. Good to about 1
/// ppm.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn measured_frequency(read: impl Fn() -> u64) -> u64 {
    let pair = || {
        let (mut tightest, mut best) = (u64::MAX, (0, 0));
        for _ in 0..ATTEMPTS {
            let before = read();
            let time = nanoseconds(ClockId::MonotonicRaw);
            let apart = read().saturating_sub(before);
            if apart < tightest {
                (tightest, best) = (apart, (before + apart / 2, time));
            }
        }
        best
    };
    let first = pair();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let last = pair();
    let (cycles, time) = (last.0.saturating_sub(first.0), (last.1 - first.1).max(1));
    ((u128::from(cycles) * u128::from(NANOSECONDS) / u128::from(time)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_gives_back_the_calibration() {
        let clock = TraceClock { kind: region::Clock::Tsc, frequency: 2_600_000_123 };
        let begin = Calibration {
            cycles: Cycles(77_123_456_789),
            realtime: Timestamp::from_ns(1_763_700_000_123_456_789),
            uncertainty: Duration::from_ns(20),
        };
        let (seconds, Cycles(cycles)) = clock.offset(&begin);
        assert!(cycles < clock.frequency);
        let computed = seconds as u64 * NANOSECONDS + clock.duration(Cycles(cycles + begin.cycles.0)).as_ns();
        assert!(computed.abs_diff(begin.realtime.as_ns() as u64) <= 1, "{computed}");
        let later = clock.real_time(&begin, Cycles(begin.cycles.0 + 2_600_000_123));
        assert_eq!(later, begin.realtime + Duration::from_ns(NANOSECONDS));
    }

    #[test]
    fn a_counter_that_ran_longer_than_since_1970_has_a_negative_offset() {
        let clock = TraceClock { kind: region::Clock::Monotonic, frequency: NANOSECONDS };
        let begin = Calibration {
            cycles: Cycles(3 * NANOSECONDS + 1),
            realtime: Timestamp::from_ns(NANOSECONDS as i64),
            uncertainty: Duration::ZERO,
        };
        assert_eq!(clock.offset(&begin), (-3, Cycles(NANOSECONDS - 1)));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_kernels_conversion_agrees_with_a_measurement() {
        let Ok(clock) = TraceClock::new(ClockChoice::Tsc) else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Tsc,
                "this machine's time stamp counter is not usable as a clock",
            );
        };
        let measured = measured_frequency(tsc::read);
        assert!(
            measured.abs_diff(clock.frequency) < clock.frequency / 1000,
            "{measured} {}",
            clock.frequency
        );
    }
}
