//! When to look at the buffers next: soon while they fill quickly, so that they are at most a quarter full at
//! each look, and rarely while little happens. Programs never wake their consumer.
//!
//! A program that fills its buffers quickly does not do so evenly: it waits, for instance for a CPU, and then
//! continues as quickly as before. So the interval between two looks is shortened at once and lengthened step
//! by step. Measured with a program that does nothing but emit, on two CPUs with six other runnable programs:
//! without the steps 20 % of its events are lost, with them 1 to 3 %.

use std::time::{Duration, Instant};

use crate::drain::Found;

/// Default time after which an event is in the trace folder.
pub const FLUSH: Duration = Duration::from_millis(200);
/// Longest interval between two looks: a burst that begins right after a look must fit into the buffers for
/// so long.
pub const LONGEST_INTERVAL: Duration = Duration::from_millis(50);
/// Interval that is enough for a short flush time: a shorter one only wakes an idle recorder more often.
const SHORT_ENOUGH: Duration = Duration::from_millis(4);
/// Shortest interval between two looks.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// How full a buffer may be at a look.
const AIM: f64 = 0.25;
/// Maximum growth of the interval from one look to the next: from the shortest to the longest it takes 19
/// looks in a quarter of a second.
const STEP: f64 = 1.25;

/// The timer of a consumer.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    longest: Duration,
    interval: Duration,
    /// When the last look began, and when it had emptied the buffers.
    looked: Instant,
    emptied: Instant,
}

impl Pace {
    /// A timer whose first look is due. With a short flush time the intervals are always short. A look writes
    /// what would be too old at the next one, so the longest interval is at most the flush time.
    pub fn new(flush: Duration) -> Self {
        let least = SHORT_ENOUGH.min(flush / 4 * 3);
        let longest = (flush / 4).max(least).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        let now = Instant::now();
        Self { longest, interval: Duration::ZERO, looked: now, emptied: now }
    }

    /// The longest interval between two looks.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Time until the next look; zero when it is due.
    pub fn remaining(&self) -> Duration {
        self.interval.saturating_sub(self.looked.elapsed())
    }

    /// Records the findings of a look that began at `begin` and ended at `end`.
    pub fn looked(&mut self, begin: Instant, end: Instant, found: &Found) {
        let filling = begin.duration_since(self.emptied);
        let ideal = filling.as_secs_f64() * AIM / found.fullest.max(1e-9);
        let step = self.interval.max(SHORTEST_INTERVAL).mul_f64(STEP);
        let next = Duration::try_from_secs_f64(ideal).unwrap_or(step).min(step);
        (self.looked, self.emptied) = (begin, end);
        self.interval = next.clamp(SHORTEST_INTERVAL, self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_buffers_are_looked_at_soon() {
        let mut pace = Pace::new(FLUSH);
        let mut now = pace.looked;
        pace.interval = LONGEST_INTERVAL;
        let mut after = |filling: u64, fullest: f64, look: u64| {
            let begin = now + Duration::from_millis(filling);
            now = begin + Duration::from_millis(look);
            pace.looked(begin, now, &Found { fullest, written: 0 });
            pace.interval
        };
        assert_eq!(after(50, 0.5, 0), Duration::from_millis(25));
        assert_eq!(after(4, 1.0, 2), SHORTEST_INTERVAL);
        // Half full in 2 ms, however long the previous look took.
        assert_eq!(after(2, 0.5, 2), SHORTEST_INTERVAL);
        assert_eq!(after(0, 1.0, 0), SHORTEST_INTERVAL);
    }

    #[test]
    fn intervals_are_not_longer_than_the_flush_time() {
        let longest = |flush: u64| Pace::new(Duration::from_millis(flush)).longest().as_micros();
        let expected =
            [(1, 1_000), (4, 3_000), (5, 3_750), (8, 4_000), (16, 4_000), (100, 25_000), (1_000, 50_000)];
        for (flush, micros) in expected {
            assert_eq!(longest(flush), micros, "{flush} ms");
        }
        assert_eq!(Pace::new(Duration::MAX).longest(), LONGEST_INTERVAL);
    }

    #[test]
    fn idle_ones_are_looked_at_seldom_but_not_at_once() {
        let mut pace = Pace::new(FLUSH);
        let (mut now, begin) = (pace.looked, pace.looked);
        let mut looks = 0;
        while pace.interval < LONGEST_INTERVAL {
            let before = pace.interval;
            now += before;
            pace.looked(now, now, &Found::default());
            assert!(pace.interval <= before.max(SHORTEST_INTERVAL).mul_f64(STEP));
            looks += 1;
        }
        assert_eq!(looks, 19);
        assert!(now.duration_since(begin) < Duration::from_millis(250));
        now += LONGEST_INTERVAL;
        pace.looked(now, now, &Found::default());
        assert_eq!(pace.interval, LONGEST_INTERVAL);
    }
}
