//! Prints events as JSON, one object per line, with stable keys.
//!
//! | key | value |
//! |---|---|
//! | `ns` | stamp in nanoseconds since the clock's origin, which is the Unix epoch for most traces; absent without clock |
//! | `cycles` | the same in cycles of the clock |
//! | `trace` | the trace's name: host, and path from where the search began |
//! | `stream_class`, `stream` | data stream class id and data stream id |
//! | `event` | the event's name, `null` where it has none |
//! | `packet_context` | what is the same for the whole packet, usually `cpu_id` |
//! | `context` | with `list --context`: that of the event's thread |
//! | `common_context` | what all events of the stream have, such as `tid` |
//! | `specific_context` | what all events of the class have |
//! | `payload` | the event's own fields |
//!
//! A scope that the event does not have is absent. Values: numbers are JSON numbers, with all 64 bits;
//! infinities and NaN are the strings `"inf"`, `"-inf"`, `"nan"`; an enumeration is
//! `{"value": 1, "labels": ["running"]}`; text is a string, with U+FFFD for what is not UTF-8; a structure is
//! an object; an array is an array; a variant is an object with the chosen option as its only key. Integers
//! that only carry a clock or a packet's bookkeeping are left out.

use crate::append::number;
use crate::merge::event::EventRef;
use crate::print::context::{Field, Shown};
use crate::print::text_value::{PACKET_BOOKKEEPING, integer_class};
use std::io::Write;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::Scope;

/// Prints events as lines of JSON.
#[derive(Debug, Default)]
pub struct JsonPrinter {
    /// Whether something stands already in each of the compound values around the next one.
    started: Vec<bool>,
}

impl JsonPrinter {
    /// A printer; it keeps nothing from event to event.
    pub fn new() -> Self {
        JsonPrinter::default()
    }

    /// Appends an event as one line.
    pub fn event(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>) {
        self.event_in(out, event, None);
    }

    /// The same, with the context of its thread.
    pub(crate) fn event_in(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>, context: Option<Shown<'_>>) {
        out.push(b'{');
        if let Some(stamp) = event.stamp() {
            out.extend_from_slice(b"\"ns\":");
            number::signed(out, stamp.time.as_ns());
            out.extend_from_slice(b",\"cycles\":");
            number::unsigned(out, stamp.cycles.0);
            out.push(b',');
        }
        out.extend_from_slice(b"\"trace\":");
        text(out, event.trace().name().as_bytes());
        out.extend_from_slice(b",\"stream_class\":");
        number::unsigned(out, event.stream().class_id());
        out.extend_from_slice(b",\"stream\":");
        number::unsigned(out, event.stream().id());
        out.extend_from_slice(b",\"event\":");
        let decoded = event.decoded();
        match &decoded.class().name {
            Some(name) => text(out, name.as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
        if event.has_packet_context() {
            out.extend_from_slice(b",\"packet_context\":");
            let mut printer = self.object(out, PACKET_BOOKKEEPING);
            event.visit_packet_context(&mut printer);
            printer.out.push(b'}');
        }
        if let Some(context) = context {
            out.extend_from_slice(b",\"context\":");
            fields(out, context);
        }
        for (scope, key) in [
            (Scope::CommonContext, ",\"common_context\":"),
            (Scope::SpecificContext, ",\"specific_context\":"),
            (Scope::Payload, ",\"payload\":"),
        ] {
            if decoded.has_scope(scope) {
                out.extend_from_slice(key.as_bytes());
                let mut printer = self.object(out, &[]);
                decoded.visit(scope, &mut printer);
                printer.out.push(b'}');
            }
        }
        out.extend_from_slice(b"}\n");
    }

    /// Appends an event's payload alone, as an object.
    pub fn payload(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>) {
        let mut printer = self.object(out, &[]);
        event.decoded().visit(Scope::Payload, &mut printer);
        printer.out.push(b'}');
    }

    fn object<'p>(&'p mut self, out: &'p mut Vec<u8>, hidden: &'static [&'static str]) -> ValuePrinter<'p> {
        out.push(b'{');
        self.started.clear();
        self.started.push(false);
        ValuePrinter { out, started: &mut self.started, hidden }
    }
}

/// Appends the context of a thread as an object.
fn fields(out: &mut Vec<u8>, context: Shown<'_>) {
    out.push(b'{');
    for (index, (name, field)) in context.fields().enumerate() {
        out.extend_from_slice(if index > 0 { b",\"" } else { b"\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        match field {
            Field::Unknown => out.extend_from_slice(b"null"),
            Field::Number(value) => number::unsigned(out, *value),
            Field::Text(value) => text(out, value),
        }
    }
    out.push(b'}');
}

/// Prints what it is shown into a JSON value that has begun.
pub(crate) struct ValuePrinter<'p> {
    pub(crate) out: &'p mut Vec<u8>,
    /// Whether something stands already in each of the compound values around the next one.
    pub(crate) started: &'p mut Vec<bool>,
    pub(crate) hidden: &'static [&'static str],
}

impl ValuePrinter<'_> {
    fn lead(&mut self, name: Option<&str>) {
        if self.started.last_mut().is_some_and(|started| std::mem::replace(started, true)) {
            self.out.push(b',');
        }
        if let Some(name) = name {
            text(self.out, name.as_bytes());
            self.out.push(b':');
        }
    }
}

impl Visitor for ValuePrinter<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let top = self.started.len() == 1;
        let hidden = integer_class(&value).is_some_and(|class| {
            !class.roles.is_empty() || (top && name.is_some_and(|name| self.hidden.contains(&name)))
        });
        if hidden {
            return;
        }
        self.lead(name);
        print_value(self.out, value);
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if let Compound::Optional { present } = compound {
            // Its content prints the name itself.
            if !present {
                self.lead(name);
                self.out.extend_from_slice(b"null");
            }
            return;
        }
        self.lead(name);
        self.out.push(if matches!(compound, Compound::Array { .. }) { b'[' } else { b'{' });
        self.started.push(false);
    }

    fn end(&mut self, compound: Compound<'_>) {
        if matches!(compound, Compound::Optional { .. }) {
            return;
        }
        self.out.push(if matches!(compound, Compound::Array { .. }) { b']' } else { b'}' });
        self.started.pop();
    }
}

