//! A process as memory with objects in it, as `/proc` gives them. Nothing is written, and the process is not stopped; it may
//! be stopped, or being debugged.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::Error;
use crate::elf::Elf;
use crate::image::{Image, Object, Place};

const ENOENT: i32 = 2;
const ESRCH: i32 = 3;

/// Most of a list of mappings that is read: more than the kernel's own limit lets it have.
const MOST_MAPS: u64 = 64 << 20;

/// Most objects that are looked at.
const MOST_OBJECTS: usize = 8192;

/// A process of this machine.
#[derive(Debug)]
pub struct Process {
    memory: File,
    mappings: Vec<Mapping>,
    objects: Vec<Object>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    executable: bool,
    /// Begins with the first byte of what is mapped.
    first: bool,
    name: String,
}

impl Process {
    /// Looks at a process. Its objects are those of this moment.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked into.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(ENOENT | ESRCH) => Error::NoProcess(pid),
            _ => Error::Process { pid, source },
        };
        let memory = File::open(format!("/proc/{pid}/mem")).map_err(failed)?;
        let mut maps = Vec::new();
        let file = File::open(format!("/proc/{pid}/maps")).map_err(failed)?;
        io::Read::read_to_end(&mut io::Read::take(file, MOST_MAPS), &mut maps).map_err(failed)?;
        // A process that is over, and threads of the kernel, have none.
        if maps.is_empty() {
            return Err(Error::NoProcess(pid));
        }
        let mappings: Vec<_> = maps.split(|byte| *byte == b'\n').filter_map(mapping).collect();
        let mut this = Self { memory, mappings, objects: Vec::new() };
        this.objects =
            this.mappings.iter().filter_map(|mapping| this.object(mapping)).take(MOST_OBJECTS).collect();
        Ok(this)
    }

    /// The object that begins with a mapping.
    fn object(&self, mapping: &Mapping) -> Option<Object> {
        if !mapping.first {
            return None;
        }
        let begin = |offset: u64, into: &mut [u8]| self.bytes(mapping.start.checked_add(offset)?, into);
        let elf = Elf::parse(begin).ok()?;
        let first = elf.loads.iter().find(|load| load.offset < PAGE)?;
        let bias = if elf.fixed { 0 } else { mapping.start.wrapping_sub(first.address & !(PAGE - 1)) };
        // A file may also be mapped to be read; one that was loaded has its code where it belongs.
        let code = elf.loads.iter().find(|load| load.executable)?;
        let is_loaded =
            self.mapping(code.address.wrapping_add(bias)).is_some_and(|mapping| mapping.executable);
        is_loaded.then(|| Object { name: mapping.name.clone(), elf, bias })
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| address < mapping.end)
    }

    fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()> {
        // The end may lie in the mapping behind; what is not mapped cannot be read.
        self.mapping(address)?;
        self.mapping(address.checked_add(into.len() as u64)?.checked_sub(1)?)?;
        self.memory.read_exact_at(into, address).ok()
    }
}

/// The smallest page; an object's first segment begins on one.
const PAGE: u64 = 4096;

impl Image for Process {
    fn objects(&self) -> &[Object] {
        &self.objects
    }

    fn read(&self, at: Place, into: &mut [u8]) -> Option<()> {
        self.bytes(at.address, into)
    }

    fn pointer(&self, at: Place) -> Option<Place> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Some(Place { address: u64::from_le_bytes(bytes), ..at })
    }
}

/// A line of `/proc/PID/maps` (`man 5 proc_pid_maps`), unless it is of memory that may not be read: reading the memory of
/// a device may do something.
fn mapping(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let access = words.next()?;
    let offset = words.next()?;
    let name = words.nth(2).unwrap_or_default().trim_start();
    if !access.starts_with('r') || (name.starts_with("/dev/") && !name.starts_with("/dev/shm/")) {
        return None;
    }
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        executable: access.as_bytes().get(2) == Some(&b'x'),
        first: u64::from_str_radix(offset, 16).ok()? == 0,
        name: name.replace("\\012", "\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line =
            b"7f00b000-7f00d000 r-xp 00001000 fd:01 2077                       /opt/a program (deleted)";
        let name = "/opt/a program (deleted)".to_owned();
        let expected = Mapping { start: 0x7f00_b000, end: 0x7f00_d000, executable: true, first: false, name };
        assert_eq!(mapping(line), Some(expected));
        assert!(
            mapping(b"7f00b000-7f00d000 rw-p 00000000 00:00 0 ")
                .is_some_and(|m| m.first && m.name.is_empty())
        );
        for other in [
            "7f00b000-7f00d000 rw-s 00000000 00:05 99 /dev/dri/card0",
            "7f00b000-7f00d000 ---p 00000000 00:01 2077 /lib/libc.so",
            "nonsense",
            "",
        ] {
            assert_eq!(mapping(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn this_process_has_its_program_and_its_c_library() {
        let process = Process::open(std::process::id()).unwrap();
        let me = std::env::current_exe().unwrap();
        assert_eq!(
            process.objects().iter().filter(|object| me == object.name.as_ref() as &std::path::Path).count(),
            1
        );
        assert!(process.objects().len() > 1);
        assert!(process.read(Place { object: 0, address: 16 }, &mut [0; 8]).is_none());
    }

    #[test]
    fn no_such_process() {
        let error = Process::open(u32::MAX).unwrap_err();
        assert!(matches!(error, Error::NoProcess(u32::MAX)), "{error}");
    }
}
