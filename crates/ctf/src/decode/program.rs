//! What a field class is compiled to: nodes in one flat array per scope, children side by side.

use std::sync::Arc;

use crate::model::{self, ByteOrder, EnumerationClass, IntegerClass, Roles, Scope, StructureClass};

/// No slot, no node, no known size.
pub(crate) const NONE: u32 = u32::MAX;

/// A scope's field class. Node 0 is its root structure.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
}

impl Program {
    /// Whether some integer tells `role`.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            Kind::Integer(integer, _) | Kind::Enumeration(integer, _) => integer.role.includes(role),
            _ => false,
        })
    }
}

/// A field.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Option<Box<str>>,
    /// Alignment in bits, a power of two.
    pub(crate) align: u32,
    /// Size in bits from an aligned start, where it is always the same and nothing in it needs a look; else `u64::MAX`.
    pub(crate) skip: u64,
    pub(crate) kind: Kind,
}

/// What a field consists of.
#[derive(Debug)]
pub(crate) enum Kind {
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
pub(crate) struct Integer {
    pub(crate) size: u32,
    pub(crate) order: ByteOrder,
    pub(crate) signed: bool,
    /// Where its value is kept for a length or a tag; `NONE` if nobody needs it.
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
    /// More than one.
    Several(Roles),
}

impl Role {
    /// What an integer with these roles means in a scope; `has_clock` if its data stream class has a default clock.
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

/// A variant's options and how the tag selects one.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) slot: u32,
    pub(crate) signed: bool,
    /// [Keys](Variant::key) of the first and last tag value, and the option's place behind `first`.
    pub(crate) ranges: Vec<(u64, u64, u32)>,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Variant {
    /// A number that orders as the tag's value does, signed or not.
    #[inline]
    pub(crate) fn key(&self, tag: u64) -> u64 {
        tag ^ (u64::from(self.signed) << 63)
    }

    /// The node of the option that the tag's value selects.
    #[inline]
    pub(crate) fn select(&self, tag: u64) -> Option<u32> {
        let key = self.key(tag);
        let range = self.ranges.iter().find(|(low, high, _)| *low <= key && key <= *high);
        range.map(|(_, _, option)| self.first + option)
    }
}
