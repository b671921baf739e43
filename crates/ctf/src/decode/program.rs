//! What a field class is compiled to: nodes in one flat array per scope, children side by side.

use std::sync::Arc;

use crate::model::{
    self, BitArrayClass, BitMapClass, ByteOrder, Encoding, EnumerationClass, IntegerClass, Roles, Scope,
    StructureClass,
};

/// No slot, no node, no known size.
pub(crate) const NONE: u32 = u32::MAX;

/// A scope's field class. Node 0 is its root structure.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
}

impl Program {
    /// Whether some integer has `role`.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.nodes.iter().any(|node| node.kind.integer().is_some_and(|integer| integer.role.includes(role)))
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Option<Box<str>>,
    /// Alignment in bits, a power of two.
    pub(crate) align: u32,
    /// Size in bits from an aligned start, if it is constant and nothing in it must be read; otherwise
    /// `u64::MAX`.
    pub(crate) skip: u64,
    pub(crate) kind: Kind,
}

/// What a field consists of.
#[derive(Debug)]
pub(crate) enum Kind {
    BitArray(Integer, BitArrayClass),
    BitMap(Integer, Arc<BitMapClass>),
    Boolean(Integer),
    Integer(Integer, IntegerClass),
    Enumeration(Integer, Arc<EnumerationClass>),
    /// LEB128; the integer's size and order mean nothing.
    Variable(Integer, IntegerClass),
    /// LEB128 with labels.
    VariableEnumeration(Integer, Arc<EnumerationClass>),
    Float {
        size: u32,
        order: ByteOrder,
        reversed: bool,
    },
    /// Null-terminated, in bytes.
    String,
    /// Null-terminated, in UTF-16 or UTF-32.
    WideString(Encoding),
    Text {
        length: Length,
    },
    /// In UTF-16 or UTF-32; the length is in bytes.
    WideText {
        length: Length,
        encoding: Encoding,
    },
    Blob {
        length: Length,
    },
    Structure {
        first: u32,
        count: u32,
        class: Arc<StructureClass>,
    },
    Array {
        length: Length,
        element: u32,
    },
    Optional(Box<Optional>),
    Variant(Box<Variant>),
}

impl Kind {
    /// How the value is read, where it is one integer (or boolean).
    pub(crate) fn integer(&self) -> Option<&Integer> {
        match self {
            Kind::BitArray(integer, _)
            | Kind::BitMap(integer, _)
            | Kind::Boolean(integer)
            | Kind::Integer(integer, _)
            | Kind::Enumeration(integer, _)
            | Kind::Variable(integer, _)
            | Kind::VariableEnumeration(integer, _) => Some(integer),
            _ => None,
        }
    }

    /// As [`Kind::integer`], to be changed.
    pub(super) fn integer_mut(&mut self) -> Option<&mut Integer> {
        match self {
            Kind::BitArray(integer, _)
            | Kind::BitMap(integer, _)
            | Kind::Boolean(integer)
            | Kind::Integer(integer, _)
            | Kind::Enumeration(integer, _)
            | Kind::Variable(integer, _)
            | Kind::VariableEnumeration(integer, _) => Some(integer),
            _ => None,
        }
    }

    /// The slot that it reads or fills.
    pub(super) fn slot_mut(&mut self) -> Option<&mut u32> {
        match self {
            Kind::Text { length: Length::Slot(slot) }
            | Kind::WideText { length: Length::Slot(slot), .. }
            | Kind::Blob { length: Length::Slot(slot) }
            | Kind::Array { length: Length::Slot(slot), .. } => Some(slot),
            Kind::Optional(optional) => Some(&mut optional.slot),
            Kind::Variant(variant) => Some(&mut variant.slot),
            kind => kind.integer_mut().map(|integer| &mut integer.slot).filter(|slot| **slot != NONE),
        }
    }
}

