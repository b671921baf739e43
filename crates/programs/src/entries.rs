//! Where a recorder can enter the copies of tracewing in a process: each of them has a note that says so
//! (`tracewing_abi::attach`).

use std::collections::BTreeSet;

use tracewing_abi::attach::{NOTE_SIZE, NOTE_TYPE};

use crate::image::{Image, word};
use crate::notes::Notes;

/// Most copies in one process.
const MOST: usize = 64;

/// The entries of an image: an address for each program, library and plug-in that has one.
pub fn entries(image: &dyn Image) -> Vec<u64> {
    let mut entries = BTreeSet::new();
    for object in 0..image.objects().len() {
        let ours = Notes::of(image, object).ours;
        for note in ours.into_iter().filter(|note| note.kind == NOTE_TYPE && note.size == NOTE_SIZE) {
            entries.extend(word(image, note.description).map(|far| note.description.plus(far).address));
        }
    }
    entries.into_iter().take(MOST).collect()
}
