//! A selection from messages in the order of time: it follows the super-trace's state where the filter needs
//! to know where an event belongs.

use crate::Error;
use crate::merge::event::EventRef;
use crate::merge::messages::Merge;
use crate::open::recording::{Recording, Stream, Trace};
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::stream::cursor::Lost;
use crate::super_trace::{Adapter, Checkpoint, Follower, Seen};
use crate::time::range::TimeRange;
use tracewing_units::Timestamp;

/// Selects from messages that come in the order of time.
#[derive(Debug)]
pub(crate) struct OrderedSelection {
    selection: Selection,
    range: TimeRange,
    /// When reading begins.
    begin: Timestamp,
    follower: Option<Follower>,
}

impl OrderedSelection {
    /// Selects what `filter` names in `range`. With `places`, they are known of each event, needed or not.
    ///
    /// # Errors
    /// [`Error::Usage`] where the filter makes no sense for the recording.
    pub(crate) fn new(
        filter: &Filter,
        range: TimeRange,
        recording: &Recording,
        places: bool,
    ) -> Result<Self, Error> {
        let selection = Selection::new(filter, recording)?;
        let follower = (places || selection.needs_places()).then(|| Follower::of(recording));
        let begin = if follower.is_some() { Timestamp::MIN } else { range.begin };
        Ok(OrderedSelection { selection, range, begin, follower })
    }

    /// What has to be read: the state at a time follows from all that is before, or since the checkpoint from
    /// which [`Self::merge`] has continued.
    pub(crate) fn reads(&self) -> TimeRange {
        TimeRange { begin: self.begin, ..self.range }
    }

    /// What has to be read of a recording, of which nothing was read so far: from its beginning on, or from
    /// the last checkpoint before the range; and the latest stamp of an event before that. `lost` gets what
    /// is lost of the range before that.
    pub(crate) fn merge<'r>(
        &mut self,
        recording: &'r Recording,
        mut lost: impl FnMut(&Lost, &Trace, &Stream),
    ) -> (Merge<'r>, Timestamp) {
        let range = self.range;
        let begins = range.begin.min(range.end);
        let checkpoint = self.follower.as_ref().and_then(|_| Checkpoint::before(recording, begins));
        // What goes back is reported, also from before the range.
        let Some(checkpoint) = checkpoint.filter(|checkpoint| !checkpoint.known.went_back) else {
            return (Merge::new(recording, self.reads()), Timestamp::MIN);
        };
        let Checkpoint { merge, follower, known, until, .. } = checkpoint;
        (self.follower, self.begin) = (Some(follower), until.next());
        for (missing, stream) in &known.losses {
            let stream = &recording.streams()[*stream];
            if let Some(missing) = self.chosen_of(missing, stream) {
                lost(&missing, &recording.traces()[stream.trace_index()], stream);
            }
        }
        (merge.up_to(range.end), known.latest)
    }

    /// What is chosen in.
    pub(crate) fn range(&self) -> TimeRange {
        self.range
    }

    pub(crate) fn needs_places(&self) -> bool {
        self.follower.is_some()
    }

    /// What follows the state, where that is needed.
    pub(crate) fn follower(&self) -> Option<&Follower> {
        self.follower.as_ref()
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Takes the next event; if it is selected, returns the result of `then` for it, and for its place if
    /// places are known.
    #[inline]
    pub(crate) fn event<T>(
        &mut self,
        event: &EventRef<'_>,
        then: impl FnOnce(Option<&Seen<'_>>) -> T,
    ) -> Option<T> {
        self.event_of_all(event, |_| (), then)
    }

    /// Like [`Self::event`]; `all` also receives events in the range that are not selected, if places are
    /// known.
    #[inline]
    pub(crate) fn event_of_all<T>(
        &mut self,
        event: &EventRef<'_>,
        all: impl FnOnce(&Seen<'_>),
        then: impl FnOnce(Option<&Seen<'_>>) -> T,
    ) -> Option<T> {
        let Some(follower) = &mut self.follower else {
            return self.selection.selects(event).then(|| then(None));
        };
        let activity = follower.activity(event);
        let is_early = event.stamp().is_some_and(|stamp| stamp.time < self.range.begin);
        let seen = (!is_early).then(|| follower.seen(event, activity.as_ref()));
        if let Some(seen) = &seen {
            all(seen);
        }
        let made = seen.filter(|seen| self.selection.selects_seen(seen)).map(|seen| then(Some(&seen)));
        if let Some(activity) = &activity {
            follower.event(activity, &mut ());
        }
        made
    }

    /// Takes the next loss, and returns the selected part of it.
    pub(crate) fn lost(&mut self, lost: &Lost, trace: &Trace, stream: &Stream) -> Option<Lost> {
        if let Some(follower) = &mut self.follower {
            follower.lost(lost, Adapter::scope(trace, stream), &mut ());
        }
        self.chosen_of(lost, stream)
    }

    /// The selected part of a loss.
    fn chosen_of(&self, lost: &Lost, stream: &Stream) -> Option<Lost> {
        let mut lost = *lost;
        (self.selection.may_miss(stream) && lost.cut(&self.range)).then_some(lost)
    }
}
