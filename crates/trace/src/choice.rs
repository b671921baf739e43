//! Which part of a recording is wanted: a time range, and events of it.

use crate::listing;
use crate::open::Recording;
use crate::select::Selection;
use crate::time_range::{TimePoint, TimeRange};
use crate::{Error, Zone};
use tracewing_rules::Predicate;

/// What a user wants of a recording; everything by default.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// What lies before is left out.
    pub from: Option<TimePoint>,
    /// What lies behind is left out.
    pub to: Option<TimePoint>,
    /// The zone of civil times.
    pub zone: Zone,
    /// Patterns, one of which an event's name must match; all events where there is none.
    pub events: Vec<String>,
    /// Patterns, none of which an event's name may match.
    pub exclude: Vec<String>,
    /// What must hold for an event.
    pub predicate: Option<Predicate>,
}

impl Choice {
    /// The time range.
    pub(crate) fn range(&self, recording: &Recording) -> Result<TimeRange, Error> {
        let begin = match (self.from, self.to) {
            (None, None) => 0,
            _ => listing::begin(recording)?,
        };
        TimeRange::between(self.from, self.to, begin, self.zone)
    }

    /// The events.
    pub(crate) fn selection(&self, recording: &Recording) -> Result<Selection, Error> {
        let selection = Selection::new(&self.events).excluding(&self.exclude);
        match &self.predicate {
            Some(predicate) => selection.with_predicate(predicate.clone(), recording),
            None => Ok(selection),
        }
    }
}
