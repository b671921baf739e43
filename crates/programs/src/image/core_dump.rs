//! A core dump as memory: the mappings that an ELF core file (`man 5 core`) lists, and their bytes.
//!
//! Buffers are shared memory without a file in a file system, which the kernel puts into a dump by default
//! (bit 1 of `/proc/PID/coredump_filter`); gdb's `generate-core-file` follows the same filter. Other
//! processes may have written to them while the dump was made, so a dump does not show a single moment.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::Endianness;
use object::elf::{ET_CORE, FileHeader64, NT_FILE, PF_X, PT_LOAD, PT_NOTE};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use tracewing_files::open_regular;

use super::memory::{AddressSpace, Mapping, Memory};
use super::{CoreFault, Error};

/// Maximum number of program headers and of bytes of notes: more than a kernel creates.
const MOST_HEADERS: u32 = 1 << 20;
const MOST_NOTES: u64 = 64 << 20;

/// A core file, of which only the headers are kept in memory.
#[derive(Debug)]
pub struct CoreDump {
    file: File,
    mappings: Vec<Mapping>,
    /// The parts of mappings that the file holds, by address.
    held: Vec<Held>,
}

/// A stretch of memory that is stored in the file.
#[derive(Debug, Clone, Copy)]
struct Held {
    start: u64,
    size: u64,
    offset: u64,
}

impl CoreDump {
    /// Reads the headers of a core file.
    ///
    /// # Errors
    /// It cannot be read, or is not a core of a 64-bit little-endian machine.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let no_core = |reason| Error::NotACore { path: path.to_owned(), reason };
        let failed = |action| move |source| Error::File { action, path: path.to_owned(), source };
        let file = open_regular(path).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => no_core(CoreFault::NotAFile),
            _ => failed("open")(error),
        })?;
        let size = file.metadata().map_err(failed("read"))?.len();
        let (mappings, held) = parse(&file, size).map_err(no_core)?;
        Ok(Self { file, mappings, held })
    }

    /// Whether the file holds the first byte of a mapping.
    pub fn holds(&self, mapping: &Mapping) -> bool {
        self.held(mapping.start).is_some()
    }

    fn held(&self, address: u64) -> Option<Held> {
        let after = self.held.partition_point(|held| held.start <= address);
        let held = *self.held.get(after.checked_sub(1)?)?;
        (address - held.start < held.size).then_some(held)
    }
}

impl Memory for CoreDump {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let held = self.held(address)?;
        let skipped = address - held.start;
        if len as u64 > held.size - skipped {
            return None;
        }
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, held.offset.checked_add(skipped)?).ok()?;
        Some(bytes)
    }

    fn is_live(&self) -> bool {
        false
    }
}

impl AddressSpace for CoreDump {
    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

/// The mappings, and their parts within the file's `size` bytes.
fn parse(file: &File, size: u64) -> Result<(Vec<Mapping>, Vec<Held>), CoreFault> {
    let data = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&data)?;
    let endian = header.endian()?;
    if endian != Endianness::Little {
        return Err(CoreFault::BigEndian);
    }
    if header.e_type(endian) != ET_CORE {
        return Err(CoreFault::NoCore);
    }
    if header.phnum(endian, &data)? > MOST_HEADERS {
        return Err(CoreFault::ManyHeaders);
    }
    let (mut mappings, mut held) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for segment in header.program_headers(endian, &data)? {
        let (start, offset) = (segment.p_vaddr(endian), segment.p_offset(endian));
        match segment.p_type(endian) {
            PT_LOAD => {
                let mapped = segment.p_memsz(endian);
                let is_executable = segment.p_flags(endian).0 & PF_X.0 != 0;
                mappings.push(Mapping { start, size: mapped, is_executable, ..Mapping::default() });
                // A dump may have been truncated: by a limit, or by a full disk.
                let there = segment.p_filesz(endian).min(mapped).min(size.saturating_sub(offset));
                if there > 0 {
                    held.push(Held { start, size: there, offset });
                }
            }
            PT_NOTE if segment.p_filesz(endian) <= MOST_NOTES => {
                // Without names the mappings are still found by their contents.
                let Ok(Some(mut notes)) = segment.notes(endian, &data) else { continue };
                while let Ok(Some(note)) = notes.next() {
                    if note.n_type(endian) == NT_FILE && note.name() == b"CORE" {
                        names = file_names(note.desc()).unwrap_or_default();
                    }
                }
            }
            _ => {}
        }
    }
    held.sort_by_key(|held| held.start);
    mappings.sort_by_key(|mapping| mapping.start);
    for mapping in &mut mappings {
        let named = names.iter().find(|(start, _)| *start == mapping.start);
        mapping.name = named.map(|(_, name)| name.clone());
    }
    Ok((mappings, held))
}

/// First address and name of each mapped file. The note: count, page size, count × (start, end, offset),
/// count × name ending with NUL (fs/binfmt_elf.c, `fill_files_note`).
fn file_names(note: &[u8]) -> Option<Vec<(u64, String)>> {
    let word = |at: usize| -> Option<u64> {
        let at = at.checked_mul(8)?;
        Some(u64::from_le_bytes(note.get(at..at.checked_add(8)?)?.try_into().ok()?))
    };
    let count = usize::try_from(word(0)?).ok()?;
    let names = note.get(count.checked_mul(3)?.checked_add(2)?.checked_mul(8)?..)?;
    names
        .split(|&byte| byte == 0)
        .take(count)
        .enumerate()
        .map(|(index, name)| Some((word(2 + 3 * index)?, String::from_utf8_lossy(name).into_owned())))
        .collect()
}
