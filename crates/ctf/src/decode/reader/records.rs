//! Event records one by one: over those of fixed layout in a step, through all others field by field.

use super::{State, Step, StreamReader};
use crate::decode::compile::EventPrograms;
use crate::decode::event::{Event, LaidOut};
use crate::decode::fault::Fault;
use crate::decode::packet::ticked;
use crate::decode::place::Place;
use crate::decode::record::{MOST_PIECES, Record};
use crate::decode::unwalked::{Cursor, Unwalked};
use crate::decode::walk::Walk;
use crate::model::Scope;
use crate::{Error, FieldFault, PacketFault};

impl<B: AsRef<[u8]>> StreamReader<B> {
    #[inline]
    pub(super) fn event_record(&mut self) -> Result<Step, Error> {
        if self.unwalked_event_record() { Ok(Step::Event) } else { self.any_event_record() }
    }

    /// Steps over an event record that needs no walk; false, and at most `pieces` have changed, if it is not
    /// one or not all there.
    #[inline(always)]
    pub(super) fn unwalked_event_record(&mut self) -> bool {
        let stream = &self.decoder.streams[self.roles.packet.data_stream_class];
        let data = self.window.bytes();
        let mut cursor = Cursor { at: self.at, clock: self.roles.clock };
        let current = &mut self.current;
        let Some(record) = cursor.step(stream, data, self.limit, &mut current.pieces, &mut self.starts)
        else {
            return false;
        };
        (self.at, self.roles.clock, current.clock) = (cursor.at, cursor.clock, cursor.clock);
        current.event = record.stride.event as usize;
        current.is_unwalked = true;
        current.origin = record.origin;
        true
    }

    /// Shows the rest of the packet's event records to `each`, and ends it: the same as
    /// [`StreamReader::advance`] and [`StreamReader::event`] in turn up to [`Step::PacketEnd`], in less time.
    /// Nothing happens between packets.
    ///
    /// # Errors
    ///
    /// As [`StreamReader::advance`]; what comes before has been shown.
    #[inline]
    pub fn for_each_in_packet(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        if self.state != State::InPacket {
            return Ok(());
        }
        let decoder = self.decoder.clone();
        let class = self.roles.packet.data_stream_class;
        let stream = &decoder.streams[class];
        let mut cursor = Cursor { at: self.at, clock: self.roles.clock };
        let mut pieces = [0; MOST_PIECES];
        loop {
            let data = self.window.bytes();
            let (event, laid_out) = match cursor.step(stream, data, self.limit, &mut pieces, &mut self.starts)
            {
                Some(found) => {
                    let origin = found.origin;
                    let bytes = data.get((origin / 8) as usize..).unwrap_or_default();
                    let record = Record { bytes, pieces: &pieces };
                    let layout = found.stride.layout.as_deref();
                    let laid_out = layout.map(|layout| LaidOut { layout, origin, record });
                    (found.stride.event as usize, laid_out)
                }
                None => {
                    (self.at, self.roles.clock) = (cursor.at, cursor.clock);
                    let step = self.any_event_record();
                    if !matches!(step, Ok(Step::Event)) {
                        self.state = if step.is_err() { State::Done } else { self.state };
                        return step.map(|_| ());
                    }
                    cursor = Cursor { at: self.at, clock: self.roles.clock };
                    (self.current.event, None)
                }
            };
            each(Event {
                decoder: &decoder,
                stream: class,
                event,
                laid_out,
                clock: if laid_out.is_some() { cursor.clock } else { self.current.clock },
                end: cursor.at,
                starts: &self.starts,
                packet: (self.window.bytes(), self.limit),
                slots: &self.slots,
            });
        }
    }

    #[inline(never)]
    fn any_event_record(&mut self) -> Result<Step, Error> {
        let clock = self.roles.clock;
        let step = self.walk_event_record();
        if step.is_err() {
            // What is tried again begins with the clock that it began with.
            self.roles.clock = clock;
        }
        step
    }

    fn walk_event_record(&mut self) -> Result<Step, Error> {
        if self.at >= self.limit {
            return self.end_packet();
        }
        self.current.is_unwalked = false;
        let decoder = &*self.decoder;
        let stream = &decoder.streams[self.roles.packet.data_stream_class];
        let data = self.window.bytes();
        let mut walk = Walk::new(decoder, data, self.limit, &self.slots);
        let start = self.at;
        let mut at = start;
        self.roles.event_id = decoder.default_id;
        self.starts[Scope::EventHeader as usize] = at;
        if let Some((found, end)) = Unwalked::header(stream, data, (at, self.limit)) {
            self.roles.event_id = Some(found.id);
            self.roles.clock = ticked(self.roles.clock, found.stamp_mask, found.stamp);
            at = end;
        } else if let Some(program) = &stream.event_header {
            at = walk
                .scope(program, at, &mut self.roles)
                .map_err(|fault| self.fault(*fault, "event header"))?;
        }
        self.current.clock = self.roles.clock;
        let event = match self.roles.event_id {
            Some(id) => stream.event_by_id(id),
            None => Some(0).filter(|_| stream.events.len() == 1),
        };
        let Some(event) = event else { return Err(self.no_class(start)) };
        self.current.event = event;
        let EventPrograms { specific_context, payload, .. } = &stream.events[event];
        for (scope, program, what) in [
            (Scope::CommonContext, &stream.common_context, "event context"),
            (Scope::SpecificContext, specific_context, "event's own context"),
            (Scope::Payload, payload, "event payload"),
        ] {
            if let Some(program) = program {
                self.starts[scope as usize] = at;
                at = walk.scope(program, at, &mut self.roles).map_err(|fault| self.fault(*fault, what))?;
            }
        }
        if at == start {
            return Err(self.place().error(at, PacketFault::NoSize));
        }
        self.at = at;
        Ok(Step::Event)
    }

    fn end_packet(&mut self) -> Result<Step, Error> {
        let packet = &self.roles.packet;
        let rest = self.window.left();
        if packet.content_bits > self.limit || packet.packet_bits / 8 > rest {
            let (size, at) = (packet.packet_bits / 8, self.at);
            self.window.short.set(packet.content_bits > self.limit);
            return Err(self.place().error(at, PacketFault::CutShort { size, there: rest, part: None }));
        }
        // Stamps of fewer bits in the next packet count from here, should that have no beginning stamp.
        self.roles.clock = self.roles.clock.max(packet.end.unwrap_or_default());
        self.state = State::BetweenPackets;
        Ok(Step::PacketEnd)
    }

    fn place(&self) -> Place {
        Place { index: self.roles.packet.index, offset: self.roles.packet.offset }
    }

    #[cold]
    fn fault(&self, fault: Fault, part: &'static str) -> Error {
        let of_value =
            matches!(fault.fault, FieldFault::NoOption(_) | FieldFault::Mixed | FieldFault::Oversized);
        let cut = self.roles.packet.content_bits > self.limit && !of_value;
        if cut {
            self.window.short.set(true);
            let there = self.window.left();
            let size = self.roles.packet.packet_bits / 8;
            let part = Some(part);
            return self.place().error(fault.at, PacketFault::CutShort { size, there, part });
        }
        self.place().fault(fault, part)
    }

    #[cold]
    fn no_class(&self, at: u64) -> Error {
        let fault = self.roles.event_id.map_or(PacketFault::NoEventId, PacketFault::UnknownEvent);
        self.place().error(at, fault)
    }
}
