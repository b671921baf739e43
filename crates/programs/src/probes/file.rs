//! A program or library as a file for probes.

use std::io::ErrorKind;
use std::path::Path;

use object::elf::{FileHeader64, PT_INTERP};
use object::read::ReadCache;
use object::read::elf::{ElfFile, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};
use tracewing_files::open_regular;

use crate::elf::Blocks;
use crate::probes::{Error, FileFault};

/// An ELF file of which only the needed parts are read.
pub(crate) type Elf<'a> = ElfFile<'a, FileHeader64<LittleEndian>, &'a ReadCache<Blocks>>;

pub(crate) fn open(path: &Path) -> Result<ReadCache<Blocks>, Error> {
    let file = open_regular(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Error::NoObject { path: path.to_owned(), reason: FileFault::NotAFile },
        _ => Error::File { path: path.to_owned(), source: error },
    })?;
    Ok(ReadCache::new(Blocks::new(file)))
}

pub(crate) fn parse<'a>(path: &Path, bytes: &'a ReadCache<Blocks>) -> Result<Elf<'a>, Error> {
    let wrong = |reason| Error::NoObject { path: path.to_owned(), reason };
    let elf = Elf::parse(bytes).map_err(|_| {
        let begin = object::ReadRef::read_bytes_at(bytes, 0, 2).unwrap_or_default();
        wrong(match begin == b"#!" {
            true => FileFault::Script,
            false => FileFault::NotElf,
        })
    })?;
    match elf.architecture() {
        object::Architecture::X86_64 => Ok(elf),
        other => Err(wrong(FileFault::Processor(format!("{other:?}")))),
    }
}

/// Whether a program starts without a dynamic linker, and therefore without libraries.
pub(crate) fn is_static(elf: &Elf<'_>) -> bool {
    elf.elf_program_headers().iter().all(|header| header.p_type(LittleEndian) != PT_INTERP)
}

/// Whether it has a non-empty section of that name.
pub(crate) fn has_section(elf: &Elf<'_>, name: &str) -> bool {
    elf.section_by_name(name).is_some_and(|section| section.size() > 0 && section.file_range().is_some())
}
