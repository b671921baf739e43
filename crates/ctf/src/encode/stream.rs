//! Writes a data stream: packet after packet, event record after event record.

use std::sync::Arc;

use super::bits;
use super::body::{Body, Later};
use super::known::{Known, NOTHING, low_bits};
use super::scope::ScopeWriter;
use super::{Fields, candidates, leb128};
use crate::decode::Decoder;
use crate::decode::packet::RoleValues;
use crate::decode::program::Role;
use crate::model::{DataStreamClass, Scope, Version};
use crate::{Error, ValueFault};
use tracewing_units::Cycles;

/// What a packet is begun with. What the class has a field for is written there, as much of it as there is
/// room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketStart {
    /// Which data stream of its class it belongs to.
    pub stream_instance_id: Option<u64>,
    /// Begin stamp.
    pub begin: Option<Cycles>,
    /// Packet sequence number.
    pub seq: Option<u64>,
}

/// What a packet is ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketEnd {
    /// End stamp; the last event record's if `None`.
    pub end: Option<Cycles>,
    /// The data stream's counter of discarded event records.
    pub discarded: u64,
    /// Least size of the packet in bytes: what is missing is filled with zeros.
    pub least_bytes: usize,
}

/// Writes the packets of one data stream into memory, from where the caller takes them.
#[derive(Debug)]
pub struct StreamWriter {
    classes: Arc<Decoder>,
    /// Index of the data stream class.
    stream: usize,
    packet_bytes: usize,
    body: Body,
    /// Whether a packet is open, and the event records in it.
    open: Option<u64>,
    /// Packets so far.
    packets: u64,
    finished: Vec<u8>,
}

impl StreamWriter {
    /// A writer of a data stream of the class with this index in the trace class.
    ///
    /// # Panics
    ///
    /// If there is no class with this index.
    pub fn new(classes: Arc<Decoder>, stream: usize) -> Self {
        assert!(stream < classes.streams.len(), "no data stream class has the index {stream}");
        StreamWriter {
            body: Body::new(classes.slots),
            classes,
            stream,
            packet_bytes: usize::MAX,
            open: None,
            packets: 0,
            finished: Vec::new(),
        }
    }

    /// Has [`StreamWriter::event`] say that a packet is full before it would become larger than `bytes`.
    #[must_use]
    pub fn with_packet_bytes(mut self, bytes: usize) -> Self {
        self.packet_bytes = bytes;
        self
    }

    /// Begins a packet. `fields` gives what in its header and context the writer does not know: anything but
    /// sizes, stamps, ids, counters and the UUID.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a field is missing or does not fit its class, or the class has no packet sizes and
    /// so no more than one packet.
    ///
    /// # Panics
    ///
    /// If the packet before has not been ended.
    pub fn begin_packet(&mut self, start: &PacketStart, fields: &impl Fields) -> Result<(), Error> {
        assert!(self.open.is_none(), "the packet before has to be ended first");
        let class = self.class();
        let known = Known {
            header: true,
            in_packet: true,
            uuid: self.classes.uuid_at.zip(self.classes.trace_class().uuid),
            stream_id: Some(class.id),
            instance_id: start.stream_instance_id,
            begin: start.begin,
            seq: start.seq,
            ..Known::default()
        };
        let clock = match self.classes.trace_class().version {
            Version::V1_8 => self.body.roles.clock,
            // It begins anew for readers of the packet.
            Version::V2 => Cycles::ZERO,
        };
        self.body.bytes.clear();
        self.body.at = 0;
        self.body.later.clear();
        self.body.roles = RoleValues { clock, ..RoleValues::default() };
        for scope in [Scope::PacketHeader, Scope::PacketContext] {
            self.scope(0, scope, &known, Some(fields))?;
        }
        let sized = |role| self.body.later.iter().any(|later| later.role == role);
        if self.packets > 0 && !sized(Role::PacketSize) && !sized(Role::ContentSize) {
            return Err(self.error(Scope::PacketContext, 0, "", ValueFault::OnePacket));
        }
        self.open = Some(0);
        Ok(())
    }

