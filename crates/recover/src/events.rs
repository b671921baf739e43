//! Events as they lie in a sub-buffer, one behind the other: found by their lengths, told from garbage by
//! lengths and stamps. The layout is `tracewing_abi::event`'s.

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, extend_stamp, split_header_word};

/// Where an event lies, and what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Offset of its first byte.
    pub at: usize,
    /// Bytes in all.
    pub len: usize,
    /// Bytes before its context.
    pub header: usize,
    /// The class's id.
    pub id: u16,
    /// Full time stamp.
    pub stamp: u64,
}

impl Event {
    /// Offset of its payload.
    pub fn payload(&self) -> usize {
        self.at + self.header + CONTEXT
    }

    /// Offset of the two bytes with its class's id.
    pub fn id_at(&self) -> usize {
        if self.header == EXTENDED_HEADER { self.at + HEADER + 8 } else { self.at + 4 }
    }
}

/// Walks over the events in `bytes`, of which none may be older than `begin` or younger than `end`, up to the
/// first that makes no sense.
pub fn events(bytes: &[u8], begin: u64, end: u64) -> impl Iterator<Item = Event> {
    let (mut at, mut last) = (0, begin);
    std::iter::from_fn(move || {
        let event = event(bytes, at, last).filter(|event| event.stamp <= end)?;
        (at, last) = (at + event.len, event.stamp);
        Some(event)
    })
}

fn event(bytes: &[u8], at: usize, last: u64) -> Option<Event> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let (low, mut id, len) = split_header_word(word(at)?);
    let len = usize::from(len);
    let (header, stamp) = match id {
        EXTENDED_ID => (EXTENDED_HEADER, word(at + HEADER)?),
        _ => (HEADER, extend_stamp(last, low)),
    };
    if len < header + CONTEXT || len > bytes.len() - at || stamp < last {
        return None;
    }
    if id == EXTENDED_ID {
        id = u16::from_le_bytes([bytes[at + HEADER + 8], bytes[at + HEADER + 9]]);
    }
    // 0 is no class: zeroed memory, for one.
    (id != 0).then_some(Event { at, len, header, id, stamp })
}
