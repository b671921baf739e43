//! How a packet begins: header, context, and what they say of its sizes and its data stream.

use super::packet::{Packet, RoleValues};
use super::place::Place;
use super::reader::{State, Step, StreamReader};
use super::walk::Walk;
use crate::model::{Scope, Version};
use crate::write::PACKET_MAGIC;
use crate::{Error, PacketFault};
use tracewing_units::Cycles;

impl<B: AsRef<[u8]>> StreamReader<B> {
    pub(super) fn begin_packet(&mut self) -> Result<Step, Error> {
        let (offset, index) = self.packets.next;
        let data = self.window.data.as_ref();
        let from = offset.saturating_sub(self.window.base);
        if from >= data.len() as u64 {
            self.state = State::Done;
            return Ok(Step::End);
        }
        self.forget_packet(offset, index, from as usize);
        let data = &self.window.data.as_ref()[from as usize..];
        let available = data.len() as u64 * 8;
        let place = Place { index, offset };

        let mut walk = Walk::new(&self.decoder, data, available, &self.slots);
        let mut at = 0;
        if let Some(program) = &self.decoder.packet_header {
            self.starts[Scope::PacketHeader as usize] = at;
            at = walk
                .scope(program, at, &mut self.roles)
                .map_err(|fault| place.fault(*fault, "packet header"))?;
        }
        if let Some(magic) = self.roles.magic
            && magic != u64::from(PACKET_MAGIC)
        {
            return Err(place.error(0, PacketFault::Magic(magic)));
        }
        self.check_uuid(data, available, place)?;
        let stream = self.named_stream().map_err(|fault| place.error(at, fault))?;
        if let Some(first) = self.packets.stream.replace(stream)
            && first != stream
        {
            let classes = &self.decoder.trace_class().data_stream_classes;
            let (now, then) = (classes[stream].id, classes[first].id);
            return Err(place.error(at, PacketFault::OtherStream { now, then }));
        }
        let compiled = &self.decoder.streams[stream];
        if let Some(program) = &compiled.packet_context {
            self.starts[Scope::PacketContext as usize] = at;
            at = walk
                .scope(program, at, &mut self.roles)
                .map_err(|fault| place.fault(*fault, "packet context"))?;
        }

        let (content, size) = self.sizes(at, from).map_err(|fault| place.error(at, fault))?;
        let packet = &mut self.roles.packet;
        (packet.content_bits, packet.packet_bits) = (content, size);
        packet.data_stream_class = stream;
        packet.compare(self.packets.before.as_ref(), compiled.discarded_bits, compiled.sequence_bits);
        self.limit = content.min(available);
        self.at = at;
        self.packets.next = (offset.saturating_add(size / 8), index + 1);
        self.state = State::InPacket;
        Ok(Step::Packet)
    }

    /// Forgets what is known of the packet before. Until the next one is known to be good there is nothing to
    /// look at.
    fn forget_packet(&mut self, offset: u64, index: u64, from: usize) {
        self.limit = 0;
        self.window.from = from;
        let last = std::mem::replace(&mut self.roles.packet, Packet { offset, index, ..Packet::default() });
        if last.packet_bits > 0 && last.index != index {
            self.packets.before = Some(last);
        }
        self.roles = RoleValues {
            // A clock of CTF 2 begins anew with each packet (CTF2-SPEC-2.0, section 6.1).
            clock: match self.decoder.trace_class().version {
                Version::V1_8 => self.roles.clock,
                Version::V2 => Cycles::ZERO,
            },
            packet: std::mem::take(&mut self.roles.packet),
            ..RoleValues::default()
        };
    }

    /// The index of the data stream class that the packet's header names, or that needs no name.
    fn named_stream(&self) -> Result<usize, PacketFault> {
        let streams = self.decoder.trace_class().data_stream_classes.len();
        let stream = match self.roles.stream_id.or(self.decoder.default_id) {
            Some(id) => self.decoder.stream_ids.get(&id).copied(),
            None => Some(0).filter(|_| streams == 1),
        };
        stream.ok_or(match self.roles.stream_id {
            Some(id) => PacketFault::UnknownStream(id),
            None => PacketFault::NoStreamId { streams },
        })
    }

    /// The bits of the packet's content and of the packet, of which one can be missing, or both: then it
    /// reaches to the end of the data stream. Its header and context end at bit `heads`.
    fn sizes(&self, heads: u64, from: u64) -> Result<(u64, u64), PacketFault> {
        let (content, size) = match (self.roles.content_size, self.roles.packet_size) {
            (Some(content), Some(size)) => (content, size),
            (Some(content), None) => (content, content),
            (None, Some(size)) => (size, size),
            (None, None) => {
                let rest = self.window.rest.saturating_sub(from).saturating_mul(8);
                (rest, rest)
            }
        };
        if content > size {
            return Err(PacketFault::LargeContent { content, size });
        }
        if content < heads {
            return Err(PacketFault::SmallContent { content, heads });
        }
        if !size.is_multiple_of(8) || size == 0 {
            return Err(PacketFault::NotWholeBytes { size });
        }
        Ok((content, size))
    }

    /// Checks the UUID that the packet repeats, if it does.
    fn check_uuid(&self, data: &[u8], available: u64, place: Place) -> Result<(), Error> {
        let (Some(at), Some(uuid)) = (self.decoder.uuid_at, self.decoder.trace_class().uuid) else {
            return Ok(());
        };
        let found = data.get((at / 8) as usize..).and_then(|bytes| bytes.first_chunk::<16>());
        match found {
            Some(found) if at < available && *found != uuid => Err(place.error(at, PacketFault::Uuid)),
            _ => Ok(()),
        }
    }
}
