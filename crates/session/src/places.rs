//! Whether the folders of a recording are still where they were made. A folder that is removed while it is
//! written takes the recording with it, and no write fails.

use std::time::{Duration, Instant};

use tracewing_files::{Dir, Missing};

use crate::course::Stop;
use crate::recorder::Recorder;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// The folders of a recording.
pub(crate) struct Places {
    /// Of the trace, or of the snapshots.
    output: Dir,
    /// Of the buffers, where they are in files.
    buffers: Option<Dir>,
    looked: Instant,
    /// What is not in its place; each is reported once.
    missing: Vec<Missing>,
}

impl Places {
    pub(crate) fn new(output: &Dir, buffers: Option<&Dir>) -> Self {
        let (output, buffers) = (output.clone(), buffers.cloned());
        Self { output, buffers, looked: Instant::now(), missing: Vec::new() }
    }

    /// Whether it is time to look again.
    pub(crate) fn are_due(&self, now: Instant) -> bool {
        now.duration_since(self.looked) >= INTERVAL
    }

    /// Whether something was found missing.
    pub(crate) fn are_lost(&self) -> bool {
        !self.missing.is_empty()
    }
}

impl Recorder<'_> {
    /// Looks at the folders; with `all`, at every file. The recording stops where the trace was deleted. A
    /// folder that was moved is written to where it is now.
    pub(crate) fn check_places(&mut self, all: bool) {
        self.watches.places.looked = Instant::now();
        let output = self.watches.places.output.check(all).err();
        let buffers = self.watches.places.buffers.as_ref().and_then(|buffers| buffers.check(all).err());
        if matches!(output, Some(Missing::Deleted(_))) {
            self.course.stop = Stop::CannotWrite;
        }
        for missing in output.into_iter().chain(buffers) {
            if !self.watches.places.missing.contains(&missing) {
                self.join.note(missing.to_string());
                self.watches.places.missing.push(missing);
            }
        }
    }
}
