//! The time range that a filter means in a recording: its ends may be events of it, or times since its
//! beginning.

use crate::merge::event::Message;
use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::super_trace::Checkpoint;
use crate::time::range::{TimePoint, TimeRange};
use crate::{Error, UsageFault};
use tracewing_rules::Glob;
use tracewing_units::Timestamp;

impl Filter {
    /// Reads both ends of the time range; civil times in [`Filter::zone`].
    ///
    /// # Errors
    /// [`Error::Usage`] where one of them is not a time.
    pub fn set_range(&mut self, from: Option<&str>, to: Option<&str>) -> Result<(), Error> {
        let read = |text: Option<&str>| text.map(|text| TimePoint::parse(text, self.zone)).transpose();
        (self.from, self.to) = (read(from)?, read(to)?);
        Ok(())
    }

    /// The time range.
    ///
    /// # Errors
    /// [`Error::Usage`] where its ends make no sense; the recording's beginning has to be read for them, and
    /// cannot be.
    pub fn range(&self, recording: &Recording) -> Result<TimeRange, Error> {
        let begin = match (&self.from, &self.to) {
            (None, None) => Timestamp::ORIGIN,
            _ => begin(recording)?,
        };
        let timed = |point: &Option<TimePoint>| match point {
            Some(TimePoint::Occurrence { event, number }) => {
                occurrence(recording, event, *number).map(|time| Some(TimePoint::Absolute(time)))
            }
            other => Ok(other.clone()),
        };
        let mut range =
            TimeRange::between(timed(&self.from)?.as_ref(), timed(&self.to)?.as_ref(), begin, self.zone)?;
        if let (None, Some(begin)) = (&self.from, recording.extract_begin()) {
            range.begin = begin;
        }
        Ok(range)
    }

    /// The time range that is copied: with no times asked for, an extract's earlier events, too, which give
    /// names.
    pub(crate) fn copied_range(&self, recording: &Recording) -> Result<TimeRange, Error> {
        match (&self.from, &self.to) {
            (None, None) => Ok(TimeRange::ALL),
            _ => self.range(recording),
        }
    }
}

/// The beginning of the recording: declared by the recording if it is an extract; otherwise that of its first
/// packet or, if packets have no beginning stamp, its first event.
fn begin(recording: &Recording) -> Result<Timestamp, Error> {
    if let Some(begin) = recording.extract_begin().or(recording.begin()) {
        return Ok(begin);
    }
    let mut merge = Merge::new(recording, TimeRange::ALL);
    while let Some(message) = merge.advance()? {
        if let Message::Event(event) = message {
            return Ok(event.stamp().map_or(Timestamp::ORIGIN, |stamp| stamp.time));
        }
    }
    Ok(Timestamp::ORIGIN)
}

/// When an event occurs for the `number`th time.
fn occurrence(recording: &Recording, event: &Glob, number: u64) -> Result<Timestamp, Error> {
    let filter = Filter { events: vec![event.to_string()], ..Filter::default() };
    let mut selection = Selection::new(&filter, recording)?;
    let (mut merge, mut seen) =
        last_before(recording, event, number).unwrap_or_else(|| (Merge::new(recording, TimeRange::ALL), 0));
    while let Some(message) = merge.advance()? {
        if let Message::Event(event) = message
            && let Some(stamp) = event.stamp()
            && selection.selects(&event)
        {
            seen += 1;
            if seen == number {
                return Ok(stamp.time);
            }
        }
    }
    Err(UsageFault::NoOccurrence { event: event.to_string(), number, seen }.into())
}

/// What follows the last checkpoint before which an event has occurred less than `number` times, and how many
/// times it has.
fn last_before<'r>(recording: &'r Recording, event: &Glob, number: u64) -> Option<(Merge<'r>, u64)> {
    let times = recording.checkpoint_times();
    let (mut first, mut end, mut found) = (0, times.len(), None);
    while first < end {
        let middle = first.midpoint(end);
        let checkpoint = Checkpoint::before(recording, times[middle].next());
        let counted = checkpoint.and_then(|Checkpoint { merge, known, .. }| {
            let names = known.counted?;
            let its = names.iter().filter(|(name, _)| event.matches(name));
            Some((merge, its.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count))))
        });
        match counted {
            Some((merge, seen)) if seen < number => (first, found) = (middle + 1, Some((merge, seen))),
            // Where a checkpoint is not right, or lacks them, the search begins at an earlier one.
            _ => end = middle,
        }
    }
    found
}
