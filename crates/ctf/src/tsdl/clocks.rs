//! Stamps that are mapped to no clock, as babeltrace2 takes them: where a trace has at most one clock, fields
//! with the names of stamps are that clock's; without one, they count nanoseconds.

use std::sync::Arc;

use crate::model::{ClockClass, FieldClass, IntegerClass, StructureClass, TraceClass};

/// The clock of timestamps that are mapped to none.
const DEFAULT_CLOCK: &str = "default";

/// Maps stamps of packets and event record headers that are mapped to no clock.
pub(super) fn map_stamps(trace: &mut TraceClass) {
    let clock: Arc<str> = match trace.clock_classes.as_slice() {
        [] => DEFAULT_CLOCK.into(),
        [only] => only.id.as_str().into(),
        _ => return,
    };
    let mut mapped = false;
    for stream in &mut trace.data_stream_classes {
        for (scope, names) in [
            (&mut stream.packet_context, &["timestamp_begin", "timestamp_end"][..]),
            (&mut stream.event_header, &["timestamp"]),
        ] {
            if let Some(scope) = scope {
                mapped |= members(scope, names, &clock);
            }
        }
    }
    if mapped && trace.clock_classes.is_empty() {
        trace.clock_classes.push(ClockClass::new(DEFAULT_CLOCK, 1_000_000_000));
    }
}

/// Maps those of a structure's members that have one of the names; false if there are none to map.
fn members(class: &mut StructureClass, names: &[&str], clock: &Arc<str>) -> bool {
    let members = class.members.iter_mut();
    members.fold(false, |mapped, member| field(Some(&member.name), &mut member.class, names, clock) | mapped)
}

fn field(name: Option<&str>, class: &mut FieldClass, names: &[&str], clock: &Arc<str>) -> bool {
    if !concerns(name, class, names) {
        return false;
    }
    match class {
        FieldClass::Integer(class) => class.mapped_clock = Some(clock.clone()),
        FieldClass::Enumeration(class) => Arc::make_mut(class).integer.mapped_clock = Some(clock.clone()),
        FieldClass::Structure(class) => return members(Arc::make_mut(class), names, clock),
        FieldClass::Variant(class) => {
            for option in &mut Arc::make_mut(class).options {
                field(Some(&option.name), &mut option.class, names, clock);
            }
        }
        _ => return false,
    }
    true
}

/// Whether there is anything to map, so that shared classes are copied only then.
fn concerns(name: Option<&str>, class: &FieldClass, names: &[&str]) -> bool {
    let leaf = |class: &IntegerClass| {
        !class.signed && class.mapped_clock.is_none() && name.is_some_and(|name| names.contains(&name))
    };
    match class {
        FieldClass::Integer(class) => leaf(class),
        FieldClass::Enumeration(class) => leaf(&class.integer),
        FieldClass::Structure(class) => {
            class.members.iter().any(|member| concerns(Some(&member.name), &member.class, names))
        }
        FieldClass::Variant(class) => {
            class.options.iter().any(|option| concerns(Some(&option.name), &option.class, names))
        }
        _ => false,
    }
}
