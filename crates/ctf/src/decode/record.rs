//! Event records whose fields need no walk: values, each one load from a known place of a known piece of the
//! record.

use std::sync::Arc;

use super::load::{Load, NEAR};
use super::search::null;
use super::{Compound, Value, Visitor};
use crate::model::{EnumerationClass, IntegerClass, StructureClass};

/// How many pieces an event record can have; one with more is walked.
pub(super) const MOST_PIECES: usize = 16;

/// Where the pieces of an event record begin, in bytes from the record's first. The first piece's is 0.
pub(super) type Pieces = [usize; MOST_PIECES];

/// The bytes of an event record whose fields need no walk; see [`Event::record`](super::Event::record).
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// From its first byte, with at least [`SLACK`](super::load::SLACK) bytes after its last.
    pub(super) bytes: &'a [u8],
    pub(super) pieces: &'a Pieces,
}

impl<'a> Record<'a> {
    /// The bytes from a piece's first one on.
    #[inline(always)]
    fn piece(&self, piece: u8) -> Option<&'a [u8]> {
        self.bytes.get(*self.pieces.get(usize::from(piece))?..)
    }

    /// The bytes from byte `from` of a piece up to the next piece.
    #[inline(always)]
    fn rest_of(&self, piece: u8, from: u32) -> Option<&'a [u8]> {
        let [begin, end] = self.pieces.get(usize::from(piece)..)?.first_chunk().copied()?;
        self.bytes.get(begin + from as usize..end)
    }
}

/// A field, or where a compound begins or ends.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: Option<Box<str>>,
    /// The piece in which it lies.
    pub(super) piece: u8,
    pub(super) load: Load,
    pub(super) form: Form,
}

/// What a field is.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// Little-endian and unsigned: what is most common is recognised by its form alone.
    Plain(IntegerClass),
    /// Little-endian and signed.
    PlainSigned(IntegerClass),
    Unsigned(IntegerClass),
    Signed(IntegerClass),
    UnsignedEnumeration(Arc<EnumerationClass>),
    SignedEnumeration(Arc<EnumerationClass>),
    Float32,
    Float64,
    /// Up to a null.
    Text {
        length: usize,
    },
    /// The rest of the piece but its last byte, which is null.
    String,
    /// The rest of the piece, up to a null.
    TextSequence,
    /// Numbers in whole bytes, as many as fit into the rest of the piece.
    Sequence(Box<Element>),
    Begin(FixedCompound),
    End(FixedCompound),
}

/// What a sequence consists of.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) class: IntegerClass,
    pub(super) load: Load,
    /// Bytes.
    pub(super) size: usize,
    /// Whether it is unsigned, little-endian, and of a power of two of bytes.
    pub(super) is_plain: bool,
}

/// A compound that is always the same.
#[derive(Debug, Clone)]
pub(super) enum FixedCompound {
    Structure(Arc<StructureClass>),
    Array(u64),
}

impl FixedCompound {
    fn compound(&self) -> Compound<'_> {
        match self {
            FixedCompound::Structure(class) => Compound::Structure(class),
            FixedCompound::Array(length) => Compound::Array { length: *length },
        }
    }
}

impl Element {
    /// How many adjacent elements `bytes` has.
    #[inline(always)]
    fn count(&self, bytes: &[u8]) -> usize {
        match self.is_plain {
            true => bytes.len() >> self.size.trailing_zeros(),
            false => bytes.len().checked_div(self.size).unwrap_or(0),
        }
    }

    /// The values of adjacent elements in `bytes`; `after` begins with them and is at least eight bytes
    /// longer.
    #[inline(always)]
    fn values<'r>(&'r self, bytes: &[u8], after: &'r [u8]) -> impl ExactSizeIterator<Item = Value<'r>> {
        (0..self.count(bytes)).map(move |index| {
            let bytes = after.get(index * self.size..).unwrap_or_default();
            match self.class.signed {
                false => Value::Unsigned(self.load.bits(bytes).unwrap_or(0), &self.class),
                true => Value::Signed(self.load.signed(bytes).unwrap_or(0), &self.class),
            }
        })
    }

