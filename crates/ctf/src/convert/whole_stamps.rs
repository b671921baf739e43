//! Event record headers with room for all of a stamp.

use std::sync::Arc;

use super::map::{Mapper, map_trace};
use super::places::Places;
use crate::Error;
use crate::model::{FieldClass, IntegerClass, Role, Scope, TraceClass};

/// The trace class with stamps of 64 bits in its event record headers, so that event records can be left out:
/// shorter stamps count from the event record before.
///
/// # Errors
///
/// None; the class is only gone through as for the conversions that have some.
pub fn with_whole_stamps(class: &TraceClass) -> Result<TraceClass, Error> {
    map_trace(class, &mut Widen)
}

struct Widen;

impl Mapper for Widen {
    fn class(&mut self, mut class: FieldClass, places: &Places<'_>) -> Result<FieldClass, Error> {
        let widen = |integer: &mut IntegerClass| {
            if places.scope == Scope::EventHeader && integer.roles.has(Role::DefaultClockTimestamp) {
                integer.size = 64;
            }
        };
        match &mut class {
            FieldClass::Integer(integer) => widen(integer),
            FieldClass::Enumeration(enumeration) => widen(&mut Arc::make_mut(enumeration).integer),
            _ => {}
        }
        Ok(class)
    }
}
