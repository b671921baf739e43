//! CTF 1.8's way to say roles: by the names of members, and clock by clock (specification 1.8.3, sections 5,
//! 6.1 and 8).

use std::sync::Arc;

use super::{FieldClass, IntegerClass, Role, Scope, StructureClass, TraceClass};

impl TraceClass {
    /// Gives fields the roles that CTF 1.8 ties to member names (`magic`, `content_size`, `id`, …) and to
    /// mapped clocks, and data stream classes their default clock: that of the first mapped field. What is
    /// there already stays.
    ///
    /// [`tsdl::parse`](crate::tsdl::parse) and the decoder have done so; call it to see the roles of a class
    /// built in code.
    pub fn fill_roles(&mut self) {
        fill(Scope::PacketHeader, &mut self.packet_header, &mut None);
        for stream in &mut self.data_stream_classes {
            let mut clock = stream.default_clock.take();
            fill(Scope::PacketContext, &mut stream.packet_context, &mut clock);
            fill(Scope::EventHeader, &mut stream.event_header, &mut clock);
            fill(Scope::CommonContext, &mut stream.common_context, &mut clock);
            for event in &mut stream.event_record_classes {
                fill(Scope::SpecificContext, &mut event.specific_context, &mut clock);
                fill(Scope::Payload, &mut event.payload, &mut clock);
            }
            stream.default_clock = clock;
        }
    }
}

fn fill(scope: Scope, structure: &mut Option<StructureClass>, clock: &mut Option<String>) {
    let Some(structure) = structure else { return };
    for member in &mut structure.members {
        field(scope, true, Some(&member.name), &mut member.class, clock);
    }
}

/// Whether anything below needs a role, so that shared classes are copied only then.
fn concerns(scope: Scope, top: bool, name: Option<&str>, class: &FieldClass) -> bool {
    let leaf = |class: &IntegerClass| {
        class.mapped_clock.is_some()
            || role(scope, top, name, class).is_some_and(|role| !class.roles.has(role))
    };
    match class {
        FieldClass::Integer(class) => leaf(class),
        FieldClass::Enumeration(class) => leaf(&class.integer),
        FieldClass::Structure(class) => {
            class.members.iter().any(|member| concerns(scope, false, Some(&member.name), &member.class))
        }
        FieldClass::Variant(class) => {
            class.options.iter().any(|option| concerns(scope, false, None, &option.class))
        }
        FieldClass::StaticArray(class) => concerns(scope, false, None, &class.element),
        FieldClass::DynamicArray(class) => concerns(scope, false, None, &class.element),
        _ => false,
    }
}

fn field(scope: Scope, top: bool, name: Option<&str>, class: &mut FieldClass, clock: &mut Option<String>) {
    if !concerns(scope, top, name, class) {
        return;
    }
    let mut leaf = |class: &mut IntegerClass| {
        if let Some(role) = role(scope, top, name, class) {
            class.roles = class.roles.with(role);
        }
        if let Some(mapped) = &class.mapped_clock {
            clock.get_or_insert_with(|| mapped.to_string());
        }
    };
    match class {
        FieldClass::Integer(class) => leaf(class),
        FieldClass::Enumeration(class) => leaf(&mut Arc::make_mut(class).integer),
        FieldClass::Structure(class) => {
            for member in &mut Arc::make_mut(class).members {
                field(scope, false, Some(&member.name), &mut member.class, clock);
            }
        }
        FieldClass::Variant(class) => {
            for option in &mut Arc::make_mut(class).options {
                field(scope, false, None, &mut option.class, clock);
            }
        }
        FieldClass::StaticArray(class) => field(scope, false, None, &mut Arc::make_mut(class).element, clock),
        FieldClass::DynamicArray(class) => {
            field(scope, false, None, &mut Arc::make_mut(class).element, clock)
        }
        _ => {}
    }
}

/// The role of an integer field; `top` for members of the scope's own structure.
fn role(scope: Scope, top: bool, name: Option<&str>, class: &IntegerClass) -> Option<Role> {
    match (scope, name) {
        (Scope::PacketHeader, Some("magic")) if top => Some(Role::PacketMagicNumber),
        (Scope::PacketHeader, Some("stream_id")) if top => Some(Role::DataStreamClassId),
        (Scope::PacketHeader, Some("stream_instance_id")) if top => Some(Role::DataStreamId),
        (Scope::PacketContext, Some("packet_size")) if top => Some(Role::PacketTotalLength),
        (Scope::PacketContext, Some("content_size")) if top => Some(Role::PacketContentLength),
        (Scope::PacketContext, Some("timestamp_begin")) if top => Some(Role::DefaultClockTimestamp),
        (Scope::PacketContext, Some("timestamp_end")) if top => Some(Role::PacketEndDefaultClockTimestamp),
        (Scope::PacketContext, Some("events_discarded")) if top => {
            Some(Role::DiscardedEventRecordCounterSnapshot)
        }
        (Scope::PacketContext, Some("packet_seq_num")) if top => Some(Role::PacketSequenceNumber),
        (Scope::EventHeader, Some("id")) => Some(Role::EventRecordClassId),
        _ if class.mapped_clock.is_some() && !class.signed => Some(Role::DefaultClockTimestamp),
        _ => None,
    }
}
