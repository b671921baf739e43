//! Where a recorder can enter the copies of tracewing in a process: each of them has a note that says so
//! (`tracewing_abi::attach`).

use std::collections::BTreeMap;
use std::ops::Range;

use tracewing_abi::attach::{ENTRY_AT, LOADED_AT, NOTE_SIZE, NOTE_TYPE};
use tracewing_units::Timestamp;

use crate::image::{Image, Place, word};
use crate::notes::Notes;

/// Most copies in one process.
const MOST: usize = 64;

/// A copy of tracewing: of a program, a library or a plug-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is entered.
    pub address: u64,
    /// When its object was loaded, by `CLOCK_MONOTONIC`; `None` while it is not in use, or of a file.
    /// What the process says: any moment.
    pub loaded: Option<Timestamp>,
    /// The word that says so: its address and value. It is another one once the object is unloaded.
    pub word: Option<(u64, u64)>,
    /// Its object's index in the image.
    pub number: usize,
    /// Path of its object's file, if known.
    pub object: String,
    /// Where its object is.
    pub range: Range<u64>,
}

/// The entries of an image, in the order of their addresses.
pub fn entries(image: &dyn Image) -> Vec<Entry> {
    let mut entries = BTreeMap::new();
    for (number, object) in image.objects().iter().enumerate() {
        let begin = |at: u64| at.wrapping_add(object.bias);
        let loads = object.elf.loads.iter();
        let ends = loads.map(|load| (begin(load.address), begin(load.address.wrapping_add(load.in_memory))));
        let range = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or_default();
        let ours = Notes::of(image, number).ours;
        for note in ours.into_iter().filter(|note| note.kind == NOTE_TYPE && note.size == NOTE_SIZE) {
            let target = |at: usize| {
                let at = note.description.plus(at as u64);
                Some(Place { address: at.address.wrapping_add(word(image, at)?), ..at })
            };
            let Some(Place { address, .. }) = target(ENTRY_AT) else { continue };
            let word = target(LOADED_AT).and_then(|at| Some((at.address, word(image, at)?)));
            let word = word.filter(|(_, time)| *time != 0);
            let loaded = word.map(|(_, ns)| Timestamp::from_ns(ns.try_into().unwrap_or(i64::MAX)));
            let (object, range) = (object.name.clone(), range.0..range.1);
            entries.insert(address, Entry { address, loaded, word, number, object, range });
        }
    }
    entries.into_values().take(MOST).collect()
}
