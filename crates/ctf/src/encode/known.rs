//! What the writer knows by itself: fields with a meaning to readers, in the headers and the packet context.

use crate::decode::program::{Integer, Kind, NONE, Node, Role};
use crate::model::Uuid;
use crate::write::PACKET_MAGIC;
use tracewing_units::Cycles;

/// Values of such fields in one scope; `None` where the caller has to give them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    /// Whether the scope is one of those that the writer fills.
    pub(super) header: bool,
    /// Whether it belongs to the packet, not to an event record.
    pub(super) in_packet: bool,
    /// The trace's UUID, and the bit of the packet where it is repeated.
    pub(super) uuid: Option<(u64, Uuid)>,
    pub(super) stream_id: Option<u64>,
    pub(super) instance_id: Option<u64>,
    pub(super) begin: Option<Cycles>,
    pub(super) seq: Option<u64>,
    /// The event record's stamp.
    pub(super) clock: Option<Cycles>,
    /// The event record class's id.
    pub(super) event_id: Option<u64>,
    /// The value to write instead if it selects the form of what follows.
    pub(super) form: Option<u64>,
}

/// Nothing is known of scopes that are the event's own.
pub(super) static NOTHING: Known = Known {
    header: false,
    in_packet: false,
    uuid: None,
    stream_id: None,
    instance_id: None,
    begin: None,
    seq: None,
    clock: None,
    event_id: None,
    form: None,
};

impl Known {
    /// What is written whether or not another value was given.
    #[inline]
    pub(super) fn instead(&self, node: &Node) -> Option<u64> {
        if !self.header {
            return None;
        }
        let integer = integer(node)?;
        let value = find_role(integer.role, self.in_packet, |role| match role {
            Role::Magic => Some(u64::from(PACKET_MAGIC)),
            Role::StreamId => self.stream_id,
            Role::StreamInstanceId => self.instance_id,
            Role::Begin(_) => self.begin.map(|Cycles(begin)| begin),
            Role::Sequence => self.seq,
            Role::Clock => self.clock.map(|Cycles(clock)| clock),
            later if comes_later(later) => Some(0),
            _ => None,
        });
        Some(low_bits(value?, &integer))
    }

    /// What is written where no value was given.
    pub(super) fn value(&self, node: &Node) -> Option<u64> {
        self.instead(node).or_else(|| {
            let integer = integer(node)?;
            find_role(integer.role, false, |role| (role == Role::EventId).then_some(()))?;
            if integer.slot == NONE { self.event_id } else { self.form }
        })
    }

    /// The trace's UUID, for the field at this bit of the packet that repeats it.
    pub(super) fn uuid(&self, at: u64) -> Option<Uuid> {
        self.uuid.filter(|(place, _)| *place == at).map(|(_, uuid)| uuid)
    }
}

/// The one of an integer's roles whose value is only known when the packet ends.
pub(super) fn later(role: Role) -> Option<Role> {
    find_role(role, true, |role| comes_later(role).then_some(role))
}

fn comes_later(role: Role) -> bool {
    matches!(role, Role::PacketSize | Role::ContentSize | Role::End | Role::Discarded)
}

/// The first of an integer's roles for which `find` has something.
fn find_role<T>(role: Role, in_packet: bool, find: impl Fn(Role) -> Option<T>) -> Option<T> {
    match role {
        Role::Several(roles) => roles.iter().find_map(|role| find(Role::one(role, in_packet, true))),
        role => find(role),
    }
}

/// What of `value` there is room for: stamps and counters wrap.
pub(super) fn low_bits(value: u64, integer: &Integer) -> u64 {
    value & (u64::MAX >> (64 - integer.size))
}

/// The integer that a node is; one of variable length has room for 64 bits.
fn integer(node: &Node) -> Option<Integer> {
    let integer = node.kind.integer().filter(|integer| !integer.signed)?;
    let variable = matches!(node.kind, Kind::Variable(..) | Kind::VariableEnumeration(..));
    Some(if variable { Integer { size: 64, ..*integer } } else { *integer })
}
