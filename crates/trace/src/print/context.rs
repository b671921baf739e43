//! The context of each event's thread, as `tracewing record --context` has recorded it: in events of the
//! class `tracewing:thread_context`, each of which says since when it holds. They are read before the
//! listing begins, so an event has its context wherever the listing begins.
//!
//! Traces with the same clock are of one recording, and share it. What is unknown is `unknown` in text,
//! `null` in JSON and empty in CSV.

use crate::append::number;
use crate::append::quote::quoted;
use crate::merge::event::EventRef;
use crate::merge::fields::{Actor, Classes};
use crate::open::recording::{Recording, Stream, Trace};
use std::collections::HashMap;
use std::sync::Arc;
use tracewing_ctf::decode::{Compound, Event, Value, Visitor};
use tracewing_ctf::model::{Scope, Uuid};
use tracewing_units::Tid;
use tracewing_vocabulary::context::TID;
use tracewing_vocabulary::recorder::ThreadContext;

/// The first part of the names of streams with context.
const STREAMS: &str = "context";
/// A number that stands for one that is unknown.
const UNKNOWN: u64 = u32::MAX as u64;

/// What is known of the threads of a recording.
#[derive(Debug)]
pub(crate) struct Known {
    /// By the place of the trace, that in `sets`.
    of_traces: Vec<Option<usize>>,
    sets: Vec<Set>,
    /// The fields that any of them has.
    names: Vec<&'static str>,
}

/// What is known of threads by one clock.
#[derive(Debug)]
struct Set {
    clock: Option<Uuid>,
    names: Vec<&'static str>,
    /// By time.
    threads: HashMap<Tid, Vec<Version>>,
}

#[derive(Debug)]
struct Version {
    /// In cycles of the clock.
    since: u64,
    /// One for each name of the set.
    values: Vec<Field>,
}

/// A value in the context of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Unknown,
    Number(u64),
    Text(Vec<u8>),
}

/// Finds the context of events.
#[derive(Debug)]
pub(crate) struct Contexts {
    known: Arc<Known>,
    tids: Classes<Option<Actor>>,
}

/// The context of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'k> {
    names: &'k [&'static str],
    /// `None` if the thread is unknown.
    values: Option<&'k [Field]>,
}

/// The fields of context that a trace records.
fn names(trace: &Trace) -> Option<Vec<&'static str>> {
    let classes = trace.class().data_stream_classes.iter().flat_map(|stream| &stream.event_record_classes);
    let mut found = classes.filter(|class| class.name.as_deref() == Some(ThreadContext::NAME));
    let members = found.next()?.payload.as_ref()?;
    let has = |name: &str| members.members.iter().any(|member| member.name == name);
    let fields = ThreadContext::FIELDS.iter().map(|field| field.name);
    let is_shown = |name: &str| ![ThreadContext::tid.name, ThreadContext::since.name].contains(&name);
    Some(fields.filter(|name| is_shown(name) && has(name)).collect())
}

fn is_of_context(stream: &Stream) -> bool {
    stream.name().rsplit('/').next().is_some_and(|file| file.starts_with(STREAMS))
}

impl Known {
    /// Reads all context that a recording has. What is damaged is left out: the listing reports it.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut this = Self { of_traces: Vec::new(), sets: Vec::new(), names: Vec::new() };
        for (index, trace) in recording.traces().iter().enumerate() {
            let Some(names) = names(trace) else { continue };
            let clock = clock(trace);
            let known = this.sets.iter().position(|set| set.clock == clock);
            let place = known.unwrap_or_else(|| {
                this.sets.push(Set { clock, names, threads: HashMap::new() });
                this.sets.len() - 1
            });
            let streams = || recording.streams().iter().enumerate();
            let mut of_it = streams().filter(|(_, stream)| stream.trace_index() == index).peekable();
            let has_own = streams().any(|(_, it)| it.trace_index() == index && is_of_context(it));
            of_it.by_ref().filter(|(_, stream)| !has_own || is_of_context(stream)).for_each(|(at, _)| {
                let _ = recording.events_of(at).for_each(|event| this.sets[place].add(&event));
            });
        }
        this.sets.iter_mut().for_each(Set::sort);
        let fields = ThreadContext::FIELDS.iter().map(|field| field.name);
        this.names = fields.filter(|name| this.sets.iter().any(|set| set.names.contains(name))).collect();
        let of_clock = |trace| this.sets.iter().position(|set| set.clock == clock(trace));
        this.of_traces = recording.traces().iter().map(of_clock).collect();
        this
    }

    /// The fields that any trace has.
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.names
    }
}

