//! Prints an event's payload as its author meant it: by the print form and the units that stand in the
//! metadata.
//!
//! Both are in the `env` block, as `event_<id>_print` and `event_<id>_unit_<field>`. An event without a print
//! form, or with one that names fields which are not there, is printed as structure, with its units.

use crate::append::quote::shown;
use crate::merge::event::EventRef;
use crate::print::print_form::{Piece, PrintForm, Scalar, Spec, format};
use crate::print::text_value::{self, Frames, ValuePrinter, integer_class};
use std::collections::HashMap;
use tracewing_ctf::decode::{Compound, Event, Value, Visitor};
use tracewing_ctf::model::{EnvValue, Scope, TraceClass};
use tracewing_vocabulary::environment::{Note, note_key};

/// `--pretty`'s knowledge of event classes; filled as they are seen.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// By trace, data stream class id and event class id.
    classes: HashMap<(usize, u64, u64), ClassForm>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct ClassForm {
    form: Option<PrintForm>,
    units: Units,
}

/// Units by field name.
#[derive(Debug, Default)]
struct Units(HashMap<String, Unit>);

/// What a number counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unit {
    Bool,
    Char,
    Text(String),
}

impl Forms {
    /// Appends the payload; false where there is nothing to print.
    pub(crate) fn payload(
        &mut self,
        out: &mut Vec<u8>,
        event: &EventRef<'_>,
        frames: &mut Frames,
        names: bool,
    ) -> bool {
        let decoded = event.decoded();
        let key = (event.trace_index(), event.stream().class_id(), decoded.class().id);
        let class = self.classes.entry(key).or_insert_with(|| ClassForm::new(event.trace().class(), key.2));
        if let Some(form) = &class.form {
            let start = out.len();
            if print_form(out, form, &class.units, &decoded, frames, &mut self.scratch).is_some() {
                return true;
            }
            out.truncate(start);
        }
        let mut printer = UnitPrinter {
            inner: ValuePrinter::new(out, frames, names, &[]),
            units: &class.units,
            current: None,
        };
        decoded.visit(Scope::Payload, &mut printer);
        printer.inner.finish()
    }
}

impl ClassForm {
    fn new(trace: &TraceClass, id: u64) -> Self {
        let form = match trace.env(&note_key(id, Note::Print)) {
            Some(EnvValue::String(text)) => PrintForm::parse(text),
            _ => None,
        };
        ClassForm { form, units: Units::new(trace, id) }
    }
}

impl Units {
    /// The units of the event class `id`.
    fn new(trace: &TraceClass, id: u64) -> Self {
        let prefix = note_key(id, Note::Unit(""));
        let units = trace.env.iter().filter_map(|(key, value)| match (key.strip_prefix(&prefix), value) {
            (Some(field), EnvValue::String(unit)) => Some((field.to_owned(), Unit::new(unit))),
            _ => None,
        });
        Units(units.collect())
    }
}

impl Unit {
    fn new(text: &str) -> Self {
        match text {
            "bool" => Unit::Bool,
            "char" => Unit::Char,
            other => Unit::Text(other.to_owned()),
        }
    }
}

/// Appends the event by its print form; `None` where that names what the event does not have.
fn print_form(
    out: &mut Vec<u8>,
    form: &PrintForm,
    units: &Units,
    event: &Event<'_>,
    frames: &mut Frames,
    scratch: &mut Vec<u8>,
) -> Option<()> {
    for (index, piece) in form.0.iter().enumerate() {
        let (name, spec) = match piece {
            Piece::Literal(text) => {
                out.extend_from_slice(shown(text).as_bytes());
                continue;
            }
            Piece::Field(name, spec) => (name, spec),
        };
        let unit = units.0.get(name);
        let scopes = [Scope::Payload, Scope::SpecificContext, Scope::CommonContext];
        match scopes
            .into_iter()
            .filter(|scope| event.has_scope(*scope))
            .find_map(|scope| event.field(scope, name))
        {
            Some(value) => scalar(out, spec, value, unit),
            None => compound(out, (name, spec), event, frames, scratch)?,
        }
        if let Some(Unit::Text(unit)) = unit {
            // An author may have written the unit already.
            let written = matches!(form.0.get(index + 1), Some(Piece::Literal(next))
                if next.trim_start().starts_with(unit.as_str()));
            if !written {
                out.push(b' ');
                out.extend_from_slice(shown(unit).as_bytes());
            }
        }
    }
    Some(())
}

/// Appends a field of the payload that contains others, as `list` prints it; `None` if there is none of this
/// name.
fn compound(
    out: &mut Vec<u8>,
    (name, spec): (&str, &Spec),
    event: &Event<'_>,
    frames: &mut Frames,
    scratch: &mut Vec<u8>,
) -> Option<()> {
    scratch.clear();
    let mut finder = Finder {
        inner: ValuePrinter::new(scratch, frames, false, &[]),
        name,
        found: false,
        option: None,
        skipped: 0,
    };
    event.visit(Scope::Payload, &mut finder);
    if !finder.found {
        return None;
    }
    finder.inner.finish();
    let option = finder.option;
    // Around it stand `{ ` and ` }` of the payload.
    let mut inner = scratch.get(2..scratch.len().saturating_sub(2)).unwrap_or_default();
    if let Some(option) = &option {
        // So they do around a variant's value. An option without a value is its name.
        inner = inner.get(2..inner.len().saturating_sub(2)).unwrap_or_default();
        if matches!(inner, b"{ }" | b"") {
            inner = option.as_bytes();
        }
    }
    format(out, spec, Scalar::Text(&String::from_utf8_lossy(inner)));
    Some(())
}

