//! What a program's memory says about its event classes (`tracewing_abi::class_table`).

use std::collections::BTreeMap;

use tracewing_abi::class_table::{self, HEADER};

use crate::image::{Image, Mapping};

/// Most bytes of a table that are looked at; a recording takes no more descriptions than that.
const MOST_BYTES: u32 = 64 << 20;

/// Descriptions of a recording's event classes, by id, as far as the program knew them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    by_id: BTreeMap<u16, Vec<u8>>,
}

impl Classes {
    /// The classes in all tables of an image that are for `recording`. A damaged table gives what precedes the damage.
    pub fn find(image: &dyn Image, recording: [u8; 16]) -> Self {
        let mut this = Self::default();
        image.mappings().iter().for_each(|mapping| {
            this.add(image, mapping, recording);
        });
        this
    }

    fn add(&mut self, image: &dyn Image, mapping: &Mapping, recording: [u8; 16]) -> Option<()> {
        let header = class_table::Header::decode(&image.read(mapping.start, HEADER)?).ok()?;
        if header.recording != recording || header.bytes > MOST_BYTES {
            return None;
        }
        let bytes = image.read(mapping.start.checked_add(HEADER as u64)?, header.bytes as usize)?;
        for (id, description) in class_table::entries(&bytes) {
            self.by_id.entry(id).or_insert_with(|| description.to_vec());
        }
        Some(())
    }

    /// Ids and descriptions (for [`ClassView::decode`](tracewing_abi::schema::ClassView::decode)), by id.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.by_id.iter().map(|(id, description)| (*id, description.as_slice()))
    }
}
