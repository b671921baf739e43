//! Events that prove themselves: the payload follows from writer and counter, so a torn or mixed one is
//! noticed.

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, extend_stamp, split_header_word};
use tracewing_ring::Chunk;

use crate::machine::Random;

/// Smallest payload: writer and counter.
pub const SMALLEST: usize = 8;
/// Largest payload that tests write.
pub const LARGEST: usize = 4096;

/// Largest payload of a [`Plan`]; it suits every geometry.
pub const MOST_PLANNED: usize = 106;

/// Writers with this bit write only large events: two per sub-buffer of 256 bytes.
pub const LARGE: u32 = 1 << 30;
/// Writers with this bit stay with one buffer.
pub const PINNED: u32 = 1 << 29;

/// The form of an event; follows from writer and counter.
pub struct Plan {
    /// Class id.
    pub id: u16,
    /// Bytes of payload.
    pub len: usize,
    /// Source of all further decisions.
    pub random: Random,
}

/// The plan for number `counter` of `writer`.
pub fn plan(writer: u32, counter: u32) -> Plan {
    let mut random = Random(u64::from(counter) * 7 + u64::from(writer));
    let is_large = writer & LARGE != 0;
    let id = if is_large { 5 + random.below(5) } else { 1 + random.below(8) };
    let len = match id {
        1 => 8,
        2 => 16,
        3 => 31,
        4 => 100,
        9 => 64,
        // At most two per sub-buffer of 256 bytes; two even in the extended form.
        _ if is_large => 53 + random.below(28),
        _ => SMALLEST + random.below(MOST_PLANNED + 1 - SMALLEST),
    };
    Plan { id: id as u16, len, random }
}

/// Bytes of an event in the compact form.
pub fn compact(payload: usize) -> usize {
    HEADER + CONTEXT + payload
}

/// The `LEN` bytes that `writer` writes as number `counter`.
pub fn payload<const LEN: usize>(writer: u32, counter: u32) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    fill(&mut bytes, writer, counter);
    bytes
}

/// As [`payload`], in place.
pub fn fill(bytes: &mut [u8], writer: u32, counter: u32) {
    let pattern = Random(u64::from(writer) << 32 | u64::from(counter)).next().to_le_bytes();
    bytes[..4].copy_from_slice(&writer.to_le_bytes());
    bytes[4..8].copy_from_slice(&counter.to_le_bytes());
    for (i, byte) in bytes.iter_mut().enumerate().skip(8) {
        *byte = pattern[i % 8] ^ i as u8;
    }
}

/// An event as it was read, its payload checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Full time stamp.
    pub stamp: u64,
    /// Class id.
    pub id: u16,
    /// Thread id.
    pub tid: i32,
    /// The writer's number.
    pub writer: u32,
    /// The event's number in that writer's sequence.
    pub counter: u32,
    /// Whether it has the extended form.
    pub extended: bool,
    /// Bytes of payload.
    pub len: usize,
}

/// The events of a chunk.
///
/// # Panics
/// An event differs in any way from what its writer meant.
pub fn decode(chunk: &Chunk) -> Vec<Event> {
    // SAFETY: the chunk is not released yet, and its writers are well-behaved: no thread changes its bytes.
    let mut bytes = unsafe { std::slice::from_raw_parts(chunk.bytes().as_ptr(), chunk.bytes().len()) };
    let (mut events, mut last) = (Vec::new(), chunk.begin.0);
    while !bytes.is_empty() {
        let word = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let (low, mut id, length) = split_header_word(word);
        let (event, rest) = bytes.split_at(usize::from(length));
        let extended = id == EXTENDED_ID;
        let mut stamp = extend_stamp(last, low);
        let mut header = HEADER;
        if extended {
            stamp = u64::from_le_bytes(event[8..16].try_into().unwrap());
            assert_eq!(stamp as u32, low, "both halves of an extended stamp");
            id = u16::from_le_bytes(event[16..18].try_into().unwrap());
            header = EXTENDED_HEADER;
        }
        assert!((last..=chunk.end.0).contains(&stamp), "stamp {stamp} outside {last} to {:?}", chunk.end);
        let tid = i32::from_le_bytes(event[header..header + CONTEXT].try_into().unwrap());
        let data = &event[header + CONTEXT..];
        let writer = u32::from_le_bytes(data[..4].try_into().unwrap());
        let counter = u32::from_le_bytes(data[4..8].try_into().unwrap());
        let mut expected = [0; LARGEST];
        fill(&mut expected[..data.len()], writer, counter);
        assert_eq!(data, &expected[..data.len()], "payload of event {counter} of writer {writer}");
        events.push(Event { stamp, id, tid, writer, counter, extended, len: data.len() });
        (bytes, last) = (rest, stamp);
    }
    events
}
