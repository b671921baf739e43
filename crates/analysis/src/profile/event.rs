//! What an event of the provider `profile` says.

use tracewing_ctf::decode::{Compound, MemberHandle, Value, Visitor};
use tracewing_ctf::model::{EnvValue, Scope};
use tracewing_trace::EventRef;

use super::spaces::Mapping;

/// Frames of a chain that are kept.
const FRAMES: usize = 1024;

/// An event that explains samples.
#[derive(Debug, PartialEq)]
pub(super) enum ProfileEvent {
    Mapping(Mapping),
    /// The process has a new program.
    Exec,
    /// The process has a new child.
    Fork {
        child: i32,
    },
    KernelSymbol {
        begin: u64,
        end: u64,
        name: String,
    },
    Counters(Vec<(String, u64)>),
}

/// A sample. Addresses begin with the innermost.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) ip: u64,
    pub(super) period: u64,
    pub(super) in_program: bool,
    pub(super) kernel: Vec<u64>,
    pub(super) user: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    Sample,
    Mapping,
    Thread,
    Fork,
    KernelSymbol,
    Counters,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// By stream and class: what is known of it.
    classes: Vec<Vec<Class>>,
}

/// What is known of an event class.
#[derive(Debug, Clone, Copy, Default)]
enum Class {
    /// It has not been met.
    #[default]
    Unknown,
    /// It is about something else.
    Other,
    /// What it means, and where the context has the process.
    Known(Meaning, MemberHandle),
}

impl Reader {
    /// The sample that an event is.
    pub(super) fn sample(&mut self, event: &EventRef<'_>) -> Option<Sample> {
        let (Meaning::Sample, _) = self.class(event)? else { return None };
        let mut fields = Fields::of(event);
        Some(Sample {
            ip: fields.number("ip")?,
            period: fields.number("period")?,
            in_program: fields.number("mode")? == 0,
            kernel: fields.list("kernel"),
            user: fields.list("user"),
        })
    }

    /// What else an event says, and of which process.
    pub(super) fn explanation(&mut self, event: &EventRef<'_>) -> Option<(i32, ProfileEvent)> {
        let (meaning, process) = self.class(event)?;
        if meaning == Meaning::Sample {
            return None;
        }
        let process = number(event.decoded().member(process)?)? as i32;
        let mut fields = Fields::of(event);
        let said = match meaning {
            Meaning::Sample => return None,
            Meaning::Mapping => ProfileEvent::Mapping(Mapping {
                begin: fields.number("begin")?,
                end: fields.number("end")?,
                offset: fields.number("offset")?,
                path: fields.text("path")?,
                build_id: fields.text("build_id").unwrap_or_default(),
            }),
            Meaning::Thread if fields.number("exec")? != 0 => ProfileEvent::Exec,
            Meaning::Thread => return None,
            Meaning::Fork => match fields.number("child_pid")? as i32 {
                // A thread, which shares its creator's memory.
                child if child == process => return None,
                child => ProfileEvent::Fork { child },
            },
            Meaning::KernelSymbol => ProfileEvent::KernelSymbol {
                begin: fields.number("begin")?,
                end: fields.number("end")?,
                name: fields.text("name")?,
            },
            Meaning::Counters => ProfileEvent::Counters(fields.numbers),
        };
        Some((process, said))
    }

    /// Asked of every event of a recording.
    #[inline]
    fn class(&mut self, event: &EventRef<'_>) -> Option<(Meaning, MemberHandle)> {
        let (stream, index) = (event.stream_index(), event.decoded().class_index());
        let known = self.classes.get(stream).and_then(|classes| classes.get(index)).copied();
        match known.unwrap_or_default() {
            Class::Unknown => self.learn(event),
            Class::Other => None,
            Class::Known(meaning, process) => Some((meaning, process)),
        }
    }

