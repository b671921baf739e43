//! Streams that look random and are the same every time, and what a merge gives of them.

use crate::common::{Packet, tick};
use tracewing_ctf::index::{self, Entry};
use tracewing_trace::{Lost, Merge, Message};
use tracewing_units::Cycles;

/// Nanoseconds since the origin at cycle 0 of the traces here.
pub const ORIGIN: i64 = 1_795_235_140_123_456_789;

/// Numbers that look random and are the same every time.
pub struct Numbers(pub u64);

impl Numbers {
    /// Less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A stream file of up to 40 packets with gaps, equal beginnings, losses, events after the packet's end if
/// `is_late`, and its index.
pub fn stream(numbers: &mut Numbers, instance: u64, begin: u64, is_late: bool) -> (Vec<u8>, Vec<u8>) {
    let (mut bytes, mut index) = (Vec::new(), index::encode_header().to_vec());
    let (mut time, mut seq, mut discarded) = (begin, 0, 0);
    for _ in 0..5 + numbers.below(36) {
        let begin = time;
        let mut events = Vec::new();
        for _ in 0..numbers.below(5) {
            time += numbers.below(4) * 5;
            events.push(tick(time, (bytes.len() + events.len()) as u32));
        }
        // If there are late events, a third of the packets end before their last events, or before they
        // begin.
        let end =
            if is_late && numbers.below(3) == 0 { time.saturating_sub(numbers.below(30)) } else { time };
        seq += 1 + numbers.below(8) / 7;
        discarded += numbers.below(6) / 5;
        let packet = Packet { seq, discarded, ..Packet::new(1, instance, begin, end) };
        let packet = packet.bytes(&events);
        let bits = packet.len() as u64 * 8;
        let (packet_bits, offset) = (bits, bytes.len() as u64);
        let (begin, end) = (Cycles(begin), Cycles(end));
        index.extend(index::encode_entry(&Entry { offset, packet_bits, begin, end, ..Entry::default() }));
        bytes.extend(packet);
        time += numbers.below(3) * 10;
    }
    (bytes, index)
}

/// The stamps and streams of events, and the losses.
pub type Seen = (Vec<(i64, usize)>, Vec<Lost>);

pub fn rest(merge: &mut Merge<'_>) -> Seen {
    let (mut events, mut losses) = Seen::default();
    while let Some(message) = merge.advance().unwrap() {
        match message {
            Message::Event(event) => events.push((event.stamp().unwrap().time.as_ns(), event.stream_index())),
            Message::Lost(lost, ..) => losses.push(*lost),
        }
    }
    (events, losses)
}
