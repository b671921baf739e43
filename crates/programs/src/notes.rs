//! The ELF notes by which programs and libraries say what tracewing finds in them (`tracewing_abi::site`,
//! `tracewing_abi::attach`).

use tracewing_abi::site::NOTE_OWNER;

use crate::elf::Segment;
use crate::image::{Image, Place};

/// Most bytes of notes that are looked at; programs have some hundred.
const MOST_NOTES: u64 = 64 << 10;
/// Bytes of a note's head: the lengths of owner and description, the type.
const HEAD: usize = 12;

/// A note of tracewing's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub kind: u32,
    /// Where its description is, and how many bytes that has.
    pub description: Place,
    pub size: usize,
}

/// The notes of an object, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    pub ours: Vec<Note>,
    /// Whether some cannot be read.
    pub damaged: bool,
}

impl Notes {
    pub(crate) fn of(image: &dyn Image, object: usize) -> Self {
        let mut notes = Self::default();
        let Some(of) = image.objects().get(object) else { return notes };
        for segment in &of.elf.notes {
            let place = Place { object, address: segment.address.wrapping_add(of.bias) };
            notes.read(image, place, segment);
        }
        notes
    }

    /// Looks at the notes of a segment: heads of three words, each followed by the owner with its final NUL
    /// and the description, all of them aligned (System V ABI, chapter 5, Note Section).
    fn read(&mut self, image: &dyn Image, place: Place, segment: &Segment) {
        let mut bytes = vec![0; usize::try_from(segment.in_memory.min(MOST_NOTES)).unwrap_or(0)];
        if image.read(place, &mut bytes).is_none() {
            self.damaged = true;
            return;
        }
        let align = if segment.align == 8 { 8 } else { 4 };
        let mut at = 0;
        while let Some(head) = bytes.get(at..).and_then(|rest| rest.get(..HEAD)) {
            let number = |index: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[index * 4 + byte]));
            let owner = at + HEAD;
            let description = aligned(owner, number(0), align);
            let end = description.and_then(|description| aligned(description, number(1), align));
            let Some((description, end)) = description.zip(end).filter(|(_, end)| *end <= bytes.len() + 7)
            else {
                self.damaged = true;
                return;
            };
            if is_ours(bytes.get(owner..description).unwrap_or_default()) {
                let (kind, size) = (number(2), number(1) as usize);
                self.ours.push(Note { kind, description: place.plus(description as u64), size });
            }
            at = end;
        }
    }
}

/// The aligned end of so many bytes.
fn aligned(from: usize, length: u32, align: usize) -> Option<usize> {
    from.checked_add(length as usize)?.checked_next_multiple_of(align)
}

fn is_ours(owner: &[u8]) -> bool {
    let rest = owner.strip_prefix(NOTE_OWNER.as_bytes());
    rest.is_some_and(|rest| rest.first() == Some(&0))
}
