//! Finds values inside an event's structures, variants and arrays, in one pass over each scope.

use std::ops::Range;
use tracewing_ctf::decode::{Compound, Event, Value as Decoded, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_rules::{Integer, Value};

/// The way to a value from a scope's structure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    pub scope: Scope,
    pub steps: Vec<Step>,
    pub measure: Measure,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A structure's member, or the chosen option of a variant.
    Name(String),
    Index(u64),
}

/// What is asked for at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    Value,
    /// Bytes of a text, elements of an array.
    Length,
    /// 1 if the variant's chosen option is this one, else 0.
    IsOption(&'static str),
    /// 1 if the optional field has a value, else 0. Optional fields may be directly inside one another: from
    /// this number of steps on.
    HasValue(usize),
}

/// A decoded value as a predicate compares it.
pub(crate) fn value(value: Decoded<'_>) -> Value<'_> {
    match value {
        Decoded::Unsigned(number, _) | Decoded::UnsignedEnumeration(number, _) => {
            Value::Integer(number.into())
        }
        Decoded::Signed(number, _) | Decoded::SignedEnumeration(number, _) => Value::Integer(number.into()),
        Decoded::BitArray(bits, _) => Value::Integer(bits.into()),
        Decoded::BitMap(bits, _) => Value::Integer(bits.into()),
        Decoded::Boolean(truth) => Value::Integer(u64::from(truth).into()),
        Decoded::Float32(number) => Value::Real(number.into()),
        Decoded::Float64(number) => Value::Real(number),
        Decoded::Float128(_) => Value::Real(value.real().unwrap_or(f64::NAN)),
        Decoded::Text(text) | Decoded::Blob(text) => Value::Text(text),
        Decoded::WideText(text) => Value::Text(text.bytes()),
    }
}

/// What was found in an event.
#[derive(Debug, Default)]
pub(crate) struct Values {
    /// For each path of the condition, the value found there; `None` if the event has none.
    found: Vec<Option<Held>>,
    /// Texts one after the other.
    text: Vec<u8>,
    /// By path: how many of its steps lead to where the visitor is.
    taken: Vec<usize>,
    /// By open compound: how many values it had so far.
    counts: Vec<u64>,
}

#[derive(Debug, Clone)]
enum Held {
    Integer(Integer),
    Real(f64),
    Text(Range<usize>),
}

impl Values {
    /// Reads what `paths` lead to in an event.
    pub(crate) fn read(&mut self, event: &Event<'_>, paths: &[Path]) {
        if paths.is_empty() {
            return;
        }
        self.found.clear();
        self.found.resize(paths.len(), None);
        self.text.clear();
        for scope in [Scope::PacketContext, Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
            if paths.iter().any(|path| path.scope == scope) {
                self.taken.clear();
                self.taken.resize(paths.len(), 0);
                self.counts.clear();
                self.counts.push(0);
                event.visit(scope, &mut Finder { scope, paths, values: self });
            }
        }
    }

    /// What was found at the end of a path.
    pub(crate) fn get(&self, path: usize) -> Option<Value<'_>> {
        Some(match self.found.get(path)?.as_ref()? {
            Held::Integer(number) => Value::Integer(*number),
            Held::Real(number) => Value::Real(*number),
            Held::Text(range) => Value::Text(self.text.get(range.clone())?),
        })
    }
}

struct Finder<'v> {
    scope: Scope,
    paths: &'v [Path],
    values: &'v mut Values,
}

impl Finder<'_> {
    /// Calls `reached` with the index and measure of each path whose next step leads here, and whether it was
    /// the last.
    fn step(&mut self, name: Option<&str>, mut reached: impl FnMut(&mut Values, usize, Measure, bool)) {
        let depth = self.values.counts.len().saturating_sub(1);
        let Some(index) = self.values.counts.last_mut() else { return };
        let here = *index;
        *index += 1;
        for (number, path) in self.paths.iter().enumerate() {
            if path.scope != self.scope || self.values.taken[number] != depth {
                continue;
            }
            let fits = match (path.steps.get(depth), name) {
                (Some(Step::Name(expected)), Some(name)) => expected == name,
                (Some(Step::Index(expected)), None) => *expected == here,
                _ => false,
            };
            if fits {
                reached(self.values, number, path.measure, depth + 1 == path.steps.len());
            }
        }
    }
}

impl Visitor for Finder<'_> {
    fn value(&mut self, name: Option<&str>, decoded: Decoded<'_>) {
        self.step(name, |values, number, measure, last| {
            if !last {
                return;
            }
            let wide;
            let decoded = match decoded {
                Decoded::WideText(text) => {
                    wide = text.to_string();
                    Decoded::Text(wide.as_bytes())
                }
                other => other,
            };
            values.found[number] = match (value(decoded), measure) {
                (Value::Integer(number), Measure::Value) => Some(Held::Integer(number)),
                (Value::Real(number), Measure::Value) => Some(Held::Real(number)),
                (Value::Text(text), Measure::Value) => {
                    let start = values.text.len();
                    values.text.extend_from_slice(text);
                    Some(Held::Text(start..values.text.len()))
                }
                (Value::Text(text), Measure::Length) => Some(Held::Integer((text.len() as u64).into())),
                _ => None,
            };
        });
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.step(name, |values, number, measure, last| {
            values.taken[number] += 1;
            if let (Compound::Optional { present }, Measure::HasValue(from)) = (compound, measure)
                && values.taken[number] >= from
            {
                values.found[number] = Some(Held::Integer(present.into()));
            }
            if !last {
                return;
            }
            let found = match (compound, measure) {
                (Compound::Array { length }, Measure::Length) => length.into(),
                (Compound::Variant { option }, Measure::IsOption(expected)) => (option == expected).into(),
                _ => return,
            };
            values.found[number] = Some(Held::Integer(found));
        });
        self.values.counts.push(0);
    }

    fn end(&mut self, _: Compound<'_>) {
        self.values.counts.pop();
        let depth = self.values.counts.len();
        for taken in &mut self.values.taken {
            *taken = (*taken).min(depth.saturating_sub(1));
        }
    }
}
