//! Roles of the fields of a scope: which ones it may have, and where they are.

use crate::model::{FieldClass, Role, Roles, Scope};

const PACKET_HEADER_ROLES: [Role; 4] =
    [Role::PacketMagicNumber, Role::MetadataStreamUuid, Role::DataStreamClassId, Role::DataStreamId];
const PACKET_CONTEXT_ROLES: [Role; 6] = [
    Role::PacketTotalLength,
    Role::PacketContentLength,
    Role::DefaultClockTimestamp,
    Role::PacketEndDefaultClockTimestamp,
    Role::DiscardedEventRecordCounterSnapshot,
    Role::PacketSequenceNumber,
];
const EVENT_HEADER_ROLES: [Role; 2] = [Role::DefaultClockTimestamp, Role::EventRecordClassId];

/// The roles that fields of a scope may have.
pub(super) fn roles_of(scope: Scope) -> Roles {
    let roles = match scope {
        Scope::PacketHeader => &PACKET_HEADER_ROLES[..],
        Scope::PacketContext => &PACKET_CONTEXT_ROLES,
        Scope::EventHeader => &EVENT_HEADER_ROLES,
        Scope::CommonContext | Scope::SpecificContext | Scope::Payload => &[],
    };
    roles.iter().fold(Roles::NONE, |roles, role| roles.with(*role))
}

/// Shows every role in a field class, with the size of what has it (bits of integers, bytes of BLOBs) and
/// whether that is `direct`: the class itself.
pub(super) fn each_role<E>(
    class: &FieldClass,
    direct: bool,
    see: &mut impl FnMut(Role, u64, bool) -> Result<(), E>,
) -> Result<(), E> {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => {
            class.roles.iter().try_for_each(|role| see(role, class.size.into(), direct))
        }
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
            class.integer.roles.iter().try_for_each(|role| see(role, class.integer.size.into(), direct))
        }
        FieldClass::StaticBlob(class) => {
            class.roles.iter().try_for_each(|role| see(role, class.length, direct))
        }
        FieldClass::Structure(class) => {
            class.members.iter().try_for_each(|member| each_role(&member.class, false, see))
        }
        FieldClass::StaticArray(class) => each_role(&class.element, false, see),
        FieldClass::DynamicArray(class) => each_role(&class.element, false, see),
        FieldClass::Optional(class) => each_role(&class.class, false, see),
        FieldClass::Variant(class) => {
            class.options.iter().try_for_each(|option| each_role(&option.class, false, see))
        }
        _ => Ok(()),
    }
}
