//! A program or library as a file: where its code is in it, and where its symbols and debug information are, which may be a
//! file of their own (`.note.gnu.build-id`, `.gnu_debuglink`; gdb's manual, *Debugging Information in Separate Files*).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, PF_X, PT_INTERP, PT_LOAD};
use object::read::ReadCache;
use object::read::elf::{ElfFile, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};
use tracewing_symbols::Blocks;

use crate::Error;

/// An ELF file of which only what is needed is read.
pub(crate) type Elf<'a> = ElfFile<'a, FileHeader64<LittleEndian>, &'a ReadCache<Blocks>>;

/// Where distributions put debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// Opens a file.
pub(crate) fn open(path: &Path) -> Result<ReadCache<Blocks>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::NoObject { path: path.to_owned(), reason: "not a file".to_owned() });
    }
    Ok(ReadCache::new(Blocks::new(File::open(path).map_err(failed)?)))
}

/// Reads its headers.
pub(crate) fn parse<'a>(path: &Path, bytes: &'a ReadCache<Blocks>) -> Result<Elf<'a>, Error> {
    let wrong = |reason: &str| Error::NoObject { path: path.to_owned(), reason: reason.to_owned() };
    let elf = Elf::parse(bytes).map_err(|_| {
        let begin = object::ReadRef::read_bytes_at(bytes, 0, 2).unwrap_or_default();
        wrong(match begin == b"#!" {
            true => "a script: give the program that runs it",
            false => "not a 64-bit ELF file: a program or a shared library is needed",
        })
    })?;
    match elf.architecture() {
        object::Architecture::X86_64 => Ok(elf),
        other => Err(wrong(&format!("for the processor {other:?}: probes are for x86-64"))),
    }
}

/// A stretch of a file and the address that it has in memory, before the loader chooses where all of it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    size: u64,
    executable: bool,
}

/// The stretches that are loaded.
#[derive(Debug, Clone)]
pub(crate) struct Segments(Vec<Segment>);

impl Segments {
    pub(crate) fn of(elf: &Elf<'_>) -> Self {
        let loads = elf.elf_program_headers().iter().filter(|header| header.p_type(LittleEndian) == PT_LOAD);
        let segment = |header: &object::elf::ProgramHeader64<LittleEndian>| Segment {
            address: header.p_vaddr(LittleEndian),
            offset: header.p_offset(LittleEndian),
            size: header.p_filesz(LittleEndian),
            executable: header.p_flags(LittleEndian).0 & PF_X.0 != 0,
        };
        Self(loads.map(segment).collect())
    }

    fn find(&self, address: u64, executable: bool) -> Option<&Segment> {
        let holds = |segment: &&Segment| {
            address.checked_sub(segment.address).is_some_and(|into| into < segment.size)
                && (segment.executable || !executable)
        };
        self.0.iter().find(holds)
    }

    /// The segment of the instruction at an address.
    pub(crate) fn code(&self, address: u64) -> Option<&Segment> {
        self.find(address, true)
    }

    /// Where in the file the data at an address is.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let segment = self.find(address, false)?;
        Some(segment.place(address))
    }
}

impl Segment {
    /// Where in the file what has an address is, by this segment's distance. Of another segment's data this is where the kernel looks
    /// for it, which goes by the distance of the code (`translate_user_vaddr` in its `trace_uprobe.c`).
    pub(crate) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.address).wrapping_add(self.offset)
    }
}

/// Whether a program is started without a dynamic linker, and so without libraries.
pub(crate) fn is_static(elf: &Elf<'_>) -> bool {
    elf.elf_program_headers().iter().all(|header| header.p_type(LittleEndian) != PT_INTERP)
}

/// The file with the debug information of a file without, if there is one.
pub(crate) fn debug_file(path: &Path, elf: &Elf<'_>) -> Option<PathBuf> {
    let by_id = elf.build_id().ok().flatten().filter(|id| id.len() > 1).map(|id| {
        let hex: String = id[1..].iter().map(|byte| format!("{byte:02x}")).collect();
        Path::new(DEBUG_FOLDER).join(format!(".build-id/{:02x}/{hex}.debug", id[0]))
    });
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("/"));
    let by_link = elf.gnu_debuglink().ok().flatten().map(|(name, _)| {
        let name = String::from_utf8_lossy(name).into_owned();
        let below = Path::new(DEBUG_FOLDER).join(folder.strip_prefix("/").unwrap_or(folder));
        [folder.join(&name), folder.join(".debug").join(&name), below.join(&name)]
    });
    let mut candidates = by_id.into_iter().chain(by_link.into_iter().flatten());
    candidates.find(|candidate| candidate.is_file() && *candidate != real)
}

/// Whether it has a section of that name that is more than a name.
pub(crate) fn has_section(elf: &Elf<'_>, name: &str) -> bool {
    elf.section_by_name(name).is_some_and(|section| section.size() > 0 && section.file_range().is_some())
}
