//! The USDT probes of a file: the notes that `sys/sdt.h` leaves in the section `.note.stapsdt` (SystemTap's
//! wiki, *UserSpaceProbeImplementation*), type 3:
//!
//! ```text
//! u64 address of the probe's `nop`
//! u64 address that `.stapsdt.base` had when the note was written; what it has moved since, all have
//! u64 address of the semaphore (u16), or 0
//! provider \0 name \0 arguments \0
//! ```
//!
//! Arguments are words `SIZE@OPERAND`, with a minus sign before the size of a signed number, and the operand
//! in assembler syntax: see [`crate::probes::operand`].

use std::path::Path;

use object::read::elf::SectionHeader;
use object::{LittleEndian, Object, ObjectSection};

use crate::elf::Segments;
use crate::probes::file::{Elf, open, parse};
use crate::probes::operand::Operand;
use crate::probes::{Error, OperandFault};

const SECTION: &str = ".note.stapsdt";
const BASE: &str = ".stapsdt.base";
const NAME: &[u8] = b"stapsdt";
const KIND: u32 = 3;
/// Maximum number of probes per file.
const MOST: usize = 1 << 16;

/// One place of a USDT probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usdt {
    /// Name of the provider that defines it.
    pub provider: String,
    /// Name of the probe.
    pub name: String,
    /// Address of its instruction, as in the file's headers.
    pub address: u64,
    /// Address of the counter that enables it, if it has one.
    pub semaphore: Option<u64>,
    /// Arguments as written in the note: `8@%rdi -4@$5`.
    pub arguments: String,
}

impl Usdt {
    /// The types of its arguments, as `u64`; `None` for a malformed one.
    pub fn types(&self) -> impl Iterator<Item = Option<String>> {
        self.operands().map(|(_, operand)| Some(operand.ok()?.kind()))
    }

    /// Its arguments as written, and parsed, or the reason why they cannot be.
    pub(crate) fn operands(&self) -> impl Iterator<Item = (&str, Result<Operand, OperandFault>)> {
        self.arguments.split_ascii_whitespace().map(|text| (text, Operand::parse(text)))
    }
}

/// The USDT probes of a program or library, by provider, name and address.
///
/// # Errors
/// The file cannot be read, or is not a program.
pub fn usdt(path: &Path) -> Result<Vec<Usdt>, Error> {
    let bytes = open(path)?;
    let elf = parse(path, &bytes)?;
    Ok(of(&elf))
}

/// As [`usdt`], for an open file.
pub(crate) fn of(elf: &Elf<'_>) -> Vec<Usdt> {
    let Some(section) = elf.section_by_name(SECTION) else { return Vec::new() };
    let base = elf.section_by_name(BASE).map(|base| base.address());
    let notes = section.elf_section_header().notes(LittleEndian, elf.data()).ok().flatten();
    let notes =
        notes.into_iter().flat_map(|mut notes| std::iter::from_fn(move || notes.next().ok().flatten()));
    let segments = Segments::of(elf);
    let mut found: Vec<_> = notes
        .filter(|note| note.name() == NAME && note.n_type(LittleEndian).0 == KIND)
        .filter_map(|note| read(note.desc(), base))
        .filter(|probe| segments.code(probe.address).is_some())
        .take(MOST)
        .collect();
    found.sort_by(|a, b| (&a.provider, &a.name, a.address).cmp(&(&b.provider, &b.name, b.address)));
    found
}

fn read(note: &[u8], base: Option<u64>) -> Option<Usdt> {
    let word = |at: usize| Some(u64::from_le_bytes(*note.get(at..)?.first_chunk()?));
    let moved = base.map_or(0, |base| base.wrapping_sub(word(8).unwrap_or(base)));
    let mut texts =
        note.get(24..)?.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Some(Usdt {
        address: word(0)?.wrapping_add(moved),
        semaphore: word(16).filter(|address| *address != 0).map(|address| address.wrapping_add(moved)),
        provider: texts.next().filter(|text| !text.is_empty())?,
        name: texts.next().filter(|text| !text.is_empty())?,
        arguments: texts.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_and_moved_with_their_section() {
        let mut note = Vec::new();
        for word in [0x1000_u64, 0x2000, 0x3000] {
            note.extend_from_slice(&word.to_le_bytes());
        }
        note.extend_from_slice(b"shop\0taken\08@%rdi -4@$5\0");
        let probe = read(&note, Some(0x2010)).unwrap();
        assert_eq!((probe.provider.as_str(), probe.name.as_str()), ("shop", "taken"));
        assert_eq!((probe.address, probe.semaphore), (0x1010, Some(0x3010)));
        assert_eq!(probe.types().map(Option::unwrap).collect::<Vec<_>>(), ["u64", "s32"]);
        for end in 0..note.len() {
            read(&note[..end], None);
        }
    }
}
