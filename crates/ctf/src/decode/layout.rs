//! Event record classes of fixed layout: every field has a known size, so each is one load from a known place.
//!
//! What fits is found when a class is compiled: integers, enumerations and floating point numbers that lie within eight bytes,
//! text arrays, structures, and short arrays of known length. Anything else is left to [`super::walk`], which gives the
//! same values.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use super::compile::EventPrograms;
use super::header::Header;
use super::program::{Kind, Length, Node, Program};
use super::{Compound, Value, Visitor};
use crate::model::{ByteOrder, EnumerationClass, IntegerClass, StructureClass};

/// A load takes eight bytes whatever the field's size, so that many must follow the last one's first.
pub(super) const SLACK: usize = 8;

/// Larger event records are walked.
const MOST_BITS: u64 = 1 << 20;
/// So are those with more fields, elements included.
const MOST_FIELDS: usize = 512;

/// Where a number lies in an event record, and how it is cut out of the eight bytes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    byte: u32,
    shift: u8,
    big: bool,
    mask: u64,
}

impl Load {
    /// A number of no bits.
    pub(super) const NOTHING: Load = Load { byte: 0, shift: 0, big: false, mask: 0 };

    /// `None` where the number does not lie within eight bytes from its first.
    pub(super) fn new(at: u64, size: u32, order: ByteOrder) -> Option<Self> {
        let (byte, skip) = (u32::try_from(at / 8).ok()?, (at % 8) as u32);
        let rest = 64_u32.checked_sub(skip + size)?;
        let big = order == ByteOrder::Big;
        let shift = if big { rest } else { skip } as u8;
        Some(Load { byte, shift, big, mask: u64::MAX >> (64 - size) })
    }

    /// The number's bits; `None` if `record` is too short.
    #[inline(always)]
    pub(super) fn bits(&self, record: &[u8]) -> Option<u64> {
        if self.big { self.swapped_bits(record) } else { self.plain_bits(record) }
    }

    /// As [`Load::bits`] of a little-endian number.
    #[inline(always)]
    fn plain_bits(&self, record: &[u8]) -> Option<u64> {
        Some((u64::from_le_bytes(self.raw(record)?) >> self.shift) & self.mask)
    }

    #[inline(always)]
    fn swapped_bits(&self, record: &[u8]) -> Option<u64> {
        Some((u64::from_be_bytes(self.raw(record)?) >> self.shift) & self.mask)
    }

    #[inline(always)]
    fn raw(&self, record: &[u8]) -> Option<[u8; 8]> {
        let from = self.byte as usize;
        record.get(from..from + 8)?.first_chunk().copied()
    }

    /// As [`Load::bits`], with the sign extended.
    #[inline(always)]
    fn signed(&self, record: &[u8]) -> Option<i64> {
        let sign = self.mask ^ (self.mask >> 1);
        Some((self.bits(record)? ^ sign).wrapping_sub(sign) as i64)
    }
}

/// Where everything lies in the event records of a class, from the aligned start of their header.
#[derive(Debug)]
pub(super) struct Layout {
    /// Where common context, specific context and payload begin, in bits.
    pub(super) starts: [u64; 3],
    /// Size in bits.
    pub(super) bits: u64,
    /// Bytes that must be there.
    pub(super) bytes: usize,
    /// In order, with the beginnings and ends of compounds.
    fields: Vec<Field>,
    /// Those of common context, specific context and payload.
    scopes: [Range<usize>; 3],
}

/// How to step over the event records of one id, with their headers.
#[derive(Debug, Clone)]
pub(super) struct Stride {
    /// Index of the class.
    pub(super) event: u32,
    /// Size in bits from the aligned start of the header; no packet has as many as there are where it is not known.
    pub(super) bits: u32,
    /// The class's.
    pub(super) layout: Option<Arc<Layout>>,
}

impl Stride {
    /// How to step over event records of the class with this index.
    pub(super) fn new(event: u32, events: &[EventPrograms]) -> Self {
        let layout = events.get(event as usize).and_then(|programs| programs.layout.as_ref());
        let bits = layout.and_then(|layout| u32::try_from(layout.bits).ok());
        Stride { event, bits: bits.unwrap_or(u32::MAX), layout: layout.cloned() }
    }
}

/// A field of fixed layout, or where a compound begins or ends.
#[derive(Debug, Clone)]
struct Field {
    name: Option<Box<str>>,
    load: Load,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Unsigned(IntegerClass),
    Signed(IntegerClass),
    UnsignedEnumeration(Arc<EnumerationClass>),
    SignedEnumeration(Arc<EnumerationClass>),
    Float32,
    Float64,
    Text { length: usize },
    Begin(FixedCompound),
    End(FixedCompound),
}

