//! An object's file as it would look in memory if it were loaded at address 0: its segments, after those
//! relocations of the dynamic linker that fill in addresses (psABI x86-64, section 4.4; ELF for the Arm
//! 64-bit architecture, section 5.7).
//!
//! Relative relocations in the short form (`DT_RELR`) need no work: they add the load address, which is 0, to
//! the value in the file. The same applies to programs that are linked to a fixed address.

use object::elf::{
    DT_GNU_HASH, DT_NEEDED, DT_NULL, DT_RELA, DT_RELASZ, DT_RPATH, DT_RUNPATH, DT_STRTAB, DT_SYMTAB,
    DynamicTag, R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_RELATIVE, R_X86_64_64, R_X86_64_GLOB_DAT,
    R_X86_64_RELATIVE, RelocationType,
};
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::elf::{Elf, ElfFault, Processor};

/// Maximum number of relocations: more than the largest programs have.
const MOST_RELOCATIONS: u64 = 4 << 20;
/// Maximum number of entries of a dynamic section, and of objects that one can need.
const MOST_DYNAMIC: u64 = 4096;
/// Maximum number of symbols with the same hash that are compared.
const MOST_COLLISIONS: u32 = 256;
/// Maximum length of a name, bytes.
const MOST_NAME: usize = 4096;

/// The bytes of a file.
pub trait Bytes {
    /// Fills `into` from `offset` on; `None` if not all of the bytes exist.
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()>;
}

impl Bytes for File {
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        self.read_exact_at(into, offset).ok()
    }
}

impl Bytes for Vec<u8> {
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        let from = usize::try_from(offset).ok()?;
        into.copy_from_slice(self.get(from..from.checked_add(into.len())?)?);
        Some(())
    }
}

pub(crate) struct ObjectFile {
    bytes: Box<dyn Bytes>,
    elf: Elf,
    dynamic: Dynamic,
    /// Relocations by the address that they fill in.
    relocations: Vec<(u64, Target)>,
}

/// What a relocation fills in.
#[derive(Debug, Clone, Copy)]
enum Target {
    Address(u64),
    Symbol { index: u32, addend: i64 },
}

/// The entries of the dynamic section.
#[derive(Debug, Default)]
struct Dynamic {
    strings: u64,
    symbols: u64,
    hash: Option<u64>,
    relocations: u64,
    relocations_size: u64,
    needed: Vec<u64>,
    run_path: Option<u64>,
    old_run_path: Option<u64>,
}

/// The target of a pointer in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pointer {
    /// An address in the same object.
    Here(u64),
    /// An offset in bytes from a symbol that this object does not define.
    Elsewhere(String, i64),
}

impl ObjectFile {
    /// Reads headers and relocations.
    pub(crate) fn new(bytes: Box<dyn Bytes>) -> Result<Self, ElfFault> {
        let elf = Elf::parse(|offset, into| bytes.read(offset, into))?;
        let mut this = Self { bytes, elf, dynamic: Dynamic::default(), relocations: Vec::new() };
        this.dynamic = this.read_dynamic();
        this.read_relocations()?;
        Ok(this)
    }

    pub(crate) fn elf(&self) -> &Elf {
        &self.elf
    }

    /// The names of the objects that this one needs.
    pub(crate) fn needed(&self) -> Vec<String> {
        self.dynamic.needed.iter().filter_map(|offset| self.string(*offset)).collect()
    }

    /// Where to search for them: `DT_RUNPATH`, or the older `DT_RPATH`.
    pub(crate) fn run_path(&self) -> Option<String> {
        self.string(self.dynamic.run_path.or(self.dynamic.old_run_path)?)
    }

