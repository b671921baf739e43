//! Whether the folders of a recording are still where they were made. A folder that is removed while it is
//! written takes the recording with it, and no write fails.

use std::time::{Duration, Instant};

use tracewing_files::{Dir, Missing};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// The folders of a recording.
pub(crate) struct Places {
    /// Of the trace, or of the snapshots.
    output: Dir,
    /// Of the buffers, where they are in files.
    buffers: Option<Dir>,
    looked: Instant,
    /// Folders and files that are not in their places; each is reported once.
    missing: Vec<Missing>,
    is_deleted: bool,
}

impl Places {
    pub(crate) fn new(output: &Dir, buffers: Option<&Dir>) -> Self {
        let (output, buffers) = (output.clone(), buffers.cloned());
        Self { output, buffers, looked: Instant::now(), missing: Vec::new(), is_deleted: false }
    }

    /// Whether it is time to look again.
    pub(crate) fn are_due(&self, now: Instant) -> bool {
        now.duration_since(self.looked) >= INTERVAL
    }

    /// Looks at the folders; with `all`, at every file. Returns what has become missing since the last look.
    pub(crate) fn look(&mut self, all: bool) -> Vec<Missing> {
        self.looked = Instant::now();
        let output = self.output.check(all).err();
        self.is_deleted |= matches!(output, Some(Missing::Deleted(_)));
        let buffers = self.buffers.as_ref().and_then(|buffers| buffers.check(all).err());
        let is_new = |missing: &Missing| !self.missing.contains(missing);
        let new: Vec<Missing> = output.into_iter().chain(buffers).filter(is_new).collect();
        self.missing.extend(new.iter().cloned());
        new
    }

    /// Whether the trace, or the snapshots' folder, was found deleted.
    pub(crate) fn are_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Whether something was found missing.
    pub(crate) fn are_lost(&self) -> bool {
        !self.missing.is_empty()
    }
}