/// Appends a value that is no compound.
pub(crate) fn print_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unsigned(value, _) => number::unsigned(out, value),
        Value::Signed(value, _) => number::signed(out, value),
        Value::UnsignedEnumeration(value, class) => {
            out.extend_from_slice(b"{\"value\":");
            number::unsigned(out, value);
            names(out, "labels", class.labels(i128::from(value)));
        }
        Value::SignedEnumeration(value, class) => {
            out.extend_from_slice(b"{\"value\":");
            number::signed(out, value);
            names(out, "labels", class.labels(i128::from(value)));
        }
        Value::Float32(value) if value.is_finite() => real(out, value),
        Value::Float64(value) if value.is_finite() => real(out, value),
        Value::Float32(value) => special(out, f64::from(value)),
        Value::Float64(value) => special(out, value),
        Value::Float128(_) => match value.real().unwrap_or(f64::NAN) {
            value if value.is_finite() => real(out, value),
            value => special(out, value),
        },
        Value::Boolean(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Value::BitArray(bits, _) => number::unsigned(out, bits),
        Value::BitMap(bits, class) => {
            out.extend_from_slice(b"{\"value\":");
            number::unsigned(out, bits);
            names(out, "flags", class.active(bits));
        }
        Value::Text(bytes) => text(out, bytes),
        Value::WideText(wide) => text(out, wide.to_string().as_bytes()),
        Value::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            text(out, digits.as_bytes());
        }
    }
}

/// The shortest digits that give the same number when read; `Debug` keeps a point or an exponent in them.
fn real(out: &mut Vec<u8>, value: impl std::fmt::Debug) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{value:?}");
}

fn special(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(if value.is_nan() {
        b"\"nan\""
    } else if value > 0.0 {
        b"\"inf\""
    } else {
        b"\"-inf\""
    });
}

/// Ends an object with the names that its value has.
fn names<'a>(out: &mut Vec<u8>, key: &str, names: impl Iterator<Item = &'a str>) {
    // Writing to memory cannot fail.
    let _ = write!(out, ",\"{key}\":[");
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        text(out, name.as_bytes());
    }
    out.extend_from_slice(b"]}");
}

/// Appends a JSON string, with U+FFFD for what is not UTF-8.
pub fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    let valid = String::from_utf8_lossy(bytes);
    // Writing to memory cannot fail, and a string has no keys that could be no strings.
    if serde_json::to_writer(&mut *out, valid.as_ref()).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"\"\"");
    }
}