    /// The same of plain elements.
    #[inline(always)]
    fn plain_values<'r>(&'r self, bytes: &[u8], after: &'r [u8]) -> impl Iterator<Item = Value<'r>> {
        let mut rest = after;
        (0..self.count(bytes)).map_while(move |_| {
            let bits = self.load.plain_bits(rest)?;
            rest = rest.get(self.size..)?;
            Some(Value::Unsigned(bits, &self.class))
        })
    }
}

/// Shows fields. `IN_PIECES` may be false where all of them lie in the first piece.
#[inline(always)]
pub(super) fn show<const IN_PIECES: bool, V: Visitor>(fields: &[Field], record: Record<'_>, visitor: &mut V) {
    for field in fields {
        // Never too short: the record is as long as its layout says.
        let Some(bytes) = (if IN_PIECES { record.piece(field.piece) } else { Some(record.bytes) }) else {
            break;
        };
        // What is most common takes no jump through a table.
        if let Form::Plain(class) = &field.form {
            let Some(bits) = field.load.plain_bits(bytes) else { break };
            visitor.value(field.name.as_deref(), Value::Unsigned(bits, class));
        } else if field.show(record, bytes, visitor).is_none() {
            break;
        }
    }
}

/// Shows fields of the first piece, whose numbers all lie in `near`, the record's first bytes.
#[inline(always)]
pub(super) fn show_near<V: Visitor>(
    fields: &[Field],
    record: Record<'_>,
    near: &[u8; NEAR],
    visitor: &mut V,
) {
    for field in fields {
        let name = field.name.as_deref();
        if let Form::Plain(class) = &field.form {
            visitor.value(name, Value::Unsigned(field.load.near_bits(near), class));
        } else if let Form::PlainSigned(class) = &field.form {
            visitor.value(name, Value::Signed(field.load.near_signed(near), class));
        } else if field.show(record, record.bytes, visitor).is_none() {
            break;
        }
    }
}

impl Field {
    pub(super) fn is_compound(&self) -> bool {
        matches!(self.form, Form::Begin(_) | Form::End(_) | Form::Sequence(_))
    }

    /// `bytes` are those of its piece. `None` if they are too few.
    #[inline(always)]
    fn show<V: Visitor>(&self, record: Record<'_>, bytes: &[u8], visitor: &mut V) -> Option<()> {
        let name = self.name.as_deref();
        match &self.form {
            Form::Begin(compound) => visitor.begin(name, compound.compound()),
            Form::End(compound) => visitor.end(compound.compound()),
            Form::Sequence(element) => {
                let (bytes, after) = self.sequence(record)?;
                let compound = Compound::Array { length: element.count(bytes) as u64 };
                visitor.begin(name, compound);
                match element.is_plain {
                    true => element.plain_values(bytes, after).for_each(|value| visitor.value(None, value)),
                    false => element.values(bytes, after).for_each(|value| visitor.value(None, value)),
                }
                visitor.end(compound);
            }
            _ => visitor.value(name, self.value(record, bytes)?),
        }
        Some(())
    }

