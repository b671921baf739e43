//! Event record classes whose fields need no walk: each value is one load from a known position.
//!
//! If every field has a known size, all positions are known. Strings and sequences divide an event record
//! into pieces with known positions inside; the beginnings of the pieces are found once per event record,
//! before any field is read. Layouts are determined when a class is compiled ([`super::layout_builder`]);
//! everything else is left to [`super::walk`], which returns the same values.

use std::ops::Range;
use std::sync::Arc;

use super::Visitor;
use super::load::{Load, NEAR, SLACK};
use super::record::{Field, Form, MOST_PIECES, Pieces, Record, RecordField, show, show_near};
use super::search::null;

/// Where everything lies in the event records of a class, from the aligned start of their header.
#[derive(Debug)]
pub(super) struct Layout {
    /// Where common context, specific context and payload begin: which piece, and bits from that's beginning.
    pub(super) starts: [(u8, u64); 3],
    /// How each piece but the last ends.
    pub(super) ends: Vec<PieceEnd>,
    /// Size of the last piece in bits.
    pub(super) bits: u64,
    /// In order, with the beginnings and ends of compounds.
    pub(super) fields: Vec<Field>,
    /// Whether all numbers lie in the record's first [`NEAR`] bytes.
    pub(super) is_near: bool,
    /// Those of common context, specific context and payload.
    pub(super) scopes: [Range<usize>; 3],
}

/// How a piece of an event record ends, and the next one begins.
#[derive(Debug)]
pub(super) struct PieceEnd {
    /// Bytes from the piece's beginning to what has no known size.
    pub(super) at: usize,
    pub(super) extent: Extent,
}

/// What has no known size.
#[derive(Debug)]
pub(super) enum Extent {
    /// Padding up to a multiple of a power of two in bytes from the packet's beginning; that less one.
    Padding(usize),
    /// Bytes up to a null, and that.
    String,
    /// `size` bytes times the number in the given piece.
    Counted { piece: u8, count: Load, size: usize },
}

/// How to step over the event records of one id, with their headers.
#[derive(Debug, Clone)]
pub(super) struct Stride {
    /// Index of the class.
    pub(super) event: u32,
    /// Size in bits from the aligned start of the header; `u32::MAX` where it differs.
    pub(super) bits: u32,
    /// The layout of the class's payload.
    pub(super) layout: Option<Arc<Layout>>,
}

impl Stride {
    /// How to step over event records of the class with this index, by its layout.
    pub(super) fn new(event: u32, layout: Option<&Arc<Layout>>) -> Self {
        let bits = layout.and_then(|layout| u32::try_from(layout.bits).ok().filter(|_| layout.is_fixed()));
        Stride { event, bits: bits.unwrap_or(u32::MAX), layout: layout.cloned() }
    }

    /// The size in bits of the event record that `record` begins with, at byte `start` of its packet; where
    /// its pieces begin goes to `pieces`. `None` where it has to be walked: also if less than [`SLACK`] bytes
    /// follow it.
    #[inline(always)]
    pub(super) fn measure(&self, record: &[u8], start: usize, pieces: &mut Pieces) -> Option<u64> {
        let bits = match self.bits {
            u32::MAX => self.layout.as_ref()?.measure(record, start, pieces)?,
            bits => u64::from(bits),
        };
        (bits / 8 + (SLACK as u64) < record.len() as u64).then_some(bits)
    }
}

impl Layout {
    /// Whether all event records have the same size.
    fn is_fixed(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes that it takes.
    pub(super) fn memory(&self) -> usize {
        let names = self.fields.iter().map(|field| field.name.as_ref().map_or(0, |name| name.len()));
        size_of_val(self.fields.as_slice()) + names.sum::<usize>()
    }

    /// As [`Stride::measure`], with no regard to what follows.
    #[inline]
    pub(super) fn measure(&self, record: &[u8], start: usize, pieces: &mut Pieces) -> Option<u64> {
        let mut begin = 0;
        for (index, PieceEnd { at, extent }) in self.ends.iter().enumerate() {
            let at = begin + at;
            begin = match extent {
                Extent::Padding(mask) => ((start + at + mask) & !mask) - start,
                Extent::String => at + null(record.get(at..)?)? + 1,
                Extent::Counted { piece, count, size } => {
                    let count = count.bits(record.get(*pieces.get(usize::from(*piece))?..)?)?;
                    at.checked_add(usize::try_from(count).ok()?.checked_mul(*size)?)?
                }
            };
            if begin > record.len() {
                return None;
            }
            *pieces.get_mut(index + 1)? = begin;
        }
        Some(begin as u64 * 8 + self.bits)
    }

    /// The bit at which a scope begins, from the record's first: 0 to 2 for common context, specific context
    /// and payload.
    pub(super) fn start(&self, scope: usize, pieces: &Pieces) -> u64 {
        let (piece, bits) = self.starts[scope];
        pieces[usize::from(piece) % MOST_PIECES] as u64 * 8 + bits
    }

    /// The place of a scope's `index`th member among the scope's fields: 0 to 2 as for [`Layout::start`].
    pub(super) fn member(&self, scope: usize, index: usize) -> Option<usize> {
        let mut depth = 0;
        let mut members = self.fields[self.scopes[scope].clone()].iter().enumerate().filter(|(_, field)| {
            let is_member = depth == 0 && !matches!(field.form, Form::End(_));
            match field.form {
                Form::Begin(_) => depth += 1,
                Form::End(_) => depth -= 1,
                _ => {}
            }
            is_member
        });
        members.nth(index).map(|(place, _)| place)
    }

    /// The field at that place.
    #[inline(always)]
    pub(super) fn field(&self, scope: usize, place: u32) -> Option<&Field> {
        self.fields.get(self.scopes[scope].start + place as usize)
    }

    /// The fields that are no compounds, and the sequences.
    pub(super) fn values(&self) -> Vec<RecordField> {
        let values = self.fields.iter().filter(|field| !matches!(field.form, Form::Begin(_) | Form::End(_)));
        values.cloned().map(RecordField).collect()
    }

    /// Shows the fields of all scopes.
    #[inline]
    pub(super) fn show_all<V: Visitor>(&self, record: Record<'_>, visitor: &mut V) {
        self.show_fields(&self.fields, record, visitor);
    }

    /// Shows the fields of a scope: 0 to 2 for common context, specific context and payload.
    #[inline]
    pub(super) fn show<V: Visitor>(&self, scope: usize, record: Record<'_>, visitor: &mut V) {
        self.show_fields(&self.fields[self.scopes[scope].clone()], record, visitor);
    }

    #[inline(always)]
    fn show_fields<V: Visitor>(&self, fields: &[Field], record: Record<'_>, visitor: &mut V) {
        match (self.is_fixed(), record.bytes.first_chunk::<NEAR>().filter(|_| self.is_near)) {
            (_, Some(near)) => show_near(fields, record, near, visitor),
            (true, None) => show::<false, V>(fields, record, visitor),
            (false, None) => show::<true, V>(fields, record, visitor),
        }
    }
}
