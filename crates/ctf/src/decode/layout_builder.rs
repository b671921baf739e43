//! Finds out where the fields of an event record class lie, if that can be said without a walk.
//!
//! What can be: integers, enumerations and floating point numbers that lie within eight bytes, text arrays,
//! structures, short arrays of known length, strings in bytes, and sequences of bytes of text or of integers
//! in whole bytes whose length is in the same scope.

use super::header::Header;
use super::layout::{Extent, Layout, PieceEnd};
use super::load::Load;
use super::program::{Integer, Kind, Length, NONE, Node, Program, Role};
use super::record::{Element, Field, FixedCompound, Form, MOST_PIECES};
use crate::model::{ByteOrder, IntegerClass};

/// Event records with larger pieces are walked.
const MOST_BITS: u64 = 1 << 20;
/// So are those with more fields, elements included.
const MOST_FIELDS: usize = 512;
/// And those whose fields have more bytes of names; an array's elements may share a long one, and each has a
/// copy here.
const MOST_NAME_BYTES: usize = 1 << 16;

/// A layout being built.
struct LayoutBuilder {
    /// Bits from the beginning of the piece.
    at: u64,
    /// The piece begins at a multiple of this, in bits.
    align: u64,
    ends: Vec<PieceEnd>,
    fields: Vec<Field>,
    name_bytes: usize,
    /// The slots of numbers in the scope that may be lengths, and where those are.
    counts: Vec<(u32, (u8, Load))>,
}

impl Layout {
    /// The layout after a header, if it can be expressed, and the decoder itself needs no field in it.
    pub(super) fn new(header: &Header, scopes: [Option<&Program>; 3]) -> Option<Self> {
        let mut builder = LayoutBuilder {
            at: header.bits(),
            align: header.align().into(),
            ends: Vec::new(),
            fields: Vec::new(),
            name_bytes: 0,
            counts: Vec::new(),
        };
        let (mut starts, mut ranges) = ([(0, 0); 3], [const { 0..0 }; 3]);
        for ((start, range), program) in starts.iter_mut().zip(&mut ranges).zip(scopes) {
            let first = builder.fields.len();
            builder.counts.clear();
            if let Some(program) = program {
                let root = program.nodes.first()?;
                builder.align(root.align)?;
                *start = (builder.piece(), builder.at);
                let Kind::Structure { first, count, .. } = root.kind else { return None };
                for node in program.nodes.get(first as usize..(first + count) as usize)? {
                    builder.node(program, node, node.name.as_deref())?;
                }
            } else {
                *start = (builder.piece(), builder.at);
            }
            *range = first..builder.fields.len();
        }
        let LayoutBuilder { ends, fields, .. } = builder;
        let is_near = ends.is_empty() && fields.iter().all(|field| field.load.is_near());
        Some(Layout { starts, ends, bits: builder.at, fields, is_near, scopes: ranges })
    }
}

impl Form {
    fn of_integer(integer: &Integer, class: &IntegerClass) -> Self {
        let form = match (integer.signed, integer.order) {
            (false, ByteOrder::Little) => Form::Plain,
            (true, ByteOrder::Little) => Form::PlainSigned,
            (false, ByteOrder::Big) => Form::Unsigned,
            (true, ByteOrder::Big) => Form::Signed,
        };
        form(class.clone())
    }
}

impl LayoutBuilder {
    fn piece(&self) -> u8 {
        self.ends.len() as u8
    }

    /// Moves up to a multiple of this many bits.
    fn align(&mut self, align: u32) -> Option<()> {
        if u64::from(align) > self.align {
            let bytes = usize::try_from(align / 8).ok()?;
            self.end_piece(Extent::Padding(bytes.checked_sub(1)?), align.into())?;
        }
        self.at = self.at.checked_next_multiple_of(u64::from(align))?;
        Some(())
    }

    /// Ends the piece with data of unknown size. The next piece begins at the next byte, at a multiple of
    /// `align` bits.
    fn end_piece(&mut self, extent: Extent, align: u64) -> Option<()> {
        let at = usize::try_from(self.at.div_ceil(8)).ok()?;
        self.ends.push(PieceEnd { at, extent });
        (self.at, self.align) = (0, align);
        (self.ends.len() < MOST_PIECES).then_some(())
    }

