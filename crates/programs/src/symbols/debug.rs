//! A file's debug information: source lines, and functions that were inlined. The file is read into memory:
//! its owner could truncate a mapped file, which would end the process that reads the mapping. Other files
//! that it names, or that are next to it, are not opened; what distributions install for its build id is, and
//! what they install for several files.

use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{AbbreviationsCacheStrategy, Dwarf, Error, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

use crate::elf::{Content, by_build_id, hexadecimal, shared_file};

use super::Reader;
use super::inlined::Inlined;

/// The debug information of a file.
pub(super) struct Debug {
    lines: Context<Reader>,
    dwarf: Arc<Dwarf<Reader>>,
    /// Read when it is asked for first.
    inlined: Option<Inlined>,
}

impl Debug {
    /// Reads it, from a separate file if the file has none; `None` if there is none.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let content = Content::open(path)?;
        let file = object::File::parse(&content).ok()?;
        if file.section_by_name(SectionId::DebugInfo.name()).is_some() {
            return Self::of(&content, &file);
        }
        let content = Content::open(&by_build_id(&hexadecimal(file.build_id().ok()??))?)?;
        Self::of(&content, &object::File::parse(&content).ok()?)
    }

    fn of<'d>(content: &Content, file: &impl Object<'d>) -> Option<Self> {
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let bytes = |section: Option<Vec<u8>>| {
            Ok::<_, Error>(Reader::new(section.unwrap_or_default().into(), endian))
        };
        let mut dwarf = Dwarf::load(|id| bytes(section(content, file, id))).ok()?;
        if let Some(shared) = shared_file(file).and_then(|path| Content::open(&path)) {
            let file = object::File::parse(&shared).ok()?;
            dwarf.load_sup(|id| bytes(section(&shared, &file, id))).ok()?;
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let dwarf = Arc::new(dwarf);
        Some(Self { lines: Context::from_arc_dwarf(Arc::clone(&dwarf)).ok()?, dwarf, inlined: None })
    }

    /// Source file and line of the code at an address.
    pub(super) fn line(&self, address: u64) -> Option<(String, u32)> {
        let location = self.lines.find_location(address).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }

    /// Names of the functions that were inlined there, the innermost first.
    pub(super) fn inlined(&mut self, address: u64) -> Vec<String> {
        self.inlined.get_or_insert_with(|| Inlined::new(Arc::clone(&self.dwarf))).at(address)
    }
}

/// The bytes of a section, with the length from its header.
fn section<'d>(content: &Content, file: &impl Object<'d>, id: SectionId) -> Option<Vec<u8>> {
    let data = file.section_by_name(id.name())?.compressed_data().ok()?;
    if !content.has_room(data.uncompressed_size) {
        return None;
    }
    Some(data.decompress().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn this_test_knows_its_own_line() {
        let content = std::env::current_exe().unwrap();
        let lines = Debug::read(&content).unwrap();
        let address = this_test_knows_its_own_line as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let (file, line) = lines.line(address - base).unwrap();
        assert!(file.ends_with("debug.rs") && line.abs_diff(line!()) < 20, "{file}:{line}");
    }

    /// The library that finds source lines finds inlined functions, too, in files that can be trusted.
    #[test]
    fn inlined_functions_are_those_that_a_library_finds() {
        let own = std::env::current_exe().unwrap();
        let mut debug = Debug::read(&own).unwrap();
        let (mut some, mut deepest) = (0, 0);
        for function in crate::symbols::functions(&own, |_| true).iter().step_by(97) {
            for address in (function.begin..function.begin + function.size).step_by(13) {
                let mut frames = debug.lines.find_frames(address).skip_all_loads().unwrap();
                let mut expected = Vec::new();
                while let Some(frame) = frames.next().unwrap() {
                    let name = frame.function.map(|name| name.raw_name().unwrap().into_owned());
                    expected.push(crate::symbols::demangled(&name.unwrap_or_default()));
                }
                expected.pop();
                let found = debug.inlined(address);
                assert_eq!(found, expected, "{address:#x} in {}", function.name);
                some += usize::from(!found.is_empty());
                deepest = deepest.max(found.len());
            }
        }
        assert!(some > 50 && deepest > 1, "{some} {deepest}");
    }

    /// Where other readers look for split debug information.
    #[test]
    fn a_pipe_next_to_the_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let pipe = folder.path().join("program.dwp");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let begin = Instant::now();
        let open = move || crate::symbols::Symbols::new().line(program.to_str().unwrap(), 0x1000);
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(open()));
        is_done.recv_timeout(Duration::from_secs(60)).expect("it waits");
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
}
