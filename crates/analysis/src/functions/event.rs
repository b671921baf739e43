//! What an event says about a function.

use std::collections::HashMap;

use tracewing_trace::super_trace::{Bytes, Stored};
use tracewing_trace::{Classes, EventRef, Places};
use tracewing_units::Pid;
use tracewing_vocabulary::Class;
use tracewing_vocabulary::function::{self, Named};
use tracewing_vocabulary::probe::{AT_RETURN, Reached, Returned};

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

#[derive(Debug)]
enum Meaning {
    /// What the vocabulary says.
    Known(function::Class, Places),
    /// The function of this name begins.
    Entry(Box<str>),
    /// The function of this name ends.
    Exit(Box<str>),
}

/// What an event of the provider means.
fn meaning(name: &str, event: &EventRef<'_>) -> Option<Meaning> {
    match Named::of_name(name) {
        Some(Named::Entry(name)) => Some(Meaning::Entry(name.into())),
        Some(Named::Exit(name)) => Some(Meaning::Exit(name.into())),
        None => match tracewing_trace::known(event)? {
            (Class::Function(class), places) => Some(Meaning::Known(class, places)),
            _ => None,
        },
    }
}

/// What a probe means, if there is one where its function begins and one where it returns.
fn probe(name: &str, is_class: impl Fn(&str) -> bool) -> Option<Meaning> {
    match name.strip_suffix(AT_RETURN) {
        Some(function) => is_class(function).then(|| Meaning::Exit(function.into())),
        None => is_class(&format!("{name}{AT_RETURN}")).then(|| Meaning::Entry(name.into())),
    }
}

/// Where a probe's events have the address of its function.
#[derive(Debug)]
enum Address {
    Reached(Places),
    Returned(Places),
}

impl Address {
    fn of(meaning: &Meaning, event: &EventRef<'_>) -> Option<Self> {
        match meaning {
            Meaning::Exit(_) => Places::of_fields(event, Returned::FIELDS).map(Self::Returned),
            _ => Places::of_fields(event, Reached::FIELDS).map(Self::Reached),
        }
    }

    fn read(&self, event: &EventRef<'_>) -> Option<u64> {
        match self {
            Self::Reached(places) => places.read::<Reached>(event).map(|event| event.ip),
            Self::Returned(places) => places.read::<Returned>(event).map(|event| event.func),
        }
    }
}

/// What is known of an event class.
#[derive(Debug)]
struct Known {
    meaning: Meaning,
    /// For several probes at one place with different arguments: the first class of this name, and the field
    /// with the address of their function.
    shared: Option<(usize, Address)>,
}

/// What an event says about a function, whichever process it is of.
#[derive(Debug)]
pub struct FunctionRead {
    pub(super) event: FunctionEvent,
    /// Of one of several probes at one place.
    shared: Option<Shared>,
}

/// One of several probes at one place.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// Its class, and the first class of its name.
    class: usize,
    first: usize,
    /// The function's address.
    address: u64,
}

/// Reads events about functions, and remembers their classes.
#[derive(Debug, Default)]
pub struct FunctionReader {
    /// `None` for events about something else.
    classes: Classes<Option<Known>>,
}

impl FunctionReader {
    /// Decodes an event; `None` if it is not about functions, or lacks fields.
    pub fn read(&mut self, event: &EventRef<'_>) -> Option<FunctionRead> {
        let Known { meaning, shared } = self.classes.of(event, known_of).as_ref()?;
        let shared = match shared {
            Some((first, address)) => {
                let (first, address) = (*first, address.read(event)?);
                Some(Shared { class: event.decoded().class_index(), first, address })
            }
            None => None,
        };
        let event = match meaning {
            Meaning::Entry(name) => FunctionEvent::Entry(Which::Named(name.clone())),
            Meaning::Exit(name) => FunctionEvent::Exit(Which::Named(name.clone())),
            Meaning::Known(class, of) => match class {
                function::Class::Entry => {
                    FunctionEvent::Entry(Which::Address(of.read::<function::Entry>(event)?.function))
                }
                function::Class::Exit => {
                    FunctionEvent::Exit(Which::Address(of.read::<function::Exit>(event)?.function))
                }
                function::Class::NotFollowed => FunctionEvent::NotFollowed,
                function::Class::Image => {
                    let function::Image { begin, end, bias, path } = of.read(event)?;
                    let path = String::from_utf8_lossy(path).into_owned();
                    FunctionEvent::Image { begin, end, bias, path }
                }
            },
        };
        Some(FunctionRead { event, shared })
    }

    /// Whether events of this class are about functions.
    pub fn knows(&mut self, event: &EventRef<'_>) -> bool {
        self.classes.of(event, known_of).is_some()
    }
}

/// Which of several probes at one place counts, by process, the first of them, and the function's address.
#[derive(Debug, Default)]
pub(crate) struct Counting(HashMap<(Option<Pid>, usize, u64), usize>);

impl Counting {
    /// How many places are known.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// What an event says; `None` if it repeats another probe's event.
    pub(crate) fn only(&mut self, read: FunctionRead, process: Option<Pid>) -> Option<FunctionEvent> {
        self.counts(&read, process).then_some(read.event)
    }

    /// Whether an event does not repeat another probe's event.
    pub(super) fn counts(&mut self, read: &FunctionRead, process: Option<Pid>) -> bool {
        let Some(Shared { class, first, address }) = read.shared else { return true };
        *self.0.entry((process, first, address)).or_insert(class) == class
    }
}

impl Stored for Counting {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Stored::take(bytes).map(Self)
    }
}

#[cold]
fn known_of(event: &EventRef<'_>) -> Option<Known> {
    let decoded = event.decoded();
    let name = decoded.class().name.as_deref()?;
    if let Some(meaning) = meaning(name, event) {
        return Some(Known { meaning, shared: None });
    }
    let streams = &event.trace().class().data_stream_classes;
    let stream = streams.iter().find(|class| class.id == event.stream().class_id())?;
    let names = stream.event_record_classes.iter().map(|class| class.name.as_deref()).enumerate();
    let meaning = probe(name, |name| names.clone().any(|(_, other)| other == Some(name)))?;
    let address = Address::of(&meaning, event)?;
    let mut same = names.clone().filter(|(_, other)| *other == Some(name)).map(|(index, _)| index);
    let first = same.next().filter(|_| same.next().is_some());
    Some(Known { meaning, shared: first.map(|first| (first, address)) })
}
