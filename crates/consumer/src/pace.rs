//! When to look at the buffers next: soon while they fill fast, so that they get no fuller than a quarter between two
//! looks, and seldom when little happens. Programs never wake their consumer.

use std::time::{Duration, Instant};

use crate::drain::Found;

/// Time after which an event is in the trace folder, unless asked otherwise.
pub const FLUSH: Duration = Duration::from_millis(200);
/// Longest time between two looks: what a burst that begins right after one has to fit into the buffers for.
pub const LONGEST_INTERVAL: Duration = Duration::from_millis(50);
/// Shortest time between two looks.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// How full a buffer may get between two looks.
const AIM: f64 = 0.25;

/// The timer of a consumer.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    longest: Duration,
    interval: Duration,
    looked: Instant,
}

impl Pace {
    /// A timer whose first look is due. With a short flush time the looks are never far apart.
    pub fn new(flush: Duration) -> Self {
        let longest = LONGEST_INTERVAL.min(flush / 4).max(SHORTEST_INTERVAL);
        Self { longest, interval: Duration::ZERO, looked: Instant::now() }
    }

    /// The longest time that can pass between two looks.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Time until the next look; zero when it is due.
    pub fn remaining(&self) -> Duration {
        self.interval.saturating_sub(self.looked.elapsed())
    }

    /// Takes note of what a look that began at `now` has found.
    pub fn looked(&mut self, now: Instant, found: &Found) {
        let since = now.duration_since(self.looked);
        let ideal = since.as_secs_f64() * AIM / found.fullest.max(1e-9);
        let ideal = Duration::try_from_secs_f64(ideal).unwrap_or(self.longest);
        (self.looked, self.interval) = (now, ideal.clamp(SHORTEST_INTERVAL, self.longest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_buffers_are_looked_at_soon_and_idle_ones_seldom() {
        let mut pace = Pace::new(FLUSH);
        let mut now = pace.looked;
        let mut after = |since: u64, fullest: f64| {
            now += Duration::from_millis(since);
            pace.looked(now, &Found { fullest, written: 0 });
            pace.interval
        };
        assert_eq!(after(10, 0.0), LONGEST_INTERVAL);
        assert_eq!(after(50, 0.5), Duration::from_millis(25));
        assert_eq!(after(4, 1.0), SHORTEST_INTERVAL);
        assert_eq!(after(0, 1.0), SHORTEST_INTERVAL);
        assert_eq!(after(20, 0.25), Duration::from_millis(20));
    }
}
