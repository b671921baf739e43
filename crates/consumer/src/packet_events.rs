//! The events in a packet: where each lies, its header, and the header that a first event has in its payload.
//!
//! The layouts are `tracewing_abi::event` and `tracewing_abi::first`. Any bytes give events that lie within
//! them, or none.

use std::ops::Range;

use tracewing_abi::event::{
    CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, SITE, extend_stamp, header_word, is_located,
};
use tracewing_abi::first::{self, DESCRIPTION, Key};
use tracewing_units::{Cycles, Pid, Tid};

/// An event's position in a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) id: u16,
    /// Bytes before the thread id.
    pub(crate) header: usize,
}

/// The header of a first event.
pub(crate) struct First {
    pub(crate) key: Key,
    /// [`DESCRIPTION`] if it describes the class.
    pub(crate) pid: Pid,
    /// Offset of its payload.
    pub(crate) payload: usize,
}

impl First {
    pub(crate) fn is_description(&self) -> bool {
        self.pid.as_unsigned() == DESCRIPTION
    }
}

/// The events of a packet, one after the other.
pub(crate) struct Walk<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl Iterator for Walk<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let at = self.at;
        let id = number(self.bytes, at + 4)?;
        let length = usize::from(number(self.bytes, at + 6)?);
        let (id, header) = match id {
            EXTENDED_ID => (number(self.bytes, at + HEADER + 8)?, EXTENDED_HEADER),
            id => (id, HEADER),
        };
        self.at = at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        (length >= header + CONTEXT).then_some(Event { at, length, id, header })
    }
}

impl Event {
    /// Its time, which is not before that of the event before it.
    pub(crate) fn stamp(self, bytes: &[u8], before: Cycles) -> Cycles {
        Cycles(match self.header {
            HEADER => {
                let low = u32::from_le_bytes(array(bytes, self.at).unwrap_or_default());
                extend_stamp(before.0, low)
            }
            _ => u64::from_le_bytes(array(bytes, self.at + HEADER).unwrap_or_default()),
        })
    }

    pub(crate) fn tid(self, bytes: &[u8]) -> Tid {
        let at = self.at + self.header;
        Tid(i32::from_le_bytes(array(bytes, at).unwrap_or_default()))
    }

    /// `None` if it is malformed.
    pub(crate) fn first(self, bytes: &[u8]) -> Option<First> {
        let at = self.at + self.header + CONTEXT;
        let word = |at| Some(u64::from_le_bytes(array(bytes, at)?));
        let payload = at + first::HEADER;
        let length = usize::from(number(bytes, payload - 2)?);
        let end = self.at + self.length;
        (payload + length == end).then_some(())?;
        let pid = Pid(i32::from_le_bytes(array(bytes, at + 16)?));
        Some(First { key: [word(at)?, word(at + 8)?], pid, payload })
    }

    /// Copies it to `to`, which is not after its own position, with another id and a payload that begins at
    /// least [`SITE`] bytes after its own begin; returns its end there.
    pub(crate) fn put(self, bytes: &mut [u8], to: usize, id: u16, payload: Range<usize>) -> usize {
        let head = self.header + CONTEXT;
        let site = if is_located(id) { SITE } else { 0 };
        let length = (head + site + payload.len()) as u16;
        bytes.copy_within(self.at..self.at + head, to);
        let id_at = if self.header == HEADER { to + 4 } else { to + HEADER + 8 };
        bytes[id_at..id_at + 2].copy_from_slice(&id.to_le_bytes());
        bytes[to + 6..to + 8].copy_from_slice(&length.to_le_bytes());
        bytes.copy_within(payload, to + head + site);
        bytes[to + head..to + head + site].fill(0); // not known
        to + usize::from(length)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The bytes of events of the class with this id at this time, each with its thread and payload; and how many
/// there are. Those that are too long are left out.
pub(crate) fn encode<P: AsRef<[u8]>>(
    at: Cycles,
    id: u16,
    own: impl Iterator<Item = (Tid, P)>,
) -> (Vec<u8>, u64) {
    let (mut events, mut count) = (Vec::new(), 0);
    for (tid, payload) in own {
        let payload = payload.as_ref();
        let Ok(length) = u16::try_from(HEADER + CONTEXT + payload.len()) else { continue };
        events.extend_from_slice(&header_word(at.0, id, length).to_le_bytes());
        events.extend_from_slice(&tid.0.to_le_bytes());
        events.extend_from_slice(payload);
        count += 1;
    }
    (events, count)
}
