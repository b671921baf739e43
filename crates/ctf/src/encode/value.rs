//! Values to be written, as trees that own what they hold.

use super::scalar::Scalar;
use super::{Fields, ScopeWriter};
use crate::decode::{Compound, Event, Value, Visitor};
use crate::model::Scope;

/// Members of a structure, in order.
type Members = Vec<(String, FieldValue)>;

/// The value of a field.
///
/// Numbers need not be of their class's own sort: what matters is whether the class can say them.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A boolean.
    Boolean(bool),
    /// An unsigned integer, the value of an enumeration, or bits.
    Unsigned(u64),
    /// A signed integer, or the value of an enumeration.
    Signed(i64),
    /// A floating point number.
    Real(f64),
    /// A floating point number of 128 bits: its bits (IEEE 754 binary128).
    Real128(u128),
    /// A string, UTF-8 as a rule; a class of another encoding gets it in that encoding.
    Text(Vec<u8>),
    /// Bytes without a meaning of their own.
    Blob(Vec<u8>),
    /// A structure: its members in order. Those that the writer knows may be left out.
    Structure(Vec<(String, FieldValue)>),
    /// The elements of an array.
    Array(Vec<FieldValue>),
    /// An optional field, if it is there.
    Optional(Option<Box<FieldValue>>),
    /// A variant: the name of the option, and its value.
    Variant(String, Box<FieldValue>),
}

impl FieldValue {
    /// A structure of these members.
    pub fn structure<N: Into<String>, V: Into<FieldValue>>(
        members: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let members = members.into_iter();
        FieldValue::Structure(members.map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// An array of these elements.
    pub fn array<V: Into<FieldValue>>(elements: impl IntoIterator<Item = V>) -> Self {
        FieldValue::Array(elements.into_iter().map(Into::into).collect())
    }

    pub(super) fn write(&self, name: Option<&str>, to: &mut ScopeWriter<'_>) {
        match self {
            FieldValue::Structure(members) => {
                to.begin_structure(name);
                members.iter().for_each(|(name, value)| value.write(Some(name), to));
                to.end_compound();
            }
            FieldValue::Array(elements) => {
                to.begin_array(name, elements.len() as u64);
                elements.iter().for_each(|element| element.write(None, to));
                to.end_compound();
            }
            FieldValue::Optional(content) => {
                to.begin_optional(name, content.is_some());
                content.iter().for_each(|content| content.write(None, to));
                to.end_compound();
            }
            FieldValue::Variant(option, value) => {
                to.begin_variant(name, Some(option));
                value.write(None, to);
                to.end_compound();
            }
            FieldValue::Boolean(value) => to.scalar(name, Scalar::Boolean(*value)),
            FieldValue::Unsigned(value) => to.scalar(name, Scalar::Unsigned(*value)),
            FieldValue::Signed(value) => to.scalar(name, Scalar::Signed(*value)),
            FieldValue::Real(value) => to.scalar(name, Scalar::Real(*value)),
            FieldValue::Real128(bits) => to.scalar(name, Scalar::Real128(*bits)),
            FieldValue::Text(text) => to.scalar(name, Scalar::Text(text)),
            FieldValue::Blob(bytes) => to.scalar(name, Scalar::Blob(bytes)),
        }
    }
}

macro_rules! from {
    ($($of:ty => $variant:ident $as:ty),* $(,)?) => {$(
        impl From<$of> for FieldValue {
            fn from(value: $of) -> Self {
                FieldValue::$variant(<$as>::from(value))
            }
        }
    )*};
}

from! {
    bool => Boolean bool, u8 => Unsigned u64, u16 => Unsigned u64, u32 => Unsigned u64, u64 => Unsigned u64,
    i8 => Signed i64, i16 => Signed i64, i32 => Signed i64, i64 => Signed i64, f32 => Real f64, f64 => Real f64,
    &str => Text Vec<u8>, String => Text Vec<u8>,
}

/// The fields of an event record or of a packet's beginning, scope by scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    scopes: [Members; 6],
}

impl Record {
    /// A record without fields.
    pub fn new() -> Self {
        Record::default()
    }

    /// Adds a member to a scope's structure.
    #[must_use]
    pub fn with(mut self, scope: Scope, name: impl Into<String>, value: impl Into<FieldValue>) -> Self {
        self.push(scope, name, value);
        self
    }

    /// As [`Record::with`], in place.
    pub fn push(&mut self, scope: Scope, name: impl Into<String>, value: impl Into<FieldValue>) {
        self.scopes[scope as usize].push((name.into(), value.into()));
    }

    /// The fields of a decoded event record, but for its header.
    pub fn of(event: &Event<'_>) -> Self {
        let mut record = Record::new();
        for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
            let mut collector = Collector { open: vec![(None, Vec::new())] };
            event.visit(scope, &mut collector);
            record.scopes[scope as usize] = collector.members();
        }
        record
    }

    /// The members of a scope's structure, in order.
    pub fn scope(&self, scope: Scope) -> &[(String, FieldValue)] {
        &self.scopes[scope as usize]
    }
}

impl Fields for Record {
    fn show(&self, scope: Scope, to: &mut ScopeWriter<'_>) {
        self.scope(scope).iter().for_each(|(name, value)| value.write(Some(name), to));
    }
}

/// Builds trees of what it is shown.
struct Collector {
    /// The compounds around the next field, and what is in them so far.
    open: Vec<(Option<String>, Members)>,
}

impl Collector {
    fn add(&mut self, name: Option<&str>, value: FieldValue) {
        if let Some((_, members)) = self.open.last_mut() {
            members.push((name.unwrap_or_default().to_owned(), value));
        }
    }

    fn members(mut self) -> Members {
        self.open.pop().unwrap_or_default().1
    }
}

impl Visitor for Collector {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let value = match value {
            Value::Unsigned(value, _) => FieldValue::Unsigned(value),
            Value::UnsignedEnumeration(value, _) => FieldValue::Unsigned(value),
            Value::Signed(value, _) => FieldValue::Signed(value),
            Value::SignedEnumeration(value, _) => FieldValue::Signed(value),
            Value::BitArray(bits, _) => FieldValue::Unsigned(bits),
            Value::BitMap(bits, _) => FieldValue::Unsigned(bits),
            Value::Boolean(value) => FieldValue::Boolean(value),
            Value::Float32(value) => FieldValue::Real(f64::from(value)),
            Value::Float64(value) => FieldValue::Real(value),
            Value::Float128(bits) => FieldValue::Real128(bits),
            Value::Text(text) => FieldValue::Text(text.to_vec()),
            Value::WideText(text) => FieldValue::Text(text.to_string().into_bytes()),
            Value::Blob(bytes) => FieldValue::Blob(bytes.to_vec()),
        };
        self.add(name, value);
    }

    fn begin(&mut self, name: Option<&str>, _: Compound<'_>) {
        self.open.push((name.map(str::to_owned), Vec::new()));
    }

    fn end(&mut self, compound: Compound<'_>) {
        let Some((name, members)) = self.open.pop() else { return };
        let mut values = members.into_iter();
        let value = match compound {
            Compound::Structure(_) => FieldValue::Structure(values.collect()),
            Compound::Array { .. } => FieldValue::Array(values.map(|(_, value)| value).collect()),
            Compound::Optional { .. } => {
                FieldValue::Optional(values.next().map(|(_, value)| Box::new(value)))
            }
            Compound::Variant { option } => {
                let value = values.next().map_or(FieldValue::Structure(Vec::new()), |(_, value)| value);
                FieldValue::Variant(option.to_owned(), Box::new(value))
            }
        };
        self.add(name.as_deref(), value);
    }
}
