//! What the header and the context of a packet say.

use super::{Cut, PacketFile};
use crate::time::clock::Clock;
use crate::{Error, StreamFault};
use tracewing_ctf::decode::Packet;
use tracewing_ctf::model::{DataStreamClass, Role, TraceClass};
use tracewing_units::{Cycles, Timestamp};

/// What a packet's header and context say. Stamps are in nanoseconds since the clock's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHead {
    pub(crate) class_id: u64,
    pub(crate) instance_id: Option<u64>,
    pub(crate) begin_ns: Option<Timestamp>,
    /// Not before `begin_ns`.
    pub(crate) end_ns: Option<Timestamp>,
    /// Events lost in the stream so far.
    pub(crate) discarded: Option<Counter>,
    pub(crate) sequence: Option<Counter>,
    pub(crate) cpu: Option<u64>,
    pub(crate) bytes: u64,
}

/// A counter that may wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) value: u64,
    /// Its size in bits, 1 to 64.
    pub(crate) bits: u32,
}

impl Counter {
    /// One of the same size.
    pub(crate) fn with(self, value: u64) -> Self {
        Counter { value, ..self }
    }

    /// The increase since `before`; `None` if it went back, as it does if packets are not in the order in
    /// which they were written. An increase of more than half of the counter's range is a step back; any
    /// other value below `before` has wrapped.
    pub(crate) fn since(self, before: Counter) -> Option<u64> {
        let most = u64::MAX >> (64 - self.bits.clamp(1, 64));
        Some(self.value.wrapping_sub(before.value) & most).filter(|step| *step <= most / 2)
    }
}

impl PacketFile {
    /// Collects what the header says. A packet that the file does not hold to its end has the bytes that
    /// there are, and ends with an error.
    pub(super) fn note(
        &mut self,
        class: &DataStreamClass,
        packet: &Packet,
        rest: u64,
    ) -> Result<PacketHead, Error> {
        let class_id = class.id;
        let claimed = packet.packet_bits.div_ceil(8);
        let bytes = claimed.min(rest);
        self.cut = (claimed > rest).then_some(Cut { claimed, rest });
        if bytes == 0 {
            return Err(self.error(StreamFault::NoSize { packet: self.index }));
        }
        let clock = match self.clock {
            Some((id, clock)) if id == class_id => clock,
            _ => {
                let clock = self.find_clock(class)?;
                self.clock = Some((class_id, clock));
                clock
            }
        };
        let time = |cycles: Option<Cycles>| match (cycles, clock) {
            (Some(cycles), Some(clock)) => clock
                .time(cycles)
                .map(Some)
                .ok_or_else(|| self.error(StreamFault::PacketStamp { packet: self.index, stamp: cycles })),
            _ => Ok(None),
        };
        let (begin_ns, end_ns) = (time(packet.begin)?, time(packet.end)?);
        // Left open by a crash, or wrong.
        let ends = end_ns >= begin_ns;
        if !ends && end_ns.is_some() {
            self.remarks.remark(|| {
                let (path, packet, offset) = (self.path.display(), self.index, self.offset);
                format!(
                    "{path}: packet {packet} at byte {offset} ends before it begins: its end, and so the time of \
                     events lost in it, is unknown"
                )
            });
        }
        Ok(PacketHead {
            class_id,
            instance_id: packet.stream_instance_id,
            begin_ns,
            end_ns: end_ns.filter(|_| ends),
            discarded: packet
                .discarded
                .map(|value| Counter { value, bits: bits(class, Role::DiscardedEventRecordCounterSnapshot) }),
            sequence: packet
                .seq
                .map(|value| Counter { value, bits: bits(class, Role::PacketSequenceNumber) }),
            cpu: packet.cpu_id,
            bytes,
        })
    }

    /// The clock of a data stream class: the one that any of its stamps is mapped to.
    fn find_clock(&self, class: &DataStreamClass) -> Result<Option<Clock>, Error> {
        let trace = self.decoder.trace_class();
        let Some(name) = &class.default_clock else { return Ok(None) };
        let Some(class) = TraceClass::clock_class(trace, name) else { return Ok(None) };
        match Clock::new(class) {
            Some(clock) => Ok(Some(clock)),
            None => Err(self.error(StreamFault::ClockOffset(name.clone()))),
        }
    }
}

/// Whether packets of the class say how long they are.
pub(crate) fn has_size(class: &DataStreamClass) -> bool {
    let sizes = [Role::PacketTotalLength, Role::PacketContentLength];
    sizes.into_iter().any(|role| class.packet_context_bits(role).is_some())
}

/// The size in bits of the packet context's integer with this role.
fn bits(class: &DataStreamClass, role: Role) -> u32 {
    class.packet_context_bits(role).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::Counter;

    #[test]
    fn counters_wrap_but_do_not_go_back() {
        let since = |value, before, bits| Counter { value, bits }.since(Counter { value: before, bits });
        assert_eq!(since(9, 5, 64), Some(4));
        assert_eq!(since(5, 5, 64), Some(0));
        assert_eq!(since(5, 9, 64), None);
        assert_eq!(since(2, 254, 8), Some(4));
        assert_eq!(since(254, 2, 8), None);
        assert_eq!(since(1, u32::MAX.into(), 32), Some(2));
    }
}
