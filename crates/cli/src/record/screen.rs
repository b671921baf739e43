//! How a recording goes, on standard error: notes, snapshots, and on a terminal a line that is written over
//! and over.

use super::log;
use crate::output::print_warning;
use crate::record_summary;
use crate::table::{bytes, number};
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tracewing_session::outcome::SnapshotSummary;
use tracewing_session::{Observer, Progress};

/// Time between two updates of the line, and between two looks at the log.
const LIVE: Duration = Duration::from_millis(500);
const LOG: Duration = Duration::from_secs(1);

/// Standard error: notes, and on a terminal a line that is written over and over.
pub struct Screen {
    live: bool,
    /// Snapshots are not reported as they come.
    quiet: bool,
    /// Whether the live line is on the screen.
    shown: bool,
    last: Option<Progress>,
    /// Standard error is a log, which is kept small.
    is_log: bool,
}

impl Screen {
    /// `quiet`: only problems are shown. Snapshots are shown if `has_snapshots`.
    pub fn new(quiet: bool, has_snapshots: bool) -> Self {
        let live = !quiet && std::io::stderr().is_terminal();
        Self { live, quiet: !has_snapshots, shown: false, last: None, is_log: false }
    }

    /// The same of a recorder in the background, whose standard error is a log that it keeps small.
    pub fn of_log(self) -> Self {
        Self { is_log: true, ..self }
    }

    /// Prepares for the summary: on a line of its own, and the log is small without it.
    pub fn end(&mut self) {
        self.clear();
        if self.is_log {
            log::shorten();
            log::end_line();
        }
    }

    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            erase_and_write("");
        }
    }

    fn show(&mut self, line: &str) {
        erase_and_write(line);
        self.shown = true;
    }
}

/// Writes over a terminal's line; as for [`say`], it is no matter where that fails.
fn erase_and_write(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

fn lost(progress: &Progress) -> String {
    record_summary::lost(progress.lost, progress.is_lost_unknown)
}

impl Observer for Screen {
    fn progress_interval(&self) -> Option<Duration> {
        // What programs print comes without a note.
        self.live.then_some(LIVE).or(self.is_log.then_some(LOG))
    }

    fn progress(&mut self, progress: &Progress) {
        if self.is_log {
            log::shorten();
        }
        if !self.live {
            return;
        }
        let since = self.last.replace(*progress);
        let (events, elapsed) = since.map_or((0, Duration::ZERO), |last| (last.events, last.elapsed));
        if let Some(snapshots) = progress.snapshots {
            self.show(&format!(
                "flight recorder {:.1} s   {snapshots} {}   {} lost",
                progress.elapsed.as_secs_f64(),
                if snapshots == 1 { "snapshot" } else { "snapshots" },
                lost(progress)
            ));
            return;
        }
        let seconds = (progress.elapsed - elapsed).as_secs_f64();
        let rate = (progress.events - events) as f64 / seconds.max(1e-3);
        self.show(&format!(
            "recording {:.1} s   {} events/s   {} lost   {}",
            progress.elapsed.as_secs_f64(),
            number(rate as u64),
            lost(progress),
            bytes(progress.bytes)
        ));
    }

    fn snapshot(&mut self, snapshot: &SnapshotSummary) {
        if !self.quiet {
            self.clear();
            record_summary::print_snapshot(snapshot);
        }
    }

    fn note(&mut self, line: &str) {
        self.clear();
        if self.is_log {
            log::end_line();
        }
        print_warning(line);
        if self.is_log {
            log::shorten();
        }
    }
}
