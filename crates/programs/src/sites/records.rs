//! Where an object's site records are, from its ELF notes (`tracewing_abi::site`).

use tracewing_abi::attach;
use tracewing_abi::site::{NOTE_SIZE, NOTE_TYPE, Record};

use crate::image::{Image, Place, word};
use crate::notes::Notes;

/// The locations of an object's records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    /// Arrays of records, each with its length.
    pub stretches: Vec<(Place, u64)>,
    /// Types of notes of other versions.
    pub other_versions: Vec<u32>,
    /// Whether a note is malformed.
    pub damaged: bool,
}

/// Finds the records of one object.
pub(crate) fn records(image: &dyn Image, object: usize) -> Records {
    let notes = Notes::of(image, object);
    let mut records = Records { damaged: notes.damaged, ..Records::default() };
    for note in notes.ours.iter().filter(|note| note.kind != attach::NOTE_TYPE) {
        if note.kind != NOTE_TYPE {
            records.other_versions.push(note.kind);
        } else if note.size != NOTE_SIZE || !stretch(image, note.description, &mut records) {
            records.damaged = true;
        }
    }
    records
}

/// Adds the array between the two addresses in a note's description; returns whether they make sense.
fn stretch(image: &dyn Image, description: Place, records: &mut Records) -> bool {
    let end = |at: Place| word(image, at).map(|distance| at.plus(distance));
    let Some((first, after)) = end(description).zip(end(description.plus(8))) else { return false };
    let size = after.address.wrapping_sub(first.address);
    let of_object = image.objects().get(description.object).map_or(0, |object| object.bias);
    if size == 0 || first.address == of_object || first.address == 0 {
        return true;
    }
    let record = size_of::<Record>() as u64;
    if !size.is_multiple_of(record) || size > i64::MAX.cast_unsigned() {
        return false;
    }
    if !records.stretches.iter().any(|(known, _)| *known == first) {
        records.stretches.push((first, size / record));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::{Elf, Processor, Segment};
    use crate::entries::entries;
    use crate::image::Object;
    use tracewing_abi::site::NOTE_OWNER;

    /// Notes at 0x1000, in an object loaded 0x40_0000 above its headers' addresses.
    struct Made([Object; 1], Vec<u8>);

    const BIAS: u64 = 0x40_0000;

    impl Made {
        fn new(bytes: Vec<u8>) -> Self {
            let size = bytes.len() as u64;
            let notes = Segment {
                address: 0x1000,
                offset: 0x1000,
                in_file: size,
                in_memory: size,
                align: 4,
                executable: false,
            };
            let elf = Elf {
                processor: Processor::X86,
                fixed: false,
                loads: Vec::new(),
                notes: vec![notes],
                dynamic: None,
            };
            Self([Object { name: String::new(), elf, bias: BIAS }], bytes)
        }
    }

    impl Image for Made {
        fn objects(&self) -> &[Object] {
            &self.0
        }

        fn read(&self, at: Place, into: &mut [u8]) -> Option<()> {
            let from = usize::try_from(at.address.checked_sub(BIAS + 0x1000)?).ok()?;
            into.copy_from_slice(self.1.get(from..from.checked_add(into.len())?)?);
            Some(())
        }

        fn pointer(&self, _: Place) -> Option<Place> {
            None
        }
    }

    fn note(owner: &str, kind: u32, description: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [owner.len() as u32 + 1, description.len() as u32, kind] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(owner.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(description);
        bytes
    }

    /// A description at `at` whose words refer to two addresses without the bias.
    fn ends(at: u64, first: u64, after: u64) -> Vec<u8> {
        [first.wrapping_sub(at), after.wrapping_sub(at + 8)].map(u64::to_le_bytes).concat()
    }

    /// The records from a note with these ends, which follows a note of another owner.
    fn found(first: u64, after: u64) -> Records {
        let mut bytes = note("GNU", 3, b"an identity.");
        let description = 0x1000 + bytes.len() as u64 + 24;
        bytes.extend(note(NOTE_OWNER, NOTE_TYPE, &ends(description, first, after)));
        records(&Made::new(bytes), 0)
    }

    #[test]
    fn a_note_leads_to_its_records() {
        let found = found(0x2000, 0x2000 + 3 * 24);
        assert_eq!(found.stretches, [(Place { object: 0, address: BIAS + 0x2000 }, 3)]);
        assert!(!found.damaged);
    }

    #[test]
    fn a_note_may_lead_to_none() {
        for (first, after) in [(0, 0), (0x2000, 0x2000)] {
            assert_eq!(found(first, after), Records::default());
        }
    }

    #[test]
    fn malformed_notes_are_reported() {
        for (first, after) in [(0x2000, 0x2000 + 25), (0x2000, 0x1fe8)] {
            assert!(found(first, after).damaged, "{first:x} {after:x}");
        }
        let short = note(NOTE_OWNER, NOTE_TYPE, &[0; 8]);
        assert!(records(&Made::new(short), 0).damaged);
        let mut long = note(NOTE_OWNER, NOTE_TYPE, &[0; 16]);
        long[4..8].fill(0xff);
        assert!(records(&Made::new(long), 0).damaged);
    }

    #[test]
    fn entries_are_no_records() {
        let distances = [0x70_u64, 0x80, 0x90].map(u64::to_le_bytes).concat();
        let entry = note(NOTE_OWNER, attach::NOTE_TYPE, &distances);
        let image = Made::new([note(NOTE_OWNER, attach::NOTE_TYPE, &[1; 4]), entry].concat());
        assert_eq!(records(&image, 0), Records::default());
        // The second description comes after a note of 28 bytes, and a head and owner of 24.
        let addresses: Vec<u64> = entries(&image).iter().map(|entry| entry.address).collect();
        assert_eq!(addresses, [BIAS + 0x1000 + 28 + 24 + 0x70]);
    }

    #[test]
    fn other_versions_are_reported() {
        let bytes = [note(NOTE_OWNER, 7, &[]), note(NOTE_OWNER, 9, &[1; 4])].concat();
        let found = records(&Made::new(bytes), 0);
        assert_eq!((found.other_versions, found.damaged), (vec![7, 9], false));
    }
}
