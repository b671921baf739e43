//! Stamps with room for all of a clock's value.

use std::sync::Arc;

use super::map::{Mapper, map_trace};
use super::places::Places;
use crate::Error;
use crate::model::{DataStreamClass, FieldClass, IntegerClass, Role, Scope, TraceClass};

/// The trace class with stamps of 64 bits in its event record headers and packet contexts, so that event
/// records can be left out: shorter stamps count from the ones before.
///
/// # Errors
///
/// None; the class is only gone through as for the conversions that have some.
pub fn with_whole_stamps(class: &TraceClass) -> Result<TraceClass, Error> {
    let streams = vec![true; class.data_stream_classes.len()];
    map_trace(class, &mut Widen { streams, is_here: false })
}

/// The same of the data streams whose packets do not set the clock by a begin stamp of 64 bits: what shorter
/// stamps mean then depends on the packets before in CTF 1.8, and on the packet alone in CTF 2.
///
/// # Errors
///
/// As of [`with_whole_stamps`].
pub fn with_independent_packets(class: &TraceClass) -> Result<TraceClass, Error> {
    let runs_on = |stream: &DataStreamClass| {
        stream.packet_context_bits(Role::DefaultClockTimestamp).is_none_or(|bits| bits < 64)
    };
    let streams = class.data_stream_classes.iter().map(runs_on).collect();
    map_trace(class, &mut Widen { streams, is_here: false })
}

struct Widen {
    /// By index of the data stream class: whether its stamps become longer.
    streams: Vec<bool>,
    /// Whether those of the current one do.
    is_here: bool,
}

impl Mapper for Widen {
    fn enter(&mut self, stream: Option<usize>, _: Option<usize>) {
        self.is_here = stream.is_some_and(|stream| self.streams[stream]);
    }

    fn class(&mut self, mut class: FieldClass, places: &Places<'_>) -> Result<FieldClass, Error> {
        let is_here = self.is_here && [Scope::PacketContext, Scope::EventHeader].contains(&places.scope);
        let widen = |integer: &mut IntegerClass| {
            let stamps = [Role::DefaultClockTimestamp, Role::PacketEndDefaultClockTimestamp];
            if is_here && stamps.into_iter().any(|role| integer.roles.has(role)) {
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