/// The identity of a trace's clock.
fn clock(trace: &Trace) -> Option<Uuid> {
    trace.class().clock_classes.first()?.uuid
}

impl Set {
    fn add(&mut self, event: &Event<'_>) {
        if event.class().name.as_deref() != Some(ThreadContext::NAME) {
            return;
        }
        let mut read = Reading { names: &self.names, tid: None, since: 0, values: Vec::new() };
        read.values.resize(self.names.len(), Field::Unknown);
        event.visit(Scope::Payload, &mut read);
        let Reading { tid, since, values, .. } = read;
        if let Some(tid) = tid {
            let versions = self.threads.entry(tid).or_default();
            // Each archive repeats the last ones of the one before.
            if versions.last().is_none_or(|last| last.since != since || last.values != values) {
                versions.push(Version { since, values });
            }
        }
    }

    /// Those of a later archive repeat those of the one before.
    fn sort(&mut self) {
        for versions in self.threads.values_mut() {
            versions.sort_by_key(|version| version.since);
            versions.dedup_by(|one, other| one.since == other.since && one.values == other.values);
        }
    }
}

/// Reads an event with context.
struct Reading<'n> {
    names: &'n [&'static str],
    tid: Option<Tid>,
    since: u64,
    values: Vec<Field>,
}

impl Visitor for Reading<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let Some(name) = name else { return };
        let field = match value {
            Value::Unsigned(UNKNOWN, _) => Field::Unknown,
            Value::Unsigned(number, _) => Field::Number(number),
            Value::Signed(number, _) => u64::try_from(number).map_or(Field::Unknown, Field::Number),
            Value::Text([]) => Field::Unknown,
            Value::Text(text) => Field::Text(text.to_vec()),
            _ => Field::Unknown,
        };
        match field {
            Field::Number(number) if name == ThreadContext::tid.name => {
                self.tid = i32::try_from(number).ok().map(Tid);
            }
            Field::Number(number) if name == ThreadContext::since.name => self.since = number,
            field => {
                let place = self.names.iter().position(|known| *known == name);
                if let Some(value) = place.and_then(|at| self.values.get_mut(at)) {
                    *value = field;
                }
            }
        }
    }

    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}

    fn end(&mut self, _: Compound<'_>) {}
}

impl Contexts {
    /// Finds what is known.
    pub(crate) fn new(known: Arc<Known>) -> Self {
        Self { known, tids: Classes::default() }
    }

    /// What is known, for another thread that prints.
    pub(crate) fn known(&self) -> Arc<Known> {
        self.known.clone()
    }

    /// The context of an event; `None` if its recording has none.
    pub(crate) fn of(&mut self, event: &EventRef<'_>) -> Option<Shown<'_>> {
        let set = self.known.of_traces.get(event.trace_index()).copied().flatten()?;
        let set = &self.known.sets[set];
        let tid = self.tids.of(event, |event| Actor::of(event, &TID));
        let tid = tid.as_ref().and_then(|tid| tid.number(event, event.record().1.as_ref()));
        let now = event.stamp().map(|stamp| stamp.cycles.0);
        let values = tid.zip(now).and_then(|(tid, now)| {
            let versions = set.threads.get(&Tid(tid))?;
            let after = versions.partition_point(|version| version.since <= now);
            Some(versions.get(after.checked_sub(1)?)?.values.as_slice())
        });
        Some(Shown { names: &set.names, values })
    }
}

impl Shown<'_> {
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &Field)> {
        let value = |at: usize| self.values.and_then(|values| values.get(at)).unwrap_or(&Field::Unknown);
        self.names.iter().enumerate().map(move |(at, name)| (*name, value(at)))
    }

    /// Appends it as a structure of the text form.
    pub(crate) fn text(&self, out: &mut Vec<u8>, with_names: bool) {
        out.push(b'{');
        for (index, (name, field)) in self.fields().enumerate() {
            out.extend_from_slice(if index > 0 { b", " } else { b" " });
            if with_names {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b" = ");
            }
            match field {
                Field::Unknown => out.extend_from_slice(b"unknown"),
                Field::Number(value) => number::unsigned(out, *value),
                Field::Text(text) => quoted(out, text),
            }
        }
        out.extend_from_slice(b" }");
    }

    /// Shows each field that is known as it is in CSV.
    pub(crate) fn cells(&self, mut each: impl FnMut(&'static str, &[u8])) {
        for (name, field) in self.fields() {
            match field {
                Field::Unknown => {}
                Field::Number(value) => each(name, value.to_string().as_bytes()),
                Field::Text(text) => each(name, String::from_utf8_lossy(text).as_bytes()),
            }
        }
    }
}
