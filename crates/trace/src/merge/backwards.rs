//! Detects stamps that go back within a stream: such events have no order, and are returned where they are
//! stored.

use crate::merge::event::EventRef;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tracewing_units::Timestamp;

/// The latest stamp so far, and the streams that have been reported.
#[derive(Debug)]
pub(crate) struct Backwards {
    /// In nanoseconds since the clock's origin.
    latest: Timestamp,
    reported: Arc<Mutex<HashSet<usize>>>,
}

impl Default for Backwards {
    fn default() -> Self {
        Backwards { latest: Timestamp::MIN, reported: Arc::default() }
    }
}

impl Backwards {
    /// For other events of the same streams.
    pub(crate) fn sibling(&self) -> Self {
        Backwards { latest: Timestamp::MIN, reported: self.reported.clone() }
    }

    /// Takes what comes next for what follows events of which the latest was at a time.
    pub(crate) fn restart_after(&mut self, latest: Timestamp) {
        self.latest = latest;
    }

    /// From when to when the merged events go back with this one, in nanoseconds since the clock's origin;
    /// once for each stream.
    #[inline]
    pub(crate) fn notice(&mut self, event: &EventRef<'_>) -> Option<(Timestamp, Timestamp)> {
        let ns = event.stamp()?.time;
        if ns >= self.latest {
            self.latest = ns;
            return None;
        }
        self.report(event.stream_index()).then_some((self.latest, ns))
    }

    #[cold]
    fn report(&self, stream: usize) -> bool {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(stream)
    }
}
