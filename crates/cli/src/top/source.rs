//! The running recording, read window by window. It is only read: the recorder does not notice.

use anyhow::Result;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracewing_analysis::{Live, Window};
use tracewing_trace::{Error, Growing, Losses, TimeRange};
use tracewing_units::Timestamp;

/// For how long an event waits for earlier ones of streams in which nothing happens: a recorder writes each
/// event within 0.2 s. Those that come later are counted as lost.
const HOLD: Duration = Duration::from_millis(400);
/// Time that a recorder has to write its first metadata.
const PATIENCE: Duration = Duration::from_secs(3);
/// A recording whose clock differs more from this machine's is of another time.
const MOST_LATE: u128 = 3_600_000_000_000;

pub struct Source {
    growing: Growing,
    interval: tracewing_units::Duration,
    /// `None` before the first window.
    live: Option<Live>,
    lost: Losses,
    has_ended: bool,
}

impl Source {
    pub fn open(folder: &Path, interval: Duration) -> Result<Self, Error> {
        let begin = Instant::now();
        let growing = loop {
            match Growing::open(&[folder], HOLD) {
                Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(HOLD / 4),
                growing => break growing?,
            }
        };
        let interval = tracewing_units::Duration::from_ns(interval.as_nanos().min(u64::MAX.into()) as u64);
        Ok(Self { growing, interval, live: None, lost: Losses::default(), has_ended: false })
    }

    /// Looks for what has been added; has to be called often, since what is old enough depends on when it was
    /// seen first.
    pub fn look(&mut self) -> Result<(), Error> {
        let is_other = self.growing.look()?;
        if let Some(live) = self.live.as_mut().filter(|_| is_other)
            && !live.reopen(self.growing.recording())
        {
            *live = Live::new(self.growing.recording(), live.begin());
            self.growing.rewind();
        }
        self.has_ended = self.growing.is_over();
        Ok(())
    }

    /// What happened since the last window, if anything is known of it. `is_stopped` is asked from time to
    /// time.
    pub fn window(&mut self, is_stopped: &mut dyn FnMut() -> bool) -> Result<Option<Window>, Error> {
        let (until, interval) = (self.growing.until(), self.interval);
        if until == Timestamp::MIN || !self.growing.has_more() {
            return Ok(None);
        }
        let recording = self.growing.recording();
        // Of a recording that has just ended, all is read.
        let begin = if until == Timestamp::MAX { recording.end().unwrap_or(until) } else { until };
        let live = self.live.get_or_insert_with(|| Live::new(recording, begin.saturating_sub(interval)));
        let mut watch = || if is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let window = self
            .growing
            .read(TimeRange::ALL, |recording, merge| live.window(recording, merge, until, &mut watch))?;
        if window.ran.stopped {
            return Ok(None);
        }
        self.lost = self.lost.and(window.ran.lost());
        Ok(self.live.as_ref().is_some_and(Live::has_begun).then_some(window))
    }

    /// What was lost in the time of all windows.
    pub fn lost(&self) -> Losses {
        self.lost
    }

    /// Whether the last window is the last one.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// How long ago the last window ended; `None` if the recording's clock is not that of today.
    pub fn late(&self) -> Option<Duration> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let end = u128::try_from(self.live.as_ref()?.begin().as_ns()).ok()?;
        let late = now.checked_sub(end).filter(|late| *late < MOST_LATE)?;
        u64::try_from(late).ok().map(Duration::from_nanos)
    }
}
