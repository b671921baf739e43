//! Offsets of the packets in a stream file, and up to when their events reach, so that reading can begin at
//! any time without reading everything before.
//!
//! An event between two packets, later than the first one's end stamp, belongs to the first: some tracers
//! stamp it so. Thus a packet reaches up to its own end or the next one's beginning, whichever is later, and
//! the last one without limit. A packet whose end lies before its beginning was left open by a crash, and
//! reaches to the next one's begin. Where packets overlap or do not come by time, all before have to be over:
//! the greatest reach so far counts.
//!
//! Source: Wisniewski and Rosenburg (K42), section 3.2, where events never cross boundaries of 128 KiB, and
//! tools begin reading at any of these. Packets have the same property at any size, so their places have to
//! be known.

use crate::stream::packet::PacketFile;
use crate::time::clock::Clock;
use tracewing_ctf::index::Entry;
use tracewing_units::Timestamp;

/// The packets of a stream file, from the first on.
#[derive(Debug, Default)]
pub(crate) struct PacketIndex {
    packets: Vec<Place>,
    /// Where the last one ends, in bytes.
    size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u64,
    /// In nanoseconds since the clock's origin, as all times here.
    begin: Timestamp,
    /// As the header says; not before `begin`.
    end: Timestamp,
    /// No event of this packet and of those before it is later.
    reach: Timestamp,
}

impl PacketIndex {
    /// From consecutive entries from the file's beginning, for a file of `size` bytes. `None` if they are not
    /// consecutive, or their stamps are invalid.
    pub(crate) fn new(entries: &[Entry], clock: &Clock, size: u64) -> Option<Self> {
        let mut packets = Vec::with_capacity(entries.len());
        let (mut offset, mut reach) = (0_u64, Timestamp::MIN);
        for entry in entries {
            let bytes = entry.packet_bits / 8;
            if entry.offset != offset || bytes == 0 || !entry.packet_bits.is_multiple_of(8) {
                return None;
            }
            let (begin, end) = (clock.time(entry.begin)?, clock.time(entry.end)?);
            reach = reach.max(begin);
            if let Some(Place { reach: last, .. }) = packets.last_mut() {
                *last = reach;
            }
            reach = reach.max(end);
            packets.push(Place { offset, begin, end: end.max(begin), reach: Timestamp::MAX });
            offset = offset.checked_add(bytes).filter(|end| *end <= size)?;
        }
        Some(PacketIndex { packets, size: offset })
    }

    /// The number of the first packet that may contain `time` or later; 0 if there are no packets.
    pub(crate) fn find(&self, time: Timestamp) -> usize {
        self.packets.partition_point(|packet| packet.reach < time)
    }

    /// When each packet begins, and at which byte.
    pub(crate) fn begins(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        self.packets.iter().map(|packet| (packet.begin, packet.offset))
    }

    /// When each packet begins and ends, and how many bytes it has.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp, u64)> {
        let ends = self.packets.iter().skip(1).map(|next| next.offset).chain([self.size]);
        let packets = self.packets.iter().zip(ends);
        packets.map(|(packet, end)| (packet.begin, packet.end, end - packet.offset))
    }

    /// Where a packet begins, in bytes; 0 where there are no packets.
    pub(crate) fn offset(&self, packet: usize) -> u64 {
        self.packets.get(packet).map_or(0, |packet| packet.offset)
    }

    /// Whether a packet's header in `file` agrees; true if there is no such packet.
    pub(crate) fn agrees(&self, packet: usize, file: &mut PacketFile) -> bool {
        let Some(place) = self.packets.get(packet) else { return true };
        file.seek(place.offset, packet as u64, 0);
        let next = self.packets.get(packet + 1).map(|next| next.offset);
        file.head().is_ok_and(|head| {
            head.is_some_and(|head| {
                head.begin_ns == Some(place.begin)
                    && next.is_none_or(|next| place.offset + head.bytes == next)
            })
        })
    }
}
