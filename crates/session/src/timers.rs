//! The recording's times: when it began, and when something is due again.

use std::time::{Duration, Instant};

use tracewing_consumer::drain::Found;
use tracewing_consumer::pace::Pace;
use tracewing_units::Cycles;

/// When what was done last.
pub(crate) struct Timers {
    pub(crate) started: Instant,
    /// The recording's clock at `started`.
    pub(crate) began: Cycles,
    pace: Pace,
    /// When the observer has last seen how far the recording is.
    shown: Instant,
}

impl Timers {
    /// The recording starts now, when its clock says `began`; no event is to reach the disk later than
    /// `flush` after it was recorded.
    pub(crate) fn new(began: Cycles, flush: Duration) -> Self {
        let started = Instant::now();
        Self { started, began, pace: Pace::new(flush), shown: started }
    }

    /// Until the next look.
    pub(crate) fn remaining(&self) -> Duration {
        self.pace.remaining()
    }

    /// Whether a look is due, or so soon that the thread is not to be woken for it again.
    pub(crate) fn is_due(&self) -> bool {
        self.remaining() <= self.pace.longest() / 4
    }

    /// A look is taken now. Gives the longest time to the next one.
    pub(crate) fn look(&mut self, now: Instant) -> Duration {
        self.pace.looked(now, now, &Found::default());
        self.pace.longest()
    }

    /// Whether it is time to show the observer the recording's progress, which it wants at this interval.
    pub(crate) fn shows(&mut self, now: Instant, interval: Option<Duration>) -> bool {
        let is_due = interval.is_some_and(|interval| now.duration_since(self.shown) >= interval);
        if is_due {
            self.shown = now;
        }
        is_due
    }
}