#[derive(Debug, Clone)]
enum FixedCompound {
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

impl Layout {
    /// The layout behind a header, if it is always the same, and nothing in it has to be looked at to step over it.
    pub(super) fn new(header: &Header, scopes: [Option<&Program>; 3]) -> Option<Self> {
        let mut drafting = Drafting { at: header.bits, fields: Vec::new() };
        let (mut starts, mut ranges) = ([0; 3], [const { 0..0 }; 3]);
        for ((start, range), program) in starts.iter_mut().zip(&mut ranges).zip(scopes) {
            let first = drafting.fields.len();
            if let Some(program) = program {
                let root = program.nodes.first()?;
                // What is aligned to more than the header lies elsewhere from record to record.
                if root.align > header.align() || root.skip == u64::MAX {
                    return None;
                }
                drafting.at = drafting.at.checked_next_multiple_of(u64::from(root.align))?;
                *start = drafting.at;
                let Kind::Structure { first, count, .. } = root.kind else { return None };
                for node in program.nodes.get(first as usize..(first + count) as usize)? {
                    drafting.node(program, node, node.name.as_deref())?;
                }
            } else {
                *start = drafting.at;
            }
            *range = first..drafting.fields.len();
        }
        let bits = drafting.at;
        let bytes = usize::try_from(bits.div_ceil(8)).ok()? + SLACK;
        Some(Layout { starts, bits, bytes, fields: drafting.fields, scopes: ranges })
    }

    /// The fields that are no compounds.
    pub(super) fn values(&self) -> Vec<FixedField> {
        let values = self.fields.iter().filter(|field| !matches!(field.form, Form::Begin(_) | Form::End(_)));
        values.cloned().map(FixedField).collect()
    }

    /// Shows the fields of all scopes.
    #[inline]
    pub(super) fn show_all<V: Visitor>(&self, record: &[u8], visitor: &mut V) {
        show(&self.fields, record, visitor);
    }

    /// Shows the fields of a scope: 0 to 2 for common context, specific context and payload.
    #[inline]
    pub(super) fn show<V: Visitor>(&self, scope: usize, record: &[u8], visitor: &mut V) {
        show(&self.fields[self.scopes[scope].clone()], record, visitor);
    }
}

/// Where a value lies in all event records of a class whose layout is fixed; see [`Event::fixed_fields`](super::Event::fixed_fields).
///
/// It reads the bytes that [`Event::fixed_bytes`](super::Event::fixed_bytes) gives of such an event record. Other bytes give
/// other values, or `None` where they are too few.
#[derive(Debug, Clone)]
pub struct FixedField(Field);

impl FixedField {
    /// The value.
    #[inline]
    pub fn value<'r>(&'r self, record: &'r [u8]) -> Option<Value<'r>> {
        self.0.value(record)
    }

    /// The bits of a number.
    #[inline(always)]
    pub fn bits(&self, record: &[u8]) -> Option<u64> {
        self.0.load.bits(record)
    }

    /// The bits of a number, as a signed one.
    #[inline(always)]
    pub fn signed(&self, record: &[u8]) -> Option<i64> {
        self.0.load.signed(record)
    }
}

#[inline(always)]
fn show<V: Visitor>(fields: &[Field], record: &[u8], visitor: &mut V) {
    for field in fields {
        // What is most common takes no jump through a table.
        if let (Form::Unsigned(class), false) = (&field.form, field.load.big) {
            let Some(bits) = field.load.plain_bits(record) else { break };
            visitor.value(field.name.as_deref(), Value::Unsigned(bits, class));
        } else if field.show(record, visitor).is_none() {
            // Never: the record is as long as its layout says.
            break;
        }
    }
}

impl Field {
    /// `None` if `record` is too short.
    #[inline(always)]
    fn show<V: Visitor>(&self, record: &[u8], visitor: &mut V) -> Option<()> {
        let name = self.name.as_deref();
        match &self.form {
            Form::Begin(compound) => visitor.begin(name, compound.compound()),
            Form::End(compound) => visitor.end(compound.compound()),
            _ => visitor.value(name, self.value(record)?),
        }
        Some(())
    }

