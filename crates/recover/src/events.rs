//! Consecutive events in a sub-buffer: found by their lengths, distinguished from garbage by lengths and
//! stamps. `tracewing_abi::event` defines the layout.

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, extend_stamp, split_header_word};
use tracewing_units::Cycles;

/// The position of an event, and the contents of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Offset of its first byte.
    pub at: usize,
    /// Total length in bytes.
    pub len: usize,
    /// Bytes before its context.
    pub header: usize,
    /// Class id, never 0.
    pub id: u16,
    /// Full time stamp.
    pub stamp: Cycles,
}

impl Event {
    /// Offset of its payload.
    pub fn payload(&self) -> usize {
        self.at + self.header + CONTEXT
    }

    /// Offset of the two bytes with the class id.
    pub fn id_at(&self) -> usize {
        if self.header == EXTENDED_HEADER { self.at + HEADER + 8 } else { self.at + 4 }
    }
}

/// Iterates over the events in `bytes`, up to the first implausible one; none is older than `begin` or
/// younger than `end`.
pub fn events(bytes: &[u8], begin: Cycles, end: Cycles) -> impl Iterator<Item = Event> {
    let (mut at, mut last) = (0, begin);
    std::iter::from_fn(move || {
        let event = event(bytes, at, last).filter(|event| event.stamp <= end)?;
        (at, last) = (at + event.len, event.stamp);
        Some(event)
    })
}

fn event(bytes: &[u8], at: usize, last: Cycles) -> Option<Event> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let (low, mut id, len) = split_header_word(word(at)?);
    let len = usize::from(len);
    let (header, stamp) = match id {
        EXTENDED_ID => (EXTENDED_HEADER, Cycles(word(at + HEADER)?)),
        _ => (HEADER, Cycles(extend_stamp(last.0, low))),
    };
    if len < header + CONTEXT || len > bytes.len() - at || stamp < last {
        return None;
    }
    if id == EXTENDED_ID {
        id = u16::from_le_bytes([bytes[at + HEADER + 8], bytes[at + HEADER + 9]]);
    }
    // 0 is not a class id: it occurs in zeroed memory, for instance.
    (id != 0).then_some(Event { at, len, header, id, stamp })
}
