//! What an event says about a function.

use std::collections::HashMap;

use tracewing_ctf::decode::{MemberHandle, Value};
use tracewing_ctf::model::Scope;
use tracewing_trace::EventRef;
use tracewing_trace::super_trace::Seen;

/// What the names of probes end with that are met when a function returns.
const AT_RETURN: &str = "%return";

/// Which function an event is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Which {
    /// The one with the code at this address, in the event's process.
    Address(u64),
    /// One that has events of its own.
    Named(Box<str>),
}

/// An event of provider `function`, or of a probe.
#[derive(Debug, PartialEq)]
pub(crate) enum FunctionEvent {
    Entry(Which),
    Exit(Which),
    NotFollowed,
    Image { begin: u64, end: u64, bias: u64, path: String },
}

#[derive(Debug, Clone, PartialEq)]
enum Meaning {
    Entry,
    Exit,
    NamedEntry(Box<str>),
    NamedExit(Box<str>),
    NotFollowed,
    Image,
}

/// What an event of this name means, and the fields that it must have.
fn meaning(name: &str) -> Option<(Meaning, &'static [&'static str])> {
    Some(match name.strip_prefix("function:")? {
        "entry" => (Meaning::Entry, &["function"]),
        "exit" => (Meaning::Exit, &["function"]),
        "not_followed" => (Meaning::NotFollowed, &[]),
        "image" => (Meaning::Image, &["begin", "end", "bias", "path"]),
        name => match (name.strip_prefix("entry:"), name.strip_prefix("exit:")) {
            (Some(name), _) => (Meaning::NamedEntry(name.into()), &[]),
            (_, Some(name)) => (Meaning::NamedExit(name.into()), &[]),
            _ => return None,
        },
    })
}

/// What a probe means, if there is one where its function begins and one where it returns; and the field that has the function's
/// address.
fn probe(name: &str, is_class: impl Fn(&str) -> bool) -> Option<(Meaning, &'static [&'static str])> {
    match name.strip_suffix(AT_RETURN) {
        Some(function) => is_class(function).then(|| (Meaning::NamedExit(function.into()), &["func"][..])),
        None => {
            is_class(&format!("{name}{AT_RETURN}")).then(|| (Meaning::NamedEntry(name.into()), &["ip"][..]))
        }
    }
}

/// An event class.
#[derive(Debug)]
struct Class {
    /// What its events mean.
    meaning: Meaning,
    /// Where their fields are.
    fields: Vec<MemberHandle>,
    /// The first class of this name, where there are several: probes at one place with arguments of their own.
    first: Option<usize>,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// By stream and class; `None` for events about something else.
    classes: HashMap<(usize, usize), Option<Class>>,
    /// Which of several probes at one place counts, by process, the first of them, and the function's address.
    counting: HashMap<(Option<i32>, usize, u64), usize>,
}

impl Reader {
    /// What an event says; `None` where that is not about functions, not what its name promises, or said already by another
    /// probe.
    pub(crate) fn read(&mut self, seen: &Seen<'_>) -> Option<FunctionEvent> {
        let event = seen.event;
        let decoded = event.decoded();
        let place = (event.stream_index(), decoded.class_index());
        let class = self.classes.entry(place).or_insert_with(|| class_of(event));
        let Class { meaning, fields, first } = class.as_ref()?;
        let number = |at: usize| match decoded.member(*fields.get(at)?)? {
            Value::Unsigned(number, _) => Some(number),
            _ => None,
        };
        if let Some(first) = first {
            let place = (seen.place.process, *first, number(0)?);
            if *self.counting.entry(place).or_insert(decoded.class_index()) != decoded.class_index() {
                return None;
            }
        }
        Some(match meaning {
            Meaning::Entry => FunctionEvent::Entry(Which::Address(number(0)?)),
            Meaning::Exit => FunctionEvent::Exit(Which::Address(number(0)?)),
            Meaning::NamedEntry(name) => FunctionEvent::Entry(Which::Named(name.clone())),
            Meaning::NamedExit(name) => FunctionEvent::Exit(Which::Named(name.clone())),
            Meaning::NotFollowed => FunctionEvent::NotFollowed,
            Meaning::Image => FunctionEvent::Image {
                begin: number(0)?,
                end: number(1)?,
                bias: number(2)?,
                path: match decoded.member(*fields.get(3)?)? {
                    Value::Text(path) => String::from_utf8_lossy(path).into_owned(),
                    _ => return None,
                },
            },
        })
    }
}

#[cold]
fn class_of(event: &EventRef<'_>) -> Option<Class> {
    let decoded = event.decoded();
    let name = decoded.class().name.as_deref()?;
    let streams = &event.trace().class().data_stream_classes;
    let stream = streams.iter().position(|class| class.id == event.stream().class_id())?;
    let names = streams[stream].event_record_classes.iter().map(|class| class.name.as_deref()).enumerate();
    let is_class = |name: &str| names.clone().any(|(_, other)| other == Some(name));
    let (meaning, fields) = meaning(name).or_else(|| probe(name, is_class))?;
    let mut same = names.clone().filter(|(_, other)| *other == Some(name)).map(|(index, _)| index);
    let first = same.next().filter(|_| same.next().is_some());
    let handle =
        |name: &&str| event.trace().decoder().member(stream, decoded.class_index(), Scope::Payload, name);
    Some(Class { meaning, fields: fields.iter().map(handle).collect::<Option<_>>()?, first })
}