    #[inline(always)]
    fn elements<'r>(
        &'r self,
        element: &'r Element,
        record: Record<'r>,
    ) -> Option<impl ExactSizeIterator<Item = Value<'r>>> {
        let (bytes, after) = self.sequence(record)?;
        Some(element.values(bytes, after))
    }

    /// The bytes of a sequence, and all from the first of them on.
    #[inline(always)]
    fn sequence<'r>(&self, record: Record<'r>) -> Option<(&'r [u8], &'r [u8])> {
        let after = record.piece(self.piece)?.get(self.load.byte as usize..)?;
        Some((record.rest_of(self.piece, self.load.byte)?, after))
    }

    /// The value, if it is no compound.
    #[inline(always)]
    pub(super) fn value_in<'r>(&'r self, record: Record<'r>) -> Option<Value<'r>> {
        self.value(record, record.piece(self.piece)?)
    }

    /// The same; `bytes` are those of its piece. `None` also if they are too few.
    #[inline(always)]
    fn value<'r>(&'r self, record: Record<'r>, bytes: &'r [u8]) -> Option<Value<'r>> {
        let load = &self.load;
        Some(match &self.form {
            Form::Plain(class) => Value::Unsigned(load.plain_bits(bytes)?, class),
            Form::Unsigned(class) => Value::Unsigned(load.bits(bytes)?, class),
            Form::PlainSigned(class) | Form::Signed(class) => Value::Signed(load.signed(bytes)?, class),
            Form::UnsignedEnumeration(class) => Value::UnsignedEnumeration(load.bits(bytes)?, class),
            Form::SignedEnumeration(class) => Value::SignedEnumeration(load.signed(bytes)?, class),
            Form::Float32 => Value::Float32(f32::from_bits(load.bits(bytes)? as u32)),
            Form::Float64 => Value::Float64(f64::from_bits(load.bits(bytes)?)),
            Form::Text { .. } | Form::String | Form::TextSequence => Value::Text(self.text(record)?),
            Form::Sequence(_) | Form::Begin(_) | Form::End(_) => return None,
        })
    }

    /// The bytes of a text.
    #[inline(always)]
    fn text<'r>(&self, record: Record<'r>) -> Option<&'r [u8]> {
        let byte = self.load.byte;
        match self.form {
            Form::Text { length } => {
                Some(before_null(record.piece(self.piece)?.get(byte as usize..)?.get(..length)?))
            }
            Form::String => Some(record.rest_of(self.piece, byte)?.split_last()?.1),
            Form::TextSequence => Some(before_null(record.rest_of(self.piece, byte)?)),
            _ => None,
        }
    }
}

fn before_null(bytes: &[u8]) -> &[u8] {
    null(bytes).and_then(|length| bytes.get(..length)).unwrap_or(bytes)
}

/// A value, or a sequence of integers, in event records whose fields need no walk; see
/// [`Event::record_fields`](super::Event::record_fields).
///
/// It reads from the result of [`Event::record`](super::Event::record) for an event record of the same class.
/// For another class it returns other values, or `None` if there are too few bytes.
#[derive(Debug, Clone)]
pub struct RecordField(pub(super) Field);

impl RecordField {
    /// The value; `None` of a sequence of integers.
    #[inline]
    pub fn value<'r>(&'r self, record: Record<'r>) -> Option<Value<'r>> {
        self.0.value_in(record)
    }

    /// The value of an integer or an enumeration; `None` of anything else, and where it is greater than an
    /// `i64`.
    #[inline]
    pub fn integer(&self, record: &Record<'_>) -> Option<i64> {
        match self.0.form {
            Form::Plain(_) | Form::Unsigned(_) | Form::UnsignedEnumeration(_) => {
                i64::try_from(self.bits(*record)?).ok()
            }
            Form::PlainSigned(_) | Form::Signed(_) | Form::SignedEnumeration(_) => self.signed(*record),
            _ => None,
        }
    }

    /// The value of an unsigned integer that is not an enumeration; `None` of anything else.
    #[inline]
    pub fn unsigned(&self, record: &Record<'_>) -> Option<u64> {
        matches!(self.0.form, Form::Plain(_) | Form::Unsigned(_)).then(|| self.bits(*record))?
    }

    /// The bytes of a text; `None` of anything else.
    #[inline]
    pub fn text<'r>(&self, record: &Record<'r>) -> Option<&'r [u8]> {
        self.0.text(*record)
    }

    /// The bits of a number.
    #[inline(always)]
    pub fn bits(&self, record: Record<'_>) -> Option<u64> {
        self.0.load.bits(record.piece(self.0.piece)?)
    }

    /// The bits of a number, as a signed one.
    #[inline(always)]
    pub fn signed(&self, record: Record<'_>) -> Option<i64> {
        self.0.load.signed(record.piece(self.0.piece)?)
    }

    /// The values of a sequence of integers; `None` of anything else.
    #[inline]
    pub fn elements<'r>(&'r self, record: Record<'r>) -> Option<impl ExactSizeIterator<Item = Value<'r>>> {
        match &self.0.form {
            Form::Sequence(element) => self.0.elements(element, record),
            _ => None,
        }
    }
}
