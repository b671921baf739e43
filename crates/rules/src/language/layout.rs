//! Where the fields of a class are in its payload ([`tracewing_abi::schema`] defines their order). After a
//! field without constant size, positions count from that field's end.

use crate::filter::{Load, OPTIONAL, SLICE};
use tracewing_abi::schema::{ClassView, FieldView, Scalar, Shape};

/// The location where a filter finds a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub load: Load,
    /// Its type, if that is an integer's or floating-point number's.
    pub scalar: Scalar,
    pub position: Position,
    pub presence: Presence,
}

/// Bytes after the end of one of the fields without constant size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    /// Number of such fields before it: 0 is the payload's begin.
    pub anchor: usize,
    pub offset: u32,
}

impl Position {
    pub(crate) fn plus(self, bytes: u32) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }
}

/// Whether the value is present.
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
pub(crate) struct Anchor {
    pub position: Position,
    pub load: Load,
    /// The operand of [`Operation::Locate`](crate::filter::Operation::Locate).
    pub shape: u8,
}

/// Positions of all fields of a class.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The fields without constant size; the one at index `i` ends at anchor `i + 1`.
    pub anchors: Vec<Anchor>,
}

impl Layout {
    /// The layout of a class, and the position of each of its fields.
    pub(crate) fn new<'a>(class: &ClassView<'a>) -> (Self, Vec<(FieldView<'a>, Position)>) {
        let mut layout = Self::default();
        let mut fields = Vec::new();
        let mut position = Position { anchor: 0, offset: 0 };
        for field in class.fields() {
            fields.push((field, position));
            let size = field.scalar.size() as u32;
            let anchor = |load, shape| Anchor { position, load, shape };
            let anchor = match field.shape {
                Shape::One | Shape::Enumeration => {
                    position = position.plus(size);
                    continue;
                }
                Shape::Array => {
                    position = position.plus(size.saturating_mul(field.length));
                    continue;
                }
                Shape::Text => anchor(Load::TEXT, 0),
                Shape::Slice => anchor(Load::scalar(field.scalar), SLICE),
                Shape::Optional => anchor(Load::scalar(field.scalar), OPTIONAL),
            };
            layout.anchors.push(anchor);
            position = Position { anchor: layout.anchors.len(), offset: 0 };
        }
        (layout, fields)
    }
}