    /// Bytes of the loaded object. Bytes of a segment that are not in the file are zero.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let load = self.elf.load(address)?;
        let skipped = address - load.address;
        if into.len() as u64 > load.in_memory - skipped {
            return None;
        }
        let there =
            usize::try_from(load.in_file.saturating_sub(skipped)).unwrap_or(usize::MAX).min(into.len());
        let (of_file, zeros) = into.split_at_mut(there);
        self.bytes.read(load.offset.checked_add(skipped)?, of_file)?;
        zeros.fill(0);
        Some(())
    }

    /// The target of the pointer at an address.
    pub(crate) fn pointer(&self, address: u64) -> Option<Pointer> {
        let Ok(found) = self.relocations.binary_search_by_key(&address, |(at, _)| *at) else {
            return Some(Pointer::Here(self.word(address)?));
        };
        match self.relocations[found].1 {
            Target::Address(address) => Some(Pointer::Here(address)),
            Target::Symbol { index, addend } => {
                let symbol = self.dynamic.symbols.checked_add(u64::from(index) * SYMBOL)?;
                Some(match self.defined(symbol) {
                    Some(address) => Pointer::Here(address.wrapping_add_signed(addend)),
                    None => Pointer::Elsewhere(self.string(u64::from(self.half_word(symbol)?))?, addend),
                })
            }
        }
    }

    /// The address of a symbol that other objects may refer to (`DT_GNU_HASH`: number of buckets, first
    /// symbol in them, words of the filter, shift; filter; buckets; hashes, the last of a bucket being odd).
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        let hash =
            name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let table = self.dynamic.hash?;
        let [buckets, first, filter] = [0, 4, 8].map(|at| self.half_word(table.checked_add(at)?));
        let (buckets, first) = (buckets?, first?);
        let in_buckets = table.checked_add(16)?.checked_add(u64::from(filter?) * 8)?;
        let bucket = u64::from(hash.checked_rem(buckets)?) * 4;
        let hashes = in_buckets.checked_add(u64::from(buckets) * 4)?;
        let start = self.half_word(in_buckets.checked_add(bucket)?)?;
        for index in start..start.saturating_add(MOST_COLLISIONS) {
            let its = self.half_word(hashes.checked_add(u64::from(index.checked_sub(first)?) * 4)?)?;
            let symbol = self.dynamic.symbols.checked_add(u64::from(index) * SYMBOL)?;
            if its | 1 == hash | 1 && self.string(u64::from(self.half_word(symbol)?)).as_deref() == Some(name)
            {
                return self.defined(symbol);
            }
            if its & 1 == 1 {
                break;
            }
        }
        None
    }

    /// The address of a symbol in the table, if the object defines it: `u32 name; u8 info, other; u16
    /// section; u64 value, size`.
    fn defined(&self, symbol: u64) -> Option<u64> {
        let mut section = [0; 2];
        self.read(symbol.checked_add(6)?, &mut section)?;
        if section == [0, 0] {
            return None;
        }
        self.word(symbol.checked_add(8)?)
    }

    fn read_dynamic(&self) -> Dynamic {
        let mut dynamic = Dynamic::default();
        let Some(section) = self.elf.dynamic else { return dynamic };
        for entry in 0..(section.in_memory / 16).min(MOST_DYNAMIC) {
            let at = section.address.saturating_add(entry * 16);
            let (Some(tag), Some(value)) = (self.word(at), self.word(at.saturating_add(8))) else { break };
            match DynamicTag(tag.cast_signed()) {
                DT_NULL => break,
                DT_STRTAB => dynamic.strings = value,
                DT_SYMTAB => dynamic.symbols = value,
                DT_GNU_HASH => dynamic.hash = Some(value),
                DT_RELA => dynamic.relocations = value,
                DT_RELASZ => dynamic.relocations_size = value,
                DT_NEEDED => dynamic.needed.push(value),
                DT_RUNPATH => dynamic.run_path = Some(value),
                DT_RPATH => dynamic.old_run_path = Some(value),
                _ => {}
            }
        }
        dynamic
    }

    /// `Elf64_Rela`: `u64 offset; u32 type, symbol; i64 addend`.
    fn read_relocations(&mut self) -> Result<(), ElfFault> {
        let count = self.dynamic.relocations_size / RELOCATION as u64;
        if count > MOST_RELOCATIONS {
            return Err(ElfFault::ManyRelocations(count));
        }
        let mut chunk = vec![0; RELOCATION * 1024];
        let mut done = 0;
        while done < count {
            let now = usize::try_from(count - done).unwrap_or(usize::MAX).min(1024);
            let bytes = &mut chunk[..now * RELOCATION];
            let at = self.dynamic.relocations.checked_add(done * RELOCATION as u64);
            at.and_then(|at| self.read(at, bytes)).ok_or(ElfFault::CutOff("relocations"))?;
            let targets =
                bytes.chunks_exact(RELOCATION).filter_map(|entry| target(self.elf.processor, entry));
            self.relocations.extend(targets);
            done += now as u64;
        }
        self.relocations.sort_by_key(|(at, _)| *at);
        Ok(())
    }

    /// A string of the dynamic string table.
    fn string(&self, offset: u64) -> Option<String> {
        let mut bytes = Vec::new();
        let mut at = self.dynamic.strings.checked_add(offset)?;
        while bytes.len() < MOST_NAME {
            let mut byte = [0];
            self.read(at, &mut byte)?;
            if byte == [0] {
                return String::from_utf8(bytes).ok();
            }
            bytes.push(byte[0]);
            at = at.checked_add(1)?;
        }
        None
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    fn half_word(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }
}

/// Bytes of a symbol, and of a relocation.
const SYMBOL: u64 = 24;
const RELOCATION: usize = 24;

/// The address and target of a relocation, if it fills in an address.
fn target(processor: Processor, entry: &[u8]) -> Option<(u64, Target)> {
    let at = u64::from_le_bytes(entry.get(..8)?.try_into().ok()?);
    let kind = RelocationType(u32::from_le_bytes(entry.get(8..12)?.try_into().ok()?));
    let index = u32::from_le_bytes(entry.get(12..16)?.try_into().ok()?);
    let addend = i64::from_le_bytes(entry.get(16..24)?.try_into().ok()?);
    let (relative, symbols) = match processor {
        Processor::X86 => (R_X86_64_RELATIVE, [R_X86_64_64, R_X86_64_GLOB_DAT]),
        Processor::Arm => (R_AARCH64_RELATIVE, [R_AARCH64_ABS64, R_AARCH64_GLOB_DAT]),
    };
    if kind == relative {
        return Some((at, Target::Address(addend.cast_unsigned())));
    }
    symbols.contains(&kind).then_some((at, Target::Symbol { index, addend }))
}
