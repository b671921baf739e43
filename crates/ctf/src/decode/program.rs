//! What a field class is compiled to: nodes in one flat array per scope, children side by side.

use std::sync::Arc;

use crate::model::{ByteOrder, EnumerationClass, IntegerClass, StructureClass};

/// No slot, no node, no known size.
pub(super) const NONE: u32 = u32::MAX;

/// A scope's field class. Node 0 is its root structure.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Option<Box<str>>,
    /// Alignment in bits, a power of two.
    pub(super) align: u32,
    /// Size in bits from an aligned start, where it is always the same and nothing in it needs a look; else `u64::MAX`.
    pub(super) skip: u64,
    pub(super) kind: Kind,
}

/// What a field consists of.
#[derive(Debug)]
pub(super) enum Kind {
    Integer(Integer, IntegerClass),
    Enumeration(Integer, Arc<EnumerationClass>),
    Float { size: u32, order: ByteOrder },
    String,
    Text { length: Length },
    Structure { first: u32, count: u32, class: Arc<StructureClass> },
    Array { length: Length, element: u32 },
    Variant(Box<Variant>),
}

/// How an integer is read, and what for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integer {
    pub(super) size: u32,
    pub(super) order: ByteOrder,
    pub(super) signed: bool,
    /// Where its value is kept for a length or a tag; `NONE` if nobody needs it.
    pub(super) slot: u32,
    pub(super) role: Role,
}

/// What an integer means to the decoder itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    None,
    /// Moves the stream's clock.
    Clock,
    Magic,
    StreamId,
    StreamInstanceId,
    PacketSize,
    ContentSize,
    /// Begin stamp; `true` if it moves the clock too.
    Begin(bool),
    End,
    Discarded,
    Sequence,
    Cpu,
    EventId,
}

/// How many elements an array has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    Fixed(u64),
    Slot(u32),
}

/// A variant's options and how the tag selects one.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) slot: u32,
    pub(super) signed: bool,
    /// [Keys](Variant::key) of the first and last tag value, and the option's place behind `first`.
    pub(super) ranges: Vec<(u64, u64, u32)>,
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Variant {
    /// A number that orders as the tag's value does, signed or not.
    #[inline]
    pub(super) fn key(&self, tag: u64) -> u64 {
        tag ^ (u64::from(self.signed) << 63)
    }
}
