//! Selects events: by name, by content, and by place.

use crate::Error;
use crate::merge::event::EventRef;
use crate::open::recording::{Recording, Stream, Trace};
use crate::select::condition::EventCondition;
use crate::select::filter::{Filter, Level};
use crate::select::fit::ConditionFit;
use crate::select::values::Values;
use crate::super_trace::{Seen, is_kernel};
use std::collections::HashMap;
use tracewing_ctf::decode::Event;
use tracewing_rules::{Glob, Predicate};
use tracewing_units::Cpu;

/// Chooses events; asks each pattern once per event class, and fits the predicate to each class once.
#[derive(Debug)]
pub struct Selection {
    filter: Filter,
    globs: Vec<Glob>,
    exclude: Vec<Glob>,
    everything: bool,
    needs_places: bool,
    /// By trace, data stream class id and event class id.
    known: HashMap<(usize, u64, u64), Choice>,
    values: Values,
}

/// Which events of a class the filter selects.
#[derive(Debug)]
enum Choice {
    None,
    All,
    Some(Box<EventCondition>),
}

impl Selection {
    /// Chooses the events of `recording` that `filter` selects, whatever their time.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are classes to choose from in the recording, and the predicate fits none of
    /// them, or none has a field that it asks for.
    pub fn new(filter: &Filter, recording: &Recording) -> Result<Self, Error> {
        let mut selection = Self::unfitted(filter);
        if let Some(predicate) = &filter.predicate {
            let mut fit = selection.fit(predicate, recording);
            fit.check()?;
            selection.needs_places |= fit.needs_places;
        }
        Ok(selection)
    }

    /// One whose condition has not been compared with a recording.
    fn unfitted(filter: &Filter) -> Self {
        let globs = |patterns: &[String]| patterns.iter().map(|text| Glob::new(text.as_str())).collect();
        let Filter { events, exclude, predicate, level, cpus, .. } = filter;
        Selection {
            globs: globs(events),
            exclude: globs(exclude),
            everything: events.is_empty()
                && exclude.is_empty()
                && predicate.is_none()
                && level.is_none()
                && cpus.is_empty()
                && !filter.chooses_subjects(),
            needs_places: filter.chooses_subjects(),
            filter: filter.clone(),
            known: HashMap::new(),
            values: Values::default(),
        }
    }

    /// How a condition fits the classes that names and levels choose.
    fn fit<'p>(&self, predicate: &'p Predicate, recording: &Recording) -> ConditionFit<'p> {
        ConditionFit::of(predicate, recording, |trace, name| self.has_level(trace) && self.names(name))
    }

    /// Whether it uses values that only the super-trace provides, so that all earlier events must be read.
    pub(crate) fn needs_places(&self) -> bool {
        self.needs_places
    }

    /// Whether the filter selects `event`, if it needs no places.
    pub fn selects(&mut self, event: &EventRef<'_>) -> bool {
        let cpu = || event.cpu().and_then(|cpu| u32::try_from(cpu).ok().map(Cpu));
        self.everything
            || ((self.filter.cpus.is_empty() || self.filter.has_cpu(cpu()))
                && self.selects_decoded(event.trace(), event.stream(), &event.decoded(), None))
    }

    /// Whether the filter may select events of a CPU.
    pub fn has_cpu(&self, cpu: Cpu) -> bool {
        self.filter.has_cpu(Some(cpu))
    }

    /// Whether the filter might have selected events that a stream has lost.
    pub fn may_miss(&self, stream: &Stream) -> bool {
        self.filter.may_miss(stream)
    }

    /// Whether the filter selects an event with its place.
    pub fn selects_seen(&mut self, seen: &Seen<'_>) -> bool {
        let event = seen.event;
        self.everything
            || (self.filter.has_cpu(seen.place.cpu)
                && self.filter.has_place(seen)
                && self.selects_decoded(event.trace(), event.stream(), &event.decoded(), Some(seen)))
    }

    /// Whether an event of a stream of a trace is selected, ignoring its place and CPU.
    #[inline]
    pub(crate) fn selects_decoded(
        &mut self,
        trace: &Trace,
        stream: &Stream,
        decoded: &Event<'_>,
        seen: Option<&Seen<'_>>,
    ) -> bool {
        if self.everything {
            return true;
        }
        let key = (stream.trace_index(), stream.class_id(), decoded.class().id);
        if !self.known.contains_key(&key) {
            let choice = self.choose(trace, stream.class_id(), decoded.class_index());
            self.known.insert(key, choice);
        }
        match self.known.get(&key) {
            Some(Choice::All) => true,
            Some(Choice::Some(condition)) => condition.holds(decoded, seen, &mut self.values),
            Some(Choice::None) | None => false,
        }
    }

    /// Whether the filter selects all events of its time.
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether the filter selects by user thread, LWP or process.
    pub(crate) fn chooses_subjects(&self) -> bool {
        self.filter.chooses_subjects()
    }

    /// Whether names, levels or conditions leave out some events of a trace whose names are `meant`.
    pub(crate) fn leaves_out(&self, trace: &Trace, meant: impl Fn(&str) -> bool) -> bool {
        trace.class().data_stream_classes.iter().any(|stream| {
            let classes = stream.event_record_classes.iter().enumerate();
            let mut called = classes.filter(|(_, class)| class.name.as_deref().is_some_and(&meant));
            called.any(|(event, _)| !matches!(self.choose(trace, stream.id, event), Choice::All))
        })
    }

    /// The names of those classes of a trace of which names, levels or conditions leave out some events.
    pub(crate) fn left_out<'t>(&self, trace: &'t Trace) -> Vec<&'t str> {
        let streams = trace.class().data_stream_classes.iter();
        let classes = streams.flat_map(|stream| {
            stream.event_record_classes.iter().enumerate().map(|(event, class)| (stream.id, event, class))
        });
        let left =
            classes.filter(|(stream, event, _)| !matches!(self.choose(trace, *stream, *event), Choice::All));
        left.filter_map(|(.., class)| class.name.as_deref()).collect()
    }

    /// Whether the name of a class lets its events pass.
    pub(crate) fn names(&self, name: Option<&str>) -> bool {
        let any = |globs: &[Glob]| name.is_some_and(|name| globs.iter().any(|glob| glob.matches(name)));
        (self.globs.is_empty() || any(&self.globs)) && !any(&self.exclude)
    }

    fn has_level(&self, trace: &Trace) -> bool {
        self.filter.level.is_none_or(|level| (level == Level::Kernel) == is_kernel(trace))
    }

    fn choose(&self, trace: &Trace, stream_class: u64, event: usize) -> Choice {
        let streams = &trace.class().data_stream_classes;
        let Some(stream) = streams.iter().position(|class| class.id == stream_class) else {
            return Choice::None;
        };
        if !self.names(streams[stream].event_record_classes[event].name.as_deref()) || !self.has_level(trace)
        {
            return Choice::None;
        }
        let Some(predicate) = &self.filter.predicate else { return Choice::All };
        match EventCondition::new(predicate, trace, stream, event) {
            Ok(condition) => Choice::Some(Box::new(condition)),
            Err(_) => Choice::None,
        }
    }
}

impl Filter {
    /// What a user should know of the condition, though it can be true: a comparison that no event has the
    /// types for.
    pub fn remark(&self, recording: &Recording) -> Option<String> {
        let mut fit = Selection::unfitted(self).fit(self.predicate.as_ref()?, recording);
        fit.check().ok()?;
        let mistyped = fit.mistyped()?;
        Some(format!("a comparison of the condition is unknown for all events: {mistyped}"))
    }
}
