//! Checks the fields whose names have a meaning (specification 1.8.3, sections 5 and 6), and that all stamps
//! of a stream use the same clock: otherwise they are useless.

use std::sync::Arc;

use super::lex;
use crate::model::{DataStreamClass, FieldClass, Member, Scope, StructureClass, TraceClass};
use crate::{Error, TsdlFault, TsdlNeeded};

/// Checks the headers and the packet contexts of a trace class that was read from `text`.
pub(super) fn check(text: &str, trace: &TraceClass) -> Result<(), Error> {
    let scope = |scope, structure: &Option<StructureClass>| {
        let members = structure.iter().flat_map(|structure| &structure.members);
        members.into_iter().try_for_each(|member| {
            let requirement = requirement(scope, member);
            requirement.map_or(Ok(()), |expected| {
                let fault = TsdlFault::FieldWithMeaning { field: member.name.clone(), expected };
                Err(lex::error_at(text, member.place.offset().unwrap_or(0), fault))
            })
        })
    };
    scope(Scope::PacketHeader, &trace.packet_header)?;
    trace.data_stream_classes.iter().try_for_each(|stream| {
        scope(Scope::PacketContext, &stream.packet_context)?;
        scope(Scope::EventHeader, &stream.event_header)?;
        one_clock(text, stream)
    })
}

fn one_clock(text: &str, stream: &DataStreamClass) -> Result<(), Error> {
    let events = stream.event_record_classes.iter();
    let own = events.flat_map(|event| [&event.specific_context, &event.payload]);
    let scopes =
        [&stream.packet_context, &stream.event_header, &stream.common_context].into_iter().chain(own);
    let mut first = None;
    for member in scopes.flatten().flat_map(|structure| &structure.members) {
        if let Some([first, second]) = second_clock(&member.class, &mut first) {
            let fault = TsdlFault::TwoClocks { stream: stream.id, first, second };
            return Err(lex::error_at(text, member.place.offset().unwrap_or(0), fault));
        }
    }
    Ok(())
}

/// The `first` clock that a stamp is of, which is set by the first stamp, and another one in `class`.
fn second_clock(class: &FieldClass, first: &mut Option<Arc<str>>) -> Option<[String; 2]> {
    let mapped = match class {
        FieldClass::Integer(class) => &class.mapped_clock,
        FieldClass::Enumeration(class) => &class.integer.mapped_clock,
        FieldClass::Structure(class) => {
            return class.members.iter().find_map(|member| second_clock(&member.class, first));
        }
        FieldClass::Variant(class) => {
            return class.options.iter().find_map(|option| second_clock(&option.class, first));
        }
        FieldClass::StaticArray(class) => return second_clock(&class.element, first),
        FieldClass::DynamicArray(class) => return second_clock(&class.element, first),
        _ => return None,
    };
    let mapped = mapped.as_ref()?;
    let first = first.get_or_insert_with(|| mapped.clone());
    (first != mapped).then(|| [first.to_string(), mapped.to_string()])
}

/// What a member of the scope's structure should be and is not.
fn requirement(scope: Scope, member: &Member) -> Option<TsdlNeeded> {
    let integer = match &member.class {
        FieldClass::Integer(class) => Some(class),
        FieldClass::Enumeration(class) => Some(&class.integer),
        _ => None,
    };
    let is_unsigned = integer.is_some_and(|class| !class.signed);
    match (scope, member.name.as_str()) {
        (Scope::PacketHeader, "magic") => {
            let good = is_unsigned && integer.is_some_and(|class| class.size == 32);
            (!good).then_some(TsdlNeeded::Unsigned32)
        }
        (Scope::PacketHeader, "uuid") => (!is_uuid(&member.class)).then_some(TsdlNeeded::UuidClass),
        (Scope::PacketHeader, "stream_id" | "stream_instance_id")
        | (
            Scope::PacketContext,
            "packet_size" | "content_size" | "timestamp_begin" | "timestamp_end" | "events_discarded"
            | "packet_seq_num",
        ) => (!is_unsigned).then_some(TsdlNeeded::Unsigned),
        (Scope::EventHeader, "id") => (!is_unsigned).then_some(TsdlNeeded::Unsigned),
        _ => None,
    }
}

fn is_uuid(class: &FieldClass) -> bool {
    let FieldClass::StaticArray(array) = class else { return false };
    let FieldClass::Integer(class) = &array.element else { return false };
    array.length == 16 && (class.size, class.align, class.signed) == (8, 8, false)
}
