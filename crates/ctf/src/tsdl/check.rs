//! Checks the fields that have a meaning by their names (specification 1.8.3, sections 5 and 6): nobody could
//! use them otherwise.

use super::lex;
use crate::model::{FieldClass, Member, Scope, StructureClass, TraceClass};
use crate::{Error, TsdlFault};

/// Checks the headers and the packet contexts of a trace class that was read from `text`.
pub(super) fn check(text: &str, trace: &TraceClass) -> Result<(), Error> {
    let scope = |scope, structure: &Option<StructureClass>| {
        let members = structure.iter().flat_map(|structure| &structure.members);
        members.into_iter().try_for_each(|member| {
            let wanted = wanted(scope, member);
            wanted.map_or(Ok(()), |expected| {
                let fault = TsdlFault::FieldWithMeaning { field: member.name.clone(), expected };
                Err(lex::error_at(text, member.place.offset().unwrap_or(0), fault))
            })
        })
    };
    scope(Scope::PacketHeader, &trace.packet_header)?;
    trace.data_stream_classes.iter().try_for_each(|stream| {
        scope(Scope::PacketContext, &stream.packet_context)?;
        scope(Scope::EventHeader, &stream.event_header)
    })
}

/// What a member of the scope's structure should be and is not.
fn wanted(scope: Scope, member: &Member) -> Option<&'static str> {
    let integer = match &member.class {
        FieldClass::Integer(class) => Some(class),
        FieldClass::Enumeration(class) => Some(&class.integer),
        _ => None,
    };
    let is_unsigned = integer.is_some_and(|class| !class.signed);
    match (scope, member.name.as_str()) {
        (Scope::PacketHeader, "magic") => {
            let good = is_unsigned && integer.is_some_and(|class| class.size == 32);
            (!good).then_some("an unsigned integer of 32 bits")
        }
        (Scope::PacketHeader, "uuid") => {
            (!is_uuid(&member.class)).then_some("an array of 16 unsigned integers of 8 bits")
        }
        (Scope::PacketHeader, "stream_id" | "stream_instance_id")
        | (
            Scope::PacketContext,
            "packet_size" | "content_size" | "timestamp_begin" | "timestamp_end" | "events_discarded"
            | "packet_seq_num",
        ) => (!is_unsigned).then_some("an unsigned integer"),
        (Scope::EventHeader, "id") => (!is_unsigned).then_some("an unsigned integer"),
        _ => None,
    }
}

fn is_uuid(class: &FieldClass) -> bool {
    let FieldClass::StaticArray(array) = class else { return false };
    let FieldClass::Integer(class) = &array.element else { return false };
    array.length == 16 && (class.size, class.align, class.signed) == (8, 8, false)
}