    /// Writes an event record of the class with this index in the data stream class. Returns `false`, and
    /// writes nothing, if a packet that is not empty would become too large; then end the packet and begin
    /// another.
    ///
    /// If `fields` has no field of the event record's header, the writer generates it from the class's id
    /// and `stamp` (of the data stream's clock), in a form that expresses both.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a field is missing or does not fit its class, the header cannot express id and
    /// stamp, or the record would have no size. Nothing is written then.
    ///
    /// # Panics
    ///
    /// If no packet is open, or there is no class with this index.
    pub fn event(
        &mut self,
        event: usize,
        stamp: Option<Cycles>,
        fields: &impl Fields,
    ) -> Result<bool, Error> {
        let Some(events) = self.open else { panic!("an event record needs an open packet") };
        let mark = self.body.mark();
        let written = self.event_header(event, stamp, fields).and_then(|()| {
            for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
                self.scope(event, scope, &NOTHING, Some(fields))?;
            }
            if self.body.at == mark.at {
                return Err(self.error(Scope::Payload, event, "", ValueFault::NoSize));
            }
            Ok(())
        });
        let full = events > 0 && self.body.bytes.len() > self.packet_bytes;
        if written.is_err() || full {
            self.body.back_to(&mark);
            return written.map(|()| false);
        }
        self.open = Some(events + 1);
        Ok(true)
    }

    /// Ends the packet: sizes, end stamp and counter are filled in, and it can be taken.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a size does not fit its field, or the class cannot distinguish padding from event
    /// records. The packet is dropped then.
    ///
    /// # Panics
    ///
    /// If no packet is open.
    pub fn end_packet(&mut self, end: &PacketEnd) -> Result<(), Error> {
        assert!(self.open.take().is_some(), "a packet has to be begun first");
        let content = self.body.at;
        let bytes = self.body.bytes.len().max(end.least_bytes);
        let size = bytes as u64 * 8;
        let later = std::mem::take(&mut self.body.later);
        let has = |role| later.iter().any(|later| later.role == role);
        if content != size && !has(Role::ContentSize) {
            return Err(self.error(Scope::PacketContext, 0, "", ValueFault::Padding));
        }
        self.body.bytes.resize(bytes, 0);
        let end_stamp = end.end.unwrap_or(self.body.roles.clock).0;
        for Later { role, at, integer, variable } in &later {
            let value = match role {
                Role::PacketSize => size,
                Role::ContentSize => content,
                Role::End if !variable => low_bits(end_stamp, integer),
                Role::End => end_stamp,
                _ if !variable => low_bits(end.discarded, integer),
                _ => end.discarded,
            };
            if *role == Role::End {
                // Stamps of fewer bits in the next packet count from here.
                self.body.roles.clock = self.body.roles.clock.max(Cycles(value));
            }
            if *variable {
                let place = (*at / 8) as usize;
                self.body.bytes[place..place + leb128::MOST].copy_from_slice(&leb128::longest(value));
                continue;
            }
            if value != low_bits(value, integer) {
                let fault = ValueFault::LargePacket { packet: value, bits: integer.size };
                return Err(self.error(Scope::PacketContext, 0, "", fault));
            }
            let value = if integer.reversed { bits::reversed(value, integer.size) } else { value };
            let bytes = &mut self.body.bytes;
            bits::put(bytes, *at, integer.size, integer.order, value);
        }
        self.packets += 1;
        self.finished.extend_from_slice(&self.body.bytes);
        Ok(())
    }

    /// The packets that were ended and not taken yet.
    pub fn bytes(&self) -> &[u8] {
        &self.finished
    }

    /// Takes the packets that were ended.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.finished)
    }

    /// Forgets the packets that were ended, once they are written elsewhere; their memory is used again.
    pub fn clear(&mut self) {
        self.finished.clear();
    }

    /// Writes the header in a way in which a reader gets `stamp` and the class's id from it.
    fn event_header(
        &mut self,
        event: usize,
        stamp: Option<Cycles>,
        fields: &impl Fields,
    ) -> Result<(), Error> {
        let id = self.class().event_record_classes[event].id;
        let mark = self.body.mark();
        let mut known =
            Known { header: true, clock: stamp, event_id: Some(id), form: Some(id), ..Known::default() };
        let given = self.scope(event, Scope::EventHeader, &known, Some(fields));
        if given.is_ok() && self.expresses(id, stamp) {
            return Ok(());
        }
        let program = self.classes.program(self.stream, event, Scope::EventHeader);
        let forms = program.map_or_else(Vec::new, |program| candidates(program, id));
        for form in forms {
            self.body.back_to(&mark);
            known.form = Some(form);
            if self.scope(event, Scope::EventHeader, &known, None::<&super::Record>).is_ok()
                && self.expresses(id, stamp)
            {
                return Ok(());
            }
        }
        given?;
        Err(self.error(Scope::EventHeader, event, "", ValueFault::NoHeader { id, stamp }))
    }

    /// Whether a reader would get this id and stamp from the header as written.
    fn expresses(&self, id: u64, stamp: Option<Cycles>) -> bool {
        let roles = &self.body.roles;
        roles.event_id.is_none_or(|read| read == id) && stamp.is_none_or(|stamp| stamp == roles.clock)
    }

    fn scope(
        &mut self,
        event: usize,
        scope: Scope,
        known: &Known,
        fields: Option<&impl Fields>,
    ) -> Result<bool, Error> {
        let Some(program) = self.classes.program(self.stream, event, scope) else { return Ok(false) };
        let mut writer = ScopeWriter::new(&mut self.body, program, known);
        if let Some(fields) = fields {
            fields.show(scope, &mut writer);
        }
        let given = writer.given;
        match writer.finish() {
            Ok(()) => Ok(given),
            Err(fault) => Err(self.error(scope, event, &fault.0, fault.1)),
        }
    }

    fn class(&self) -> &DataStreamClass {
        &self.classes.trace_class().data_stream_classes[self.stream]
    }

    #[cold]
    fn error(&self, scope: Scope, event: usize, field: &str, fault: ValueFault) -> Error {
        let class = self.class();
        let name = class.event_record_classes.get(event).and_then(|event| event.name.as_deref());
        let name = name.unwrap_or_default();
        let what = match scope {
            Scope::PacketHeader => "packet header".to_owned(),
            Scope::PacketContext => format!("stream {}, packet context", class.id),
            Scope::EventHeader => format!("event \"{name}\", header"),
            Scope::CommonContext => format!("event \"{name}\", context"),
            Scope::SpecificContext => format!("event \"{name}\", own context"),
            Scope::Payload => format!("event \"{name}\""),
        };
        let place = if field.is_empty() { what } else { format!("{what}, field `{field}`") };
        Error::Value { place, fault: Box::new(fault) }
    }
}
