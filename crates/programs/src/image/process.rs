//! A process as memory and as an image, from `/proc`. Nothing is written, and the process is not stopped; it
//! may be stopped already, or being debugged.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tracewing_units::Pid;

use super::memory::{AddressSpace, Mapping, Memory};
use super::{Error, Image, Object, Place, maps};
use crate::elf::Elf;

const ENOENT: i32 = 2;
const ESRCH: i32 = 3;

/// Maximum size of the list of mappings, bytes: more than the kernel's own limit permits.
const MOST_MAPS: u64 = 64 << 20;

/// Maximum number of objects.
const MOST_OBJECTS: usize = 8192;

/// The smallest page size, bytes; an object's first segment begins on a page.
const PAGE: u64 = 4096;

/// A process of this machine, read through `/proc`.
#[derive(Debug)]
pub struct Process {
    memory: File,
    mappings: Vec<Mapping>,
    /// Found on first use.
    objects: OnceCell<Vec<Object>>,
}

impl Process {
    /// Opens a process, with a snapshot of its mappings.
    ///
    /// # Errors
    /// The process does not exist, or access to it is not permitted.
    pub fn open(pid: Pid) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(ENOENT | ESRCH) => Error::NoProcess(pid),
            _ => Error::Process { pid, source },
        };
        let open = |name| File::open(format!("/proc/{pid}/{name}")).map_err(failed);
        let (memory, maps) = (open("mem")?, open("maps")?);
        Self::of(memory, maps).map_err(failed)?.ok_or(Error::NoProcess(pid))
    }

    /// The process whose `mem` and `maps` in `/proc` these are, with a snapshot of its mappings; `None` if it
    /// has none, as ended processes and kernel threads.
    ///
    /// # Errors
    /// The mappings cannot be read.
    pub fn of(memory: File, maps: File) -> io::Result<Option<Self>> {
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(maps, MOST_MAPS), &mut text)?;
        let mappings = maps::parse(&text);
        Ok((!text.is_empty()).then_some(Self { memory, mappings, objects: OnceCell::new() }))
    }

    fn find_objects(&self) -> Vec<Object> {
        self.mappings.iter().filter_map(|mapping| self.object(mapping)).take(MOST_OBJECTS).collect()
    }

    /// The object that begins with a mapping.
    fn object(&self, mapping: &Mapping) -> Option<Object> {
        if !mapping.is_begin {
            return None;
        }
        let begin = |offset: u64, into: &mut [u8]| self.fill(mapping.start.checked_add(offset)?, into);
        let elf = Elf::parse(begin).ok()?;
        let first = elf.loads.iter().find(|load| load.offset < PAGE)?;
        let bias = if elf.fixed { 0 } else { mapping.start.wrapping_sub(first.address & !(PAGE - 1)) };
        // A file may also be mapped for reading; the code of a loaded file is where it belongs.
        let code = elf.loads.iter().find(|load| load.executable)?;
        let is_loaded =
            self.mapping(code.address.wrapping_add(bias)).is_some_and(|mapping| mapping.is_executable);
        let name = mapping.name.clone().unwrap_or_default();
        is_loaded.then_some(Object { name, elf, bias })
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| address - mapping.start < mapping.size)
    }

    fn fill(&self, address: u64, into: &mut [u8]) -> Option<()> {
        // The end may be in the next mapping; what is not mapped cannot be read.
        self.mapping(address)?;
        self.mapping(address.checked_add(into.len() as u64)?.checked_sub(1)?)?;
        self.memory.read_exact_at(into, address).ok()
    }
}

impl Memory for Process {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mapping = self.mapping(address)?;
        if len as u64 > mapping.size - (address - mapping.start) {
            return None;
        }
        let mut bytes = vec![0; len];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    fn is_live(&self) -> bool {
        true
    }
}

impl AddressSpace for Process {
    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

impl Image for Process {
    fn objects(&self) -> &[Object] {
        self.objects.get_or_init(|| self.find_objects())
    }

    fn read(&self, at: Place, into: &mut [u8]) -> Option<()> {
        self.fill(at.address, into)
    }

    fn pointer(&self, at: Place) -> Option<Place> {
        let mut bytes = [0; 8];
        self.fill(at.address, &mut bytes)?;
        Some(Place { address: u64::from_le_bytes(bytes), ..at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_program_and_its_c_library() {
        let process = Process::open(Pid::from_unsigned(std::process::id())).unwrap();
        let me = std::env::current_exe().unwrap();
        assert_eq!(
            process.objects().iter().filter(|object| me == object.name.as_ref() as &std::path::Path).count(),
            1
        );
        assert!(process.objects().len() > 1);
        assert!(Image::read(&process, Place { object: 0, address: 16 }, &mut [0; 8]).is_none());
    }

    #[test]
    fn memory_is_read_within_a_mapping() {
        let process = Process::open(Pid::from_unsigned(std::process::id())).unwrap();
        let word = Box::new(0x5eed_u64);
        let address = std::ptr::from_ref(&*word).addr() as u64;
        assert_eq!(process.word(address), Some(*word));
        let mapping = process.mapping(address).unwrap();
        assert_eq!(Memory::read(&process, mapping.start, mapping.size as usize + 1), None);
        assert_eq!(Memory::read(&process, 16, 8), None);
    }

    #[test]
    fn no_such_process() {
        let error = Process::open(Pid(i32::MAX)).unwrap_err();
        assert!(matches!(error, Error::NoProcess(Pid(i32::MAX))), "{error}");
    }
}
