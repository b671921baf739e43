//! Properties of a packet, and the losses in the gap before it.

use super::program::Role;
use super::sink::Sink;
use super::{Compound, Value};
use crate::model::Roles;
use tracewing_units::Cycles;

/// The current packet of a data stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packet {
    /// Index in the data stream, from 0.
    pub index: u64,
    /// Offset in the data stream, in bytes.
    pub offset: u64,
    /// Size in bits, padding included. The rest of the data stream, if the packet does not say.
    pub packet_bits: u64,
    /// Size of header, context and event records, in bits.
    pub content_bits: u64,
    /// Index of its data stream class in the trace class.
    pub data_stream_class: usize,
    /// Which data stream of that class it belongs to (`stream_instance_id`).
    pub stream_instance_id: Option<u64>,
    /// Begin stamp (`timestamp_begin`).
    pub begin: Option<Cycles>,
    /// End stamp (`timestamp_end`).
    pub end: Option<Cycles>,
    /// The data stream's counter of discarded events at the packet's end (`events_discarded`).
    pub discarded: Option<u64>,
    /// Packet sequence number (`packet_seq_num`).
    pub seq: Option<u64>,
    /// CPU (`cpu_id`).
    pub cpu_id: Option<u64>,
    /// Events that were lost between the end of the packet before and the end of this one.
    pub discarded_events: Option<Loss>,
    /// Packets that are missing between the one before and this one.
    pub discarded_packets: Option<Loss>,
}

/// Events or packets that the tracer reports as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// How many; unknown if the data stream begins with a counter above 0.
    pub count: Option<u64>,
    /// Not before this stamp.
    pub begin: Option<Cycles>,
    /// Not after this stamp.
    pub end: Option<Cycles>,
}

impl Packet {
    /// Computes the losses since the previous packet; the counters have these widths in bits.
    pub(super) fn compare(&mut self, before: Option<&Packet>, discarded_bits: u32, sequence_bits: u32) {
        let since = |now: u64, then: u64, bits: u32| now.wrapping_sub(then) & (u64::MAX >> (64 - bits));
        let before_end = before.and_then(|before| before.end);
        self.discarded_events = match (self.discarded, before.and_then(|before| before.discarded)) {
            (Some(now), Some(then)) => match since(now, then, discarded_bits) {
                0 => None,
                count => Some(Loss { count: Some(count), begin: before_end, end: self.end }),
            },
            (Some(1..), None) => Some(Loss { count: None, begin: self.begin, end: self.end }),
            _ => None,
        };
        self.discarded_packets = match (self.seq, before.and_then(|before| before.seq)) {
            (Some(now), Some(then)) => match since(now, then, sequence_bits) {
                0 | 1 => None,
                more => Some(Loss { count: Some(more - 1), begin: before_end, end: self.begin }),
            },
            _ => None,
        };
    }
}

/// Collects the fields of packet header, packet context and event records that the decoder itself needs.
#[derive(Debug, Default)]
pub(crate) struct RoleValues {
    /// The data stream's clock.
    pub(crate) clock: Cycles,
    pub(crate) magic: Option<u64>,
    pub(crate) stream_id: Option<u64>,
    pub(crate) packet_size: Option<u64>,
    pub(crate) content_size: Option<u64>,
    pub(crate) event_id: Option<u64>,
    pub(crate) packet: Packet,
}

impl RoleValues {
    /// Moves the clock to a stamp with only the low `size` bits known; it has wrapped at most once
    /// (specification 1.8.3, section 8).
    #[inline]
    fn tick(&mut self, size: u32, value: u64) {
        self.clock = ticked(self.clock, u64::MAX >> (64 - size), value);
    }

    #[cold]
    fn several(&mut self, roles: Roles, size: u32, value: u64) {
        // Only the packet context's roles can stand together with others.
        for role in roles.iter() {
            self.mark(Role::one(role, true, true), size, value);
        }
    }
}

/// A clock moved to a stamp with the bits of `mask` known; if `mask` is 0, it stays.
#[inline(always)]
pub(super) fn ticked(Cycles(clock): Cycles, mask: u64, value: u64) -> Cycles {
    let wraps = value < clock & mask;
    // At 64 bits nothing is left to carry into.
    let carry = if wraps { mask.wrapping_add(1) } else { 0 };
    Cycles((clock.wrapping_add(carry) & !mask) | value)
}

impl Sink for RoleValues {
    const SHOWS: bool = false;

    #[inline]
    fn mark(&mut self, role: Role, size: u32, value: u64) {
        match role {
            Role::None => {}
            Role::Clock => self.tick(size, value),
            Role::EventId => self.event_id = Some(value),
            Role::Magic => self.magic = Some(value),
            Role::StreamId => self.stream_id = Some(value),
            Role::StreamInstanceId => self.packet.stream_instance_id = Some(value),
            Role::PacketSize => self.packet_size = Some(value),
            Role::ContentSize => self.content_size = Some(value),
            Role::Begin(mapped) => {
                self.packet.begin = Some(Cycles(value));
                if mapped {
                    self.tick(size, value);
                }
            }
            Role::End => self.packet.end = Some(Cycles(value)),
            Role::Discarded => self.packet.discarded = Some(value),
            Role::Sequence => self.packet.seq = Some(value),
            Role::Cpu => self.packet.cpu_id = Some(value),
            Role::Several(roles) => self.several(roles, size, value),
        }
    }

    fn value(&mut self, _: Option<&str>, _: Value<'_>) {}
    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}
    fn end(&mut self, _: Compound<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_wrap_at_most_once() {
        let mut roles = RoleValues { clock: Cycles(0x1_ffff_fff0), ..RoleValues::default() };
        roles.tick(32, 0xffff_fff5);
        assert_eq!(roles.clock, Cycles(0x1_ffff_fff5));
        roles.tick(32, 0x10);
        assert_eq!(roles.clock, Cycles(0x2_0000_0010));
        roles.tick(27, 0x7ff_ffff);
        assert_eq!(roles.clock, Cycles(0x2_07ff_ffff));
        roles.tick(27, 0);
        assert_eq!(roles.clock, Cycles(0x2_0800_0000));
        roles.tick(64, 5);
        assert_eq!(roles.clock, Cycles(5));
        roles.clock = Cycles::MAX;
        roles.tick(1, 0);
        assert_eq!(roles.clock, Cycles(0));
    }

    #[test]
    fn losses_between_packets() {
        let at = |discarded, seq| Packet {
            discarded: Some(discarded),
            seq: Some(seq),
            begin: Some(Cycles(1)),
            end: Some(Cycles(2)),
            ..Packet::default()
        };
        let mut first = at(3, 7);
        first.compare(None, 32, 8);
        assert_eq!(
            first.discarded_events,
            Some(Loss { count: None, begin: Some(Cycles(1)), end: Some(Cycles(2)) })
        );
        assert_eq!(first.discarded_packets, None);
        let mut next = at(3, 8);
        next.compare(Some(&first), 32, 8);
        assert_eq!((next.discarded_events, next.discarded_packets), (None, None));
        // Both counters wrap.
        let (before, mut after) = (at(u64::from(u32::MAX), 255), at(1, 2));
        after.compare(Some(&before), 32, 8);
        assert_eq!(
            after.discarded_events,
            Some(Loss { count: Some(2), begin: Some(Cycles(2)), end: Some(Cycles(2)) })
        );
        assert_eq!(
            after.discarded_packets,
            Some(Loss { count: Some(2), begin: Some(Cycles(2)), end: Some(Cycles(1)) })
        );
    }
}