    #[cold]
    fn learn(&mut self, event: &EventRef<'_>) -> Option<(Meaning, MemberHandle)> {
        let (stream, index) = (event.stream_index(), event.decoded().class_index());
        if self.classes.len() <= stream {
            self.classes.resize_with(stream + 1, Vec::new);
        }
        let known = &mut self.classes[stream];
        if known.len() <= index {
            known.resize_with(index + 1, Class::default);
        }
        let found = class_of(event);
        known[index] = found.map_or(Class::Other, |(meaning, process)| Class::Known(meaning, process));
        found
    }
}

fn class_of(event: &EventRef<'_>) -> Option<(Meaning, MemberHandle)> {
    let decoded = event.decoded();
    let meaning = match decoded.class().name.as_deref()? {
        "profile:sample" => Meaning::Sample,
        "profile:mapping" => Meaning::Mapping,
        "profile:thread" => Meaning::Thread,
        "profile:fork" => Meaning::Fork,
        "profile:kernel_symbol" => Meaning::KernelSymbol,
        "profile:counters" => Meaning::Counters,
        _ => return None,
    };
    let streams = &event.trace().class().data_stream_classes;
    let stream = streams.iter().position(|class| class.id == event.stream().class_id())?;
    let process =
        event.trace().decoder().member(stream, decoded.class_index(), Scope::CommonContext, "pid")?;
    Some((meaning, process))
}

/// What the trace says of its samples: what triggers them, and how many a second were wanted.
#[cold]
pub(super) fn unit(event: &EventRef<'_>) -> (String, u64) {
    let env = |name| event.trace().class().env(name);
    let trigger = match env("profile_event") {
        Some(EnvValue::String(trigger)) => trigger.clone(),
        _ => String::new(),
    };
    let hertz = match env("profile_hertz") {
        Some(EnvValue::Integer(hertz)) => u64::try_from(*hertz).unwrap_or(0),
        _ => 0,
    };
    (trigger, hertz)
}

/// The CPU that an event's counters are of, if they are of one.
pub(super) fn counts_for_cpu(event: &EventRef<'_>) -> Option<u32> {
    match event.trace().class().env("profile_counters") {
        Some(EnvValue::String(of)) if of == "cpu" => event.cpu()?.try_into().ok(),
        _ => None,
    }
}

fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => Some(number),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number.cast_unsigned()),
        _ => None,
    }
}

/// The fields of a payload.
#[derive(Default)]
struct Fields {
    numbers: Vec<(String, u64)>,
    texts: Vec<(String, String)>,
    lists: Vec<(String, Vec<u64>)>,
    in_list: bool,
}

impl Fields {
    fn of(event: &EventRef<'_>) -> Self {
        let mut fields = Self::default();
        event.decoded().visit(Scope::Payload, &mut fields);
        fields
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.numbers.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let text = self.texts.iter_mut().find(|(known, _)| known == name);
        text.map(|(_, text)| std::mem::take(text))
    }

    fn list(&mut self, name: &str) -> Vec<u64> {
        let list = self.lists.iter_mut().find(|(known, _)| known == name);
        list.map(|(_, list)| std::mem::take(list)).unwrap_or_default()
    }
}

impl Visitor for Fields {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        match (name, value) {
            (Some(name), Value::Text(text)) => {
                self.texts.push((name.to_owned(), String::from_utf8_lossy(text).into_owned()));
            }
            (Some(name), value) => self.numbers.extend(number(value).map(|number| (name.to_owned(), number))),
            (None, value) => {
                if let (true, Some((_, list)), Some(number)) =
                    (self.in_list, self.lists.last_mut(), number(value))
                    && list.len() < FRAMES
                {
                    list.push(number);
                }
            }
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.in_list = matches!(compound, Compound::Array { .. });
        if let (true, Some(name)) = (self.in_list, name) {
            self.lists.push((name.to_owned(), Vec::new()));
        }
    }

    fn end(&mut self, _: Compound<'_>) {
        self.in_list = false;
    }
}
