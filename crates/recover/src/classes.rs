//! Descriptions of event classes in a program's memory (`tracewing_abi::class_table`).

use std::collections::BTreeMap;

use tracewing_abi::class_table::{self, HEADER};
use tracewing_abi::first::{self, DESCRIPTION, Key};
use tracewing_abi::schema::ClassView;
use tracewing_programs::image::{AddressSpace, Mapping};

use crate::buffer::Buffer;
use crate::mappings::candidates;

/// Maximum size of a table, bytes; a recording accepts no more descriptions than that.
const MOST_BYTES: u32 = 64 << 20;

/// Descriptions of a recording's event classes by id, as far as the program knew them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    by_id: BTreeMap<u16, Vec<u8>>,
    /// Id of the class of first events, which contain events of classes without ids.
    first: Option<u16>,
    /// Classes that are described in buffers, by key.
    by_key: BTreeMap<Key, Vec<u8>>,
    bytes: usize,
}

/// The contents of a first event (`tracewing_abi::first`).
pub(crate) struct First<'a> {
    pub(crate) key: Key,
    pub(crate) is_description: bool,
    pub(crate) payload: &'a [u8],
}

impl<'a> First<'a> {
    /// Decodes a payload; `None` if it is malformed.
    pub(crate) fn of(payload: &'a [u8]) -> Option<Self> {
        let (header, payload) = payload.split_first_chunk::<{ first::HEADER }>()?;
        let word = |at| u64::from_le_bytes(*header[at..].first_chunk().unwrap_or(&[0; 8]));
        let process = u32::from_le_bytes(*header[16..].first_chunk().unwrap_or(&[0; 4]));
        let length = u16::from_le_bytes([header[20], header[21]]);
        let is_whole = usize::from(length) == payload.len();
        is_whole.then(|| Self { key: [word(0), word(8)], is_description: process == DESCRIPTION, payload })
    }
}

impl Classes {
    /// The classes in all tables of a memory that belong to `recording`. A damaged table yields the entries
    /// before the damage.
    pub fn find(space: &dyn AddressSpace, recording: [u8; 16]) -> Self {
        let mut this = Self::default();
        candidates(space).for_each(|mapping| {
            this.add(space, mapping, recording);
        });
        let is_first = |description: &Vec<u8>| {
            ClassView::decode(description).is_ok_and(|class| class.name == first::NAME)
        };
        this.first = this.by_id.iter().find(|(_, description)| is_first(description)).map(|(id, _)| *id);
        this
    }

    /// Adds the classes that are described in a buffer.
    pub(crate) fn learn(&mut self, buffer: &Buffer<'_>) {
        let Some(first) = self.first else { return };
        for sub_buffer in buffer.sub_buffers().flatten() {
            for event in sub_buffer.events().filter(|event| event.id == first) {
                let payload = &sub_buffer.bytes[event.payload()..event.at + event.len];
                let Some(First { key, is_description: true, payload }) = First::of(payload) else { continue };
                let has_room = self.bytes + payload.len() <= MOST_BYTES as usize;
                if has_room && !self.by_key.contains_key(&key) && first::key(payload) == key {
                    self.bytes += payload.len();
                    self.by_key.insert(key, payload.to_vec());
                }
            }
        }
    }

    /// The id of the class of first events.
    pub(crate) fn first(&self) -> Option<u16> {
        self.first
    }

    /// Descriptions of classes without ids, with their keys.
    pub(crate) fn described(&self) -> impl Iterator<Item = (Key, &[u8])> {
        self.by_key.iter().map(|(key, description)| (*key, description.as_slice()))
    }

    fn add(&mut self, space: &dyn AddressSpace, mapping: &Mapping, recording: [u8; 16]) -> Option<()> {
        let header = class_table::Header::decode(&space.read(mapping.start, HEADER)?).ok()?;
        if header.recording != recording || header.bytes > MOST_BYTES {
            return None;
        }
        let bytes = space.read(mapping.start.checked_add(HEADER as u64)?, header.bytes as usize)?;
        for (id, description) in class_table::entries(&bytes) {
            self.by_id.entry(id).or_insert_with(|| description.to_vec());
        }
        Some(())
    }

    /// Ids and descriptions (for [`ClassView::decode`]), sorted by id. The class of first events is left out:
    /// a trace has none.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let classes = self.by_id.iter().filter(|(id, _)| Some(**id) != self.first);
        classes.map(|(id, description)| (*id, description.as_slice()))
    }
}
