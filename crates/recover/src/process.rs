//! A process as memory: its mappings and its bytes, as `/proc` gives them. Nothing is written, and the process is not
//! stopped; it may be stopped, or being debugged.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use tracewing_abi::class_table;

use crate::Error;
use crate::image::{Image, Mapping, Memory};

/// A process of this machine.
#[derive(Debug)]
pub struct Process {
    memory: File,
    mappings: Vec<Mapping>,
}

impl Process {
    /// Looks at a process. Its mappings are those of this moment.
    ///
    /// # Errors
    /// There is no such process, or it may not be looked into.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Error::NoProcess(pid),
            _ => Error::Process { pid, source },
        };
        let memory = File::open(format!("/proc/{pid}/mem")).map_err(failed)?;
        let maps = fs::read(format!("/proc/{pid}/maps")).map_err(failed)?;
        Ok(Self { memory, mappings: String::from_utf8_lossy(&maps).lines().filter_map(mapping).collect() })
    }
}

impl Memory for Process {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings.get(after.checked_sub(1)?)?;
        if len as u64 > mapping.size.checked_sub(address - mapping.start)? {
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

impl Image for Process {
    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

/// A line of `/proc/PID/maps` (`man 5 proc_pid_maps`), if it is of memory that processes share, or of a table of classes, of which each
/// process has its own: reading the memory of a device may do something.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let access = words.next()?;
    let name = words.skip(3).collect::<Vec<_>>().join(" ");
    let is_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
    let is_table = name
        .strip_prefix("/memfd:")
        .is_some_and(|name| class_table::NAME.to_str().is_ok_and(|table| name.starts_with(table)));
    if !access.starts_with('r') || !(access.ends_with('s') || is_table) || is_device {
        return None;
    }
    let start = u64::from_str_radix(start, 16).ok()?;
    let size = u64::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    Some(Mapping { start, size, name: Some(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_only() {
        let line = "7f00b000-7f00d000 rw-s 00000000 00:01 2077 /memfd:tracewing (deleted)";
        let name = Some("/memfd:tracewing (deleted)".to_owned());
        assert_eq!(mapping(line), Some(Mapping { start: 0x7f00_b000, size: 0x2000, name }));
        for other in [
            "7f00b000-7f00d000 rw-p 00000000 00:00 0 [heap]",
            "7f00b000-7f00d000 rw-s 00000000 00:05 99 /dev/dri/card0",
            "7f00b000-7f00d000 ---s 00000000 00:01 2077 /memfd:tracewing (deleted)",
            "nonsense",
            "",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }
}
