//! Which events a user wants to see: by name, and by what is in them.

use crate::Error;
use crate::condition::EventCondition;
use crate::merge::EventRef;
use crate::open::{Recording, Stream, Trace};
use crate::values::Values;
use std::collections::HashMap;
use tracewing_ctf::decode::Event;
use tracewing_rules::{CompileError, Glob, Predicate};

/// Chooses events; asks each pattern once per event class, and fits the predicate to each class once.
#[derive(Debug, Default)]
pub struct Selection {
    globs: Vec<Glob>,
    exclude: Vec<Glob>,
    predicate: Option<Predicate>,
    /// By trace, data stream class id and event class id.
    known: HashMap<(usize, u64, u64), Choice>,
    values: Values,
}

/// Which events of a class are wanted.
#[derive(Debug)]
enum Choice {
    None,
    All,
    Some(Box<EventCondition>),
}

impl Selection {
    /// Chooses the events whose names match one of `patterns`; all of them where there is no pattern.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Self {
        Selection {
            globs: patterns.iter().map(|pattern| Glob::new(pattern.as_ref())).collect(),
            ..Selection::default()
        }
    }

    /// Of those, only the events whose names match none of `patterns`.
    #[must_use]
    pub fn excluding<S: AsRef<str>>(mut self, patterns: &[S]) -> Self {
        self.exclude = patterns.iter().map(|pattern| Glob::new(pattern.as_ref())).collect();
        self
    }

    /// Of those, only the events for which `predicate` holds.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are classes to choose from in the recording, and the predicate fits none of them.
    pub fn with_predicate(mut self, predicate: Predicate, recording: &Recording) -> Result<Self, Error> {
        let mut reasons = Vec::new();
        for trace in recording.traces() {
            for (stream, class) in trace.class().data_stream_classes.iter().enumerate() {
                for (event, class) in class.event_record_classes.iter().enumerate() {
                    if !self.names(class.name.as_deref()) {
                        continue;
                    }
                    match EventCondition::new(&predicate, trace, stream, event) {
                        Ok(_) => {
                            self.predicate = Some(predicate);
                            return Ok(self);
                        }
                        Err(reason) => reasons.push(reason),
                    }
                }
            }
        }
        self.predicate = Some(predicate);
        if reasons.is_empty() { Ok(self) } else { Err(Error::Usage(no_fit(reasons))) }
    }

    /// Whether `event` is wanted.
    pub fn wants(&mut self, event: &EventRef<'_>) -> bool {
        self.is_everything() || self.wants_decoded(event.trace(), event.stream(), &event.decoded())
    }

    /// Whether an event of a stream of a trace is wanted.
    #[inline]
    pub(crate) fn wants_decoded(&mut self, trace: &Trace, stream: &Stream, decoded: &Event<'_>) -> bool {
        if self.is_everything() {
            return true;
        }
        let key = (stream.trace_index(), stream.class_id(), decoded.class().id);
        if !self.known.contains_key(&key) {
            let choice = self.choose(trace, stream.class_id(), decoded.class_index());
            self.known.insert(key, choice);
        }
        match self.known.get(&key) {
            Some(Choice::All) => true,
            Some(Choice::Some(condition)) => condition.holds(decoded, &mut self.values),
            Some(Choice::None) | None => false,
        }
    }

    /// Whether all events are wanted.
    pub(crate) fn is_everything(&self) -> bool {
        self.globs.is_empty() && self.exclude.is_empty() && self.predicate.is_none()
    }

    /// Whether events of a class of this name are wanted, as far as the name goes.
    pub(crate) fn names(&self, name: Option<&str>) -> bool {
        let any = |globs: &[Glob]| name.is_some_and(|name| globs.iter().any(|glob| glob.matches(name)));
        (self.globs.is_empty() || any(&self.globs)) && !any(&self.exclude)
    }

    fn choose(&self, trace: &Trace, stream_class: u64, event: usize) -> Choice {
        let streams = &trace.class().data_stream_classes;
        let Some(stream) = streams.iter().position(|class| class.id == stream_class) else {
            return Choice::None;
        };
        if !self.names(streams[stream].event_record_classes[event].name.as_deref()) {
            return Choice::None;
        }
        let Some(predicate) = &self.predicate else { return Choice::All };
        match EventCondition::new(predicate, trace, stream, event) {
            Ok(condition) => Choice::Some(Box::new(condition)),
            Err(_) => Choice::None,
        }
    }
}

impl Recording {
    /// Those of `patterns` that match the name of no event class.
    pub fn unmatched<'p>(&self, patterns: &'p [String]) -> Vec<&'p str> {
        let streams = self.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
        let classes = streams.flat_map(|stream| &stream.event_record_classes);
        let names: Vec<&str> = classes.filter_map(|class| class.name.as_deref()).collect();
        let is_unmatched = |pattern: &&String| {
            let glob = Glob::new(pattern.as_str());
            !names.iter().any(|name| glob.matches(name))
        };
        patterns.iter().filter(is_unmatched).map(String::as_str).collect()
    }
}

/// Why a predicate fits no event: the classes that come closest first, which have the fields but of another type.
fn no_fit(mut reasons: Vec<CompileError>) -> String {
    const MOST: usize = 4;
    let missing = |reason: &CompileError| matches!(reason.problem, tracewing_rules::Problem::Missing(..));
    reasons.sort_by_key(missing);
    reasons.dedup();
    let mut message = "no event has what the condition asks for".to_owned();
    for reason in reasons.iter().take(MOST) {
        message += &format!("\n  {reason}");
    }
    if reasons.len() > MOST {
        message += &format!("\n  and {} more", reasons.len() - MOST);
    }
    message
}