/// How an integer is read, and what for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integer {
    pub(crate) size: u32,
    pub(crate) order: ByteOrder,
    /// Whether its bits lie in the order that its byte order does not suggest.
    pub(crate) reversed: bool,
    pub(crate) signed: bool,
    /// Slot of its value for a length or a tag; `NONE` if no field refers to it.
    pub(crate) slot: u32,
    pub(crate) role: Role,
}

/// What an integer means to the decoder itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
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
    /// The field has several roles.
    Several(Roles),
}

impl Role {
    /// What an integer with these roles means in a scope; `has_clock` if its data stream class has a default
    /// clock.
    pub(crate) fn new(roles: Roles, scope: Scope, has_clock: bool) -> Role {
        let mut roles_in_order = roles.iter();
        match (roles_in_order.next(), roles_in_order.next()) {
            (None, _) => Role::None,
            (Some(role), None) => Role::one(role, scope == Scope::PacketContext, has_clock),
            (Some(_), Some(_)) => Role::Several(roles),
        }
    }

    /// What one role means; `in_packet` outside of event records.
    pub(crate) fn one(role: model::Role, in_packet: bool, has_clock: bool) -> Role {
        match role {
            model::Role::PacketMagicNumber => Role::Magic,
            model::Role::MetadataStreamUuid => Role::None,
            model::Role::DataStreamClassId => Role::StreamId,
            model::Role::DataStreamId => Role::StreamInstanceId,
            model::Role::PacketTotalLength => Role::PacketSize,
            model::Role::PacketContentLength => Role::ContentSize,
            model::Role::DefaultClockTimestamp if in_packet => Role::Begin(has_clock),
            model::Role::DefaultClockTimestamp => Role::Clock,
            model::Role::PacketEndDefaultClockTimestamp => Role::End,
            model::Role::DiscardedEventRecordCounterSnapshot => Role::Discarded,
            model::Role::PacketSequenceNumber => Role::Sequence,
            model::Role::EventRecordClassId => Role::EventId,
        }
    }

    /// Whether `role` is this or among these.
    fn includes(self, role: Role) -> bool {
        match self {
            Role::Several(roles) => roles.iter().any(|one| Role::one(one, true, true) == role),
            one => one == role,
        }
    }
}

/// How many elements an array has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Length {
    Fixed(u64),
    Slot(u32),
}

/// A field that is there or not, and how the selector says so.
#[derive(Debug)]
pub(crate) struct Optional {
    pub(crate) slot: u32,
    pub(crate) signed: bool,
    /// [Keys](key) of the first and last value that enable the field.
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) field: u32,
}

impl Optional {
    /// Whether the selector's value enables the field.
    #[inline]
    pub(crate) fn enabled(&self, selector: u64) -> bool {
        let key = key(self.signed, selector);
        self.ranges.iter().any(|(low, high)| *low <= key && key <= *high)
    }
}

/// A number that orders as the value of a tag or selector does, signed or not.
#[inline]
pub(crate) fn key(signed: bool, value: u64) -> u64 {
    value ^ (u64::from(signed) << 63)
}

/// The keys of a range of values, limited to what 64 bits, signed or unsigned, can hold.
pub(super) fn keys(signed: bool, (low, high): (i128, i128)) -> Option<(u64, u64)> {
    let (least, most) = match signed {
        true => (i128::from(i64::MIN), i128::from(i64::MAX)),
        false => (0, i128::from(u64::MAX)),
    };
    let (low, high) = (low.max(least), high.min(most));
    (low <= high).then(|| (key(signed, low as u64), key(signed, high as u64)))
}

/// A variant's options and how the tag selects one.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) slot: u32,
    pub(crate) signed: bool,
    /// [Keys](key) of the first and last tag value, and the option's place after `first`.
    pub(crate) ranges: Vec<(u64, u64, u32)>,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Variant {
    /// The node of the option that the tag's value selects.
    #[inline]
    pub(crate) fn select(&self, tag: u64) -> Option<u32> {
        let key = key(self.signed, tag);
        let range = self.ranges.iter().find(|(low, high, _)| *low <= key && key <= *high);
        range.map(|(_, _, option)| self.first + option)
    }
}