    /// Adds a field and all in it; `None` if it needs a walk.
    fn node(&mut self, program: &Program, node: &Node, name: Option<&str>) -> Option<()> {
        self.align(node.align)?;
        match &node.kind {
            Kind::Integer(integer, class) if class.bit_order.is_none() => {
                self.number(name, Form::of_integer(integer, class), integer)
            }
            Kind::Enumeration(integer, class) if class.integer.bit_order.is_none() => {
                let form = if integer.signed { Form::SignedEnumeration } else { Form::UnsignedEnumeration };
                self.number(name, form(class.clone()), integer)
            }
            Kind::Float { size: 32, order, reversed: false } => {
                self.push(name, Load::new(self.at, 32, *order)?, Form::Float32)?;
                self.advance(32)
            }
            Kind::Float { size: 64, order, reversed: false } => {
                self.push(name, Load::new(self.at, 64, *order)?, Form::Float64)?;
                self.advance(64)
            }
            Kind::String => {
                self.push(name, Load::at_byte(self.at / 8)?, Form::String)?;
                self.end_piece(Extent::String, 8)
            }
            Kind::Text { length: Length::Fixed(length) } if self.at.is_multiple_of(8) => {
                let length = usize::try_from(*length).ok()?;
                self.push(name, Load::at_byte(self.at / 8)?, Form::Text { length })?;
                self.advance(u64::try_from(length).ok()?.checked_mul(8)?)
            }
            Kind::Text { length: Length::Slot(slot) } if self.at.is_multiple_of(8) => {
                self.push(name, Load::at_byte(self.at / 8)?, Form::TextSequence)?;
                self.counted(*slot, 1)
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
                    // An element without a field would repeat this permanently.
                    let before = self.fields.len();
                    self.node(program, program.nodes.get(*element as usize)?, None)?;
                    (self.fields.len() > before).then_some(())?;
                }
                self.push(name, Load::NOTHING, Form::End(compound))
            }
            Kind::Array { length: Length::Slot(slot), element } => {
                let element = element_of(program.nodes.get(*element as usize)?)?;
                let size = element.size;
                self.push(name, Load::at_byte(self.at / 8)?, Form::Sequence(Box::new(element)))?;
                self.counted(*slot, size)
            }
            _ => None,
        }
    }

    fn number(&mut self, name: Option<&str>, form: Form, integer: &Integer) -> Option<()> {
        (integer.role == Role::None).then_some(())?;
        let load = Load::new(self.at, integer.size, integer.order)?;
        if integer.slot != NONE {
            let place = (self.piece(), load);
            // The last one counts.
            self.counts.retain(|(slot, _)| *slot != integer.slot);
            self.counts.push((integer.slot, place));
        }
        self.push(name, load, form)?;
        self.advance(integer.size.into())
    }

    /// Ends the piece with `size` bytes times the number in a slot.
    fn counted(&mut self, slot: u32, size: usize) -> Option<()> {
        let (piece, count) = self.counts.iter().find(|(other, _)| *other == slot)?.1;
        self.end_piece(Extent::Counted { piece, count, size }, 8)
    }

    fn push(&mut self, name: Option<&str>, load: Load, form: Form) -> Option<()> {
        self.name_bytes += name.map_or(0, str::len);
        if self.name_bytes > MOST_NAME_BYTES {
            return None;
        }
        self.fields.push(Field { name: name.map(Into::into), piece: self.piece(), load, form });
        (self.fields.len() <= MOST_FIELDS).then_some(())
    }

    fn advance(&mut self, bits: u64) -> Option<()> {
        self.at = self.at.checked_add(bits)?;
        (self.at <= MOST_BITS).then_some(())
    }
}

/// The elements of a sequence that needs no walk: each begins where the one before it ends.
fn element_of(node: &Node) -> Option<Element> {
    let Kind::Integer(integer, class) = &node.kind else { return None };
    let whole = node.align >= 8 && integer.size.is_multiple_of(node.align);
    let plain = integer.slot == NONE && integer.role == Role::None && class.bit_order.is_none();
    (whole && plain).then_some(())?;
    let size = usize::try_from(integer.size / 8).ok()?;
    let is_plain = !integer.signed && integer.order == ByteOrder::Little && size.is_power_of_two();
    Some(Element { class: class.clone(), load: Load::new(0, integer.size, integer.order)?, size, is_plain })
}