    /// The value, if it is no compound and `record` is long enough.
    #[inline(always)]
    fn value<'r>(&'r self, record: &'r [u8]) -> Option<Value<'r>> {
        let load = &self.load;
        Some(match &self.form {
            Form::Unsigned(class) => Value::Unsigned(load.bits(record)?, class),
            Form::Signed(class) => Value::Signed(load.signed(record)?, class),
            Form::UnsignedEnumeration(class) => Value::UnsignedEnumeration(load.bits(record)?, class),
            Form::SignedEnumeration(class) => Value::SignedEnumeration(load.signed(record)?, class),
            Form::Float32 => Value::Float32(f32::from_bits(load.bits(record)? as u32)),
            Form::Float64 => Value::Float64(f64::from_bits(load.bits(record)?)),
            Form::Text { length } => {
                let bytes = record.get(load.byte as usize..)?.get(..*length)?;
                Value::Text(CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes))
            }
            Form::Begin(_) | Form::End(_) => return None,
        })
    }
}

/// A layout under way.
struct Drafting {
    at: u64,
    fields: Vec<Field>,
}

impl Drafting {
    /// Adds a field and all in it; `None` if it does not fit a fixed layout.
    fn node(&mut self, program: &Program, node: &Node, name: Option<&str>) -> Option<()> {
        self.at = self.at.checked_next_multiple_of(u64::from(node.align))?;
        match &node.kind {
            Kind::Integer(integer, class) if class.bit_order.is_none() => {
                let form = if integer.signed { Form::Signed } else { Form::Unsigned };
                self.number(name, form(class.clone()), integer.size, integer.order)
            }
            Kind::Enumeration(integer, class) if class.integer.bit_order.is_none() => {
                let form = if integer.signed { Form::SignedEnumeration } else { Form::UnsignedEnumeration };
                self.number(name, form(class.clone()), integer.size, integer.order)
            }
            Kind::Float { size: 32, order, reversed: false } => self.number(name, Form::Float32, 32, *order),
            Kind::Float { size: 64, order, reversed: false } => self.number(name, Form::Float64, 64, *order),
            Kind::Text { length: Length::Fixed(length) } if self.at.is_multiple_of(8) => {
                let length = usize::try_from(*length).ok()?;
                let load = Load { byte: u32::try_from(self.at / 8).ok()?, ..Load::NOTHING };
                self.push(name, load, Form::Text { length })?;
                self.advance(u64::try_from(length).ok()?.checked_mul(8)?)
            }
            Kind::Structure { first, count, class } => {
                let compound = FixedCompound::Structure(class.clone());
                self.push(name, Load::NOTHING, Form::Begin(compound.clone()))?;
                for node in program.nodes.get(*first as usize..(*first + *count) as usize)? {
                    self.node(program, node, node.name.as_deref())?;
                }
                self.push(name, Load::NOTHING, Form::End(compound))
            }
            Kind::Array { length: Length::Fixed(length), element } => {
                let compound = FixedCompound::Array(*length);
                self.push(name, Load::NOTHING, Form::Begin(compound.clone()))?;
                for _ in 0..*length {
                    // An element without a field would let this go on for ever.
                    let before = self.fields.len();
                    self.node(program, program.nodes.get(*element as usize)?, None)?;
                    (self.fields.len() > before).then_some(())?;
                }
                self.push(name, Load::NOTHING, Form::End(compound))
            }
            _ => None,
        }
    }

    fn number(&mut self, name: Option<&str>, form: Form, size: u32, order: ByteOrder) -> Option<()> {
        self.push(name, Load::new(self.at, size, order)?, form)?;
        self.advance(size.into())
    }

    fn push(&mut self, name: Option<&str>, load: Load, form: Form) -> Option<()> {
        self.fields.push(Field { name: name.map(Into::into), load, form });
        (self.fields.len() <= MOST_FIELDS).then_some(())
    }

    fn advance(&mut self, bits: u64) -> Option<()> {
        self.at = self.at.checked_add(bits)?;
        (self.at <= MOST_BITS).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::bits;

    #[test]
    fn loads_give_what_bits_do() {
        let data: Vec<u8> = (0..24_u32).map(|i| (i * 151 + 89) as u8).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in 1..=64 {
                for at in 0..64 {
                    let load = Load::new(at, size, order);
                    assert_eq!(load.is_some(), at % 8 + u64::from(size) <= 64);
                    let Some(load) = load else { continue };
                    assert_eq!(
                        load.bits(&data),
                        Some(bits::unsigned(&data, at, size, order)),
                        "{size} bits at {at}"
                    );
                    assert_eq!(
                        load.signed(&data),
                        Some(bits::sign_extended(bits::unsigned(&data, at, size, order), size)),
                        "{size} bits at {at}"
                    );
                }
            }
        }
    }
}
