//! What events are matched by: the values of some variables, as bytes that are equal where the values are.

use crate::open::recording::Recording;
use crate::select::condition::EventValue;
use crate::select::values::Values;
use crate::super_trace::{Carried, Column, Place, Seen};
use tracewing_rules::{Scope, Value, Variable};

/// Reads keys from events. Variables are those of conditions, including derived columns; `$task` identifies a
/// user thread together with its process, and has no value without one.
#[derive(Debug)]
pub struct Keys {
    variables: Vec<Variable>,
    /// By stream and event class: where the values are, if the class has them all.
    classes: Vec<Vec<Option<Class>>>,
    values: Values,
    /// Whether derived columns count more than contexts of the same name.
    derived: bool,
}

/// Where a class has the values.
#[derive(Debug)]
enum Class {
    Without,
    With(Vec<Source>),
}

#[derive(Debug)]
enum Source {
    /// The user thread, which has its number in a process.
    UserThread,
    Event(EventValue),
}

/// The byte before a value.
const INTEGER: u8 = 0;
const NEGATIVE: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;

impl Keys {
    /// Keys of these variables.
    pub fn new(variables: Vec<Variable>) -> Self {
        Keys { variables, classes: Vec::new(), values: Values::default(), derived: false }
    }

    /// The same of events in places that are not those in which they were recorded ([`Seen::at_next`]), as
    /// their contexts are.
    #[must_use]
    pub fn derived(self) -> Self {
        Keys { derived: true, ..self }
    }

    /// Appends the key of an event; false where it lacks a value.
    pub fn read(&mut self, seen: &Seen<'_>, key: &mut Vec<u8>) -> bool {
        if self.variables.is_empty() {
            return true;
        }
        let (stream, index) = (seen.event.stream_index(), seen.event.decoded().class_index());
        if self.classes.get(stream).and_then(|known| known.get(index)).is_none_or(Option::is_none) {
            self.learn(seen);
        }
        let Some(Class::With(sources)) = &self.classes[stream][index] else { return false };
        sources.iter().all(|source| match source {
            Source::UserThread => append_user_thread(&seen.place, key),
            Source::Event(value) => value.read(seen, &mut self.values, |value| append(value, key)).is_some(),
        })
    }

    /// The variables that no class has, of the recording's classes that `named` accepts.
    pub fn missing(&self, recording: &Recording, named: impl Fn(&str) -> bool) -> Vec<&Variable> {
        let has = |variable: &Variable| {
            recording.traces().iter().any(|trace| {
                let streams = trace.class().data_stream_classes.iter().enumerate();
                streams.into_iter().any(|(stream, class)| {
                    class.event_record_classes.iter().enumerate().any(|(event, class)| {
                        class.name.as_deref().is_some_and(&named)
                            && EventValue::new(variable, trace, stream, event).is_ok()
                    })
                })
            })
        };
        self.variables.iter().filter(|variable| !is_user_thread(variable) && !has(variable)).collect()
    }

    #[cold]
    fn learn(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let (stream, index) = (event.stream_index(), event.decoded().class_index());
        let streams = &event.trace().class().data_stream_classes;
        let place = streams.iter().position(|class| class.id == event.stream().class_id());
        let source = |variable| match is_user_thread(variable) {
            true => Some(Source::UserThread),
            false => {
                let column =
                    Column::named(&variable.name).filter(|_| self.derived && is_plain_context(variable));
                let value = match column {
                    Some(column) => EventValue::derived(column),
                    None => EventValue::new(variable, event.trace(), place?, index).ok()?,
                };
                Some(Source::Event(value))
            }
        };
        let sources: Option<Vec<_>> = self.variables.iter().map(source).collect();
        if self.classes.len() <= stream {
            self.classes.resize_with(stream + 1, Vec::new);
        }
        let known = &mut self.classes[stream];
        if known.len() <= index {
            known.resize_with(index + 1, || None);
        }
        known[index] = Some(sources.map_or(Class::Without, Class::With));
    }

    /// A key for people: each variable and its value.
    pub fn shown(&self, key: &[u8]) -> Vec<(String, String)> {
        let mut rest = key;
        let mut next = || {
            let (kind, bytes) = rest.split_first()?;
            let length = match *kind {
                TEXT => 4 + u32::from_le_bytes(*bytes.first_chunk()?) as usize,
                REAL => 8,
                _ => 16,
            };
            let (value, after) = bytes.split_at_checked(length)?;
            rest = after;
            Some(match *kind {
                TEXT => String::from_utf8_lossy(value.get(4..)?).into_owned(),
                REAL => f64::from_bits(u64::from_le_bytes(*value.first_chunk()?)).to_string(),
                NEGATIVE => i128::from_le_bytes(*value.first_chunk()?).to_string(),
                _ => u128::from_le_bytes(*value.first_chunk()?).to_string(),
            })
        };
        let value = |variable: &Variable| {
            let value = next()?;
            let text = if is_user_thread(variable) { format!("{value}/{}", next()?) } else { value };
            Some((variable.to_string(), text))
        };
        self.variables.iter().map_while(value).collect()
    }
}

fn is_plain_context(variable: &Variable) -> bool {
    variable.scope == Scope::Context && variable.index.is_none() && !variable.length
}

fn is_user_thread(variable: &Variable) -> bool {
    (variable.scope, variable.name.as_str()) == (Scope::Context, Column::Task.name())
}

/// Its process, then its number.
fn append_user_thread(place: &Place<'_>, key: &mut Vec<u8>) -> bool {
    let Carried::Thread { id, .. } = place.thread else { return false };
    append(Value::Integer(place.process.map_or(-1, |pid| pid.0).into()), key);
    append(Value::Integer(id.0.into()), key);
    true
}

fn append(value: Value<'_>, key: &mut Vec<u8>) {
    match value {
        Value::Integer(number) => {
            key.push(if number.is_negative() { NEGATIVE } else { INTEGER });
            key.extend_from_slice(&number.bits().to_le_bytes());
        }
        Value::Real(number) => {
            key.push(REAL);
            key.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::Text(text) => {
            let text = &text[..text.len().min(u32::MAX as usize)];
            key.push(TEXT);
            key.extend_from_slice(&(text.len() as u32).to_le_bytes());
            key.extend_from_slice(text);
        }
    }
}
