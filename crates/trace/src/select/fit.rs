//! How a condition fits the event classes of a recording.

use crate::open::recording::{Recording, Trace};
use crate::select::condition::EventCondition;
use crate::{Error, NoFit, UsageFault};
use tracewing_rules::{CompileError, Fit, Predicate};

/// How a condition fits some classes of a recording.
#[derive(Debug)]
pub(super) struct ConditionFit<'p> {
    all: Fit<'p>,
    /// Whether it may hold for events of some class.
    fits_some: bool,
    /// Why it holds for no event of the other classes.
    reasons: Vec<CompileError>,
    /// Whether it asks for places in some class.
    pub(super) needs_places: bool,
}

impl<'p> ConditionFit<'p> {
    /// Fits `predicate` to each class that `is_chosen`, by its trace and name.
    pub(super) fn of(
        predicate: &'p Predicate,
        recording: &Recording,
        is_chosen: impl Fn(&Trace, Option<&str>) -> bool,
    ) -> Self {
        let mut fit =
            Self { all: Fit::new(predicate), fits_some: false, reasons: Vec::new(), needs_places: false };
        for trace in recording.traces() {
            for (stream, class) in trace.class().data_stream_classes.iter().enumerate() {
                for (event, class) in class.event_record_classes.iter().enumerate() {
                    if !is_chosen(trace, class.name.as_deref()) {
                        continue;
                    }
                    match EventCondition::new(predicate, trace, stream, event) {
                        Ok(condition) => {
                            fit.fits_some = true;
                            fit.needs_places |= condition.asks_for_places();
                        }
                        Err(reason) => fit.reasons.push(reason),
                    }
                    EventCondition::add_to(&mut fit.all, trace, stream, event);
                }
            }
        }
        fit
    }

    /// # Errors
    /// There are classes, and the predicate holds for no event of them, or none has a field that it asks for.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if !self.fits_some && !self.reasons.is_empty() {
            return Err(UsageFault::NoFit(NoFit::new(std::mem::take(&mut self.reasons))).into());
        }
        match self.all.absent() {
            Some(name) => Err(UsageFault::NoField(name).into()),
            None => Ok(()),
        }
    }

    /// Why a comparison is unknown in all classes; the whole condition may still be known.
    pub(super) fn mistyped(&self) -> Option<&CompileError> {
        self.all.mistyped()
    }
}
