//! Source lines from a file's debug information. The file is read into memory: its owner could truncate a
//! mapped file, which would end the process that reads the mapping. Other files that it names, or that are
//! next to it, are not opened.

use std::path::Path;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, Error, RunTimeEndian, SectionId};
use object::{Object, ObjectSection};

use crate::elf::Content;

type Reader = EndianArcSlice<RunTimeEndian>;

/// The source lines of a file.
pub(crate) struct Lines(Context<Reader>);

impl Lines {
    /// Reads the debug information; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let content = Content::open(path)?;
        let file = object::File::parse(&content).ok()?;
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: SectionId| {
            let bytes = section(&content, &file, id).unwrap_or_default();
            Ok::<_, Error>(Reader::new(bytes.into(), endian))
        };
        Some(Self(Context::from_dwarf(Dwarf::load(load).ok()?).ok()?))
    }

    /// Source file and line of the code at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(String, u32)> {
        let location = self.0.find_location(address).ok()??;
        Some((location.file?.to_owned(), location.line?))
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
        let lines = Lines::read(&content).unwrap();
        let address = this_test_knows_its_own_line as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let (file, line) = lines.find(address - base).unwrap();
        assert!(file.ends_with("lines.rs") && (40..60).contains(&line), "{file}:{line}");
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