fn scalar(out: &mut Vec<u8>, spec: &Spec, value: Value<'_>, unit: Option<&Unit>) {
    let number = match value {
        Value::Unsigned(value, _) | Value::UnsignedEnumeration(value, _) => i128::from(value),
        Value::Signed(value, _) | Value::SignedEnumeration(value, _) => i128::from(value),
        Value::Float32(value) => return format(out, spec, Scalar::Real(f64::from(value))),
        Value::Float64(value) => return format(out, spec, Scalar::Real(value)),
        Value::Text(text) => return format(out, spec, Scalar::Text(&String::from_utf8_lossy(text))),
        Value::WideText(text) => return format(out, spec, Scalar::Text(&text.to_string())),
        Value::Float128(_) => return format(out, spec, Scalar::Real(value.real().unwrap_or(f64::NAN))),
        Value::Boolean(truth) => i128::from(truth),
        Value::BitArray(bits, _) => i128::from(bits),
        Value::BitMap(bits, _) => i128::from(bits),
        Value::Blob(_) => return text_value::print_value(out, value),
    };
    let bits = integer_class(&value).map_or(64, |class| class.size);
    if spec.is_numeric() {
        return format(out, spec, Scalar::Integer(number, bits));
    }
    let label = match value {
        Value::UnsignedEnumeration(_, class) | Value::SignedEnumeration(_, class) => {
            class.labels(number).next()
        }
        _ => None,
    };
    match (label, unit) {
        (Some(label), _) => format(out, spec, Scalar::Text(label)),
        (None, Some(Unit::Bool)) => {
            format(out, spec, Scalar::Text(if number == 0 { "false" } else { "true" }))
        }
        (None, Some(Unit::Char)) => match character(number) {
            Some(char) => format(out, spec, Scalar::Text(char.encode_utf8(&mut [0; 4]))),
            None => format(out, spec, Scalar::Integer(number, bits)),
        },
        _ => format(out, spec, Scalar::Integer(number, bits)),
    }
}

fn character(number: i128) -> Option<char> {
    u32::try_from(number).ok().and_then(char::from_u32)
}

/// Prints values with their units.
struct UnitPrinter<'p> {
    inner: ValuePrinter<'p>,
    units: &'p Units,
    /// The unit of the array or structure around the next value.
    current: Option<&'p Unit>,
}

impl Visitor for UnitPrinter<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let top = self.inner.depth() == 1;
        let unit = if top { name.and_then(|name| self.units.0.get(name)) } else { self.current };
        let number = match value {
            Value::Unsigned(number, _) => i128::from(number),
            Value::Signed(number, _) => i128::from(number),
            _ => -1,
        };
        match unit {
            Some(Unit::Bool) if matches!(number, 0 | 1) => {
                self.inner.lead(name);
                self.inner.out().extend_from_slice(if number == 0 { b"false" } else { b"true" });
            }
            Some(Unit::Char) if character(number).is_some() => {
                self.inner.lead(name);
                let quoted = character(number).map(|char| format!("{char:?}")).unwrap_or_default();
                self.inner.out().extend_from_slice(quoted.as_bytes());
            }
            _ => {
                let before = self.inner.out().len();
                self.inner.value(name, value);
                if let Some(Unit::Text(unit)) = unit.filter(|_| top && self.inner.out().len() > before) {
                    self.inner.out().push(b' ');
                    self.inner.out().extend_from_slice(unit.as_bytes());
                }
            }
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if self.inner.depth() == 1 {
            self.current = name.and_then(|name| self.units.0.get(name));
        }
        self.inner.begin(name, compound);
    }

    fn end(&mut self, compound: Compound<'_>) {
        self.inner.end(compound);
        if self.inner.depth() == 1
            && let Some(Unit::Text(unit)) = self.current.take()
        {
            self.inner.out().push(b' ');
            self.inner.out().extend_from_slice(unit.as_bytes());
        }
    }
}

/// Prints one member of the payload, and what is in it.
struct Finder<'p> {
    inner: ValuePrinter<'p>,
    name: &'p str,
    found: bool,
    /// The selected option, where the member is a variant.
    option: Option<String>,
    /// Compounds around the next value that are passed over.
    skipped: usize,
}

impl Visitor for Finder<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if self.inner.depth() > 1 {
            self.inner.value(name, value);
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if self.inner.depth() > 1 || (self.skipped == 0 && name == Some(self.name)) {
            if let Compound::Variant { option } = compound
                && self.inner.depth() == 1
            {
                self.option = Some(option.to_owned());
            }
            self.found = true;
            self.inner.begin(name, compound);
        } else {
            self.skipped += 1;
        }
    }

    fn end(&mut self, compound: Compound<'_>) {
        if self.inner.depth() > 1 {
            self.inner.end(compound);
        } else {
            self.skipped = self.skipped.saturating_sub(1);
        }
    }
}
