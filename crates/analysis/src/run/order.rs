//! Notices stamps that go back within a stream: which of its events came first is unknown then.

use crate::analysis::Loss;
use tracewing_trace::super_trace::Adapter;
use tracewing_trace::{Stream, Trace};
use tracewing_units::Timestamp;

/// The latest stamp so far. Merged events go back only where those of a stream do.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) latest: Timestamp,
    /// What the last event has made doubtful, if it was older than the latest.
    doubt: Option<Loss>,
    /// Whether any event was older than one before it.
    pub(super) went_back: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self::after(Timestamp::MIN)
    }
}

impl Order {
    /// Of what follows events in order, of which the latest was at a time.
    pub(super) fn after(latest: Timestamp) -> Self {
        Self { latest, doubt: None, went_back: false }
    }

    /// What is doubtful before the next event, as if events of its stream had been lost: with the first that
    /// is older than others, and with the first that is not. `source` is the event's trace and stream.
    #[inline]
    pub(super) fn doubt<'r>(
        &mut self,
        time: Timestamp,
        source: impl FnOnce() -> (&'r Trace, &'r Stream),
    ) -> Option<Loss> {
        if time >= self.latest {
            self.latest = time;
            return self.doubt.take();
        }
        self.goes_back(time, source())
    }

    #[cold]
    fn goes_back(&mut self, time: Timestamp, (trace, stream): (&Trace, &Stream)) -> Option<Loss> {
        self.went_back = true;
        let loss = Loss {
            scope: Adapter::scope(trace, stream),
            cpu: stream.cpu(),
            from: time,
            to: self.latest,
            events: None,
            is_of_others: false,
            is_elsewhere: false,
            is_of_order: true,
        };
        let is_first = self.doubt.replace(loss).is_none();
        is_first.then_some(loss)
    }
}
