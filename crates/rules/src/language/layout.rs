//! Where the fields of a class are in its payload ([`tracewing_abi::schema`] says how they follow each
//! other). Behind a field without constant size positions are counted from that field's end.

use crate::filter::{Load, OPTIONAL, SLICE};
use tracewing_abi::schema::{ClassView, FieldView, Scalar, Shape};

/// Where a filter finds a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub load: Load,
    /// Its type, where that is an integer's or floating-point number's.
    pub scalar: Scalar,
    pub position: Position,
    pub presence: Presence,
}

/// Bytes behind the end of one of the fields without constant size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    /// How many such fields come before: 0 is the payload's begin.
    pub mark: usize,
    pub offset: u32,
}

impl Position {
    pub(crate) fn plus(self, bytes: u32) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }
}

/// Whether the value is always there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Presence {
    Always,
    /// If the byte at this position is not 0.
    Flag(Position),
    /// If the 16-bit count at this position is larger than the index.
    Counted(Position, u16),
}

/// A field without constant size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub position: Position,
    pub load: Load,
    /// The operand of [`Operation::Locate`](crate::filter::Operation::Locate).
    pub shape: u8,
}

/// Positions of all fields.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Those without constant size; the one at index `i` ends at mark `i + 1`.
    pub marks: Vec<Mark>,
}

impl Layout {
    /// The layout of a class, and the position of each of its fields.
    pub(crate) fn new<'a>(class: &ClassView<'a>) -> (Self, Vec<(FieldView<'a>, Position)>) {
        let mut layout = Self::default();
        let mut fields = Vec::new();
        let mut position = Position { mark: 0, offset: 0 };
        for field in class.fields() {
            fields.push((field, position));
            let size = field.scalar.size() as u32;
            let mark = |load, shape| Mark { position, load, shape };
            let mark = match field.shape {
                Shape::One | Shape::Enumeration => {
                    position = position.plus(size);
                    continue;
                }
                Shape::Array => {
                    position = position.plus(size.saturating_mul(field.length));
                    continue;
                }
                Shape::Text => mark(Load::TEXT, 0),
                Shape::Slice => mark(Load::scalar(field.scalar), SLICE),
                Shape::Optional => mark(Load::scalar(field.scalar), OPTIONAL),
            };
            layout.marks.push(mark);
            position = Position { mark: layout.marks.len(), offset: 0 };
        }
        (layout, fields)
    }
}
