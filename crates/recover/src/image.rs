//! Memory that somebody else wrote: what the rest of the crate needs of it, whether it lies in a core dump, in a process
//! or in bytes.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::Error;

/// Addressed bytes. Nothing about them is trusted.
pub trait Memory {
    /// `len` bytes from `address` on; `None` where not all of them are there. Takes memory only for bytes that are.
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>>;

    /// Whether somebody may write them at this moment.
    fn is_live(&self) -> bool;
}

/// The memory of a process.
pub trait Image: Memory {
    /// Its mappings, by address.
    fn mappings(&self) -> &[Mapping];
}

/// A mapping of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// What is mapped, where that is known: a file's path, `/memfd:NAME (deleted)`.
    pub name: Option<String>,
}

/// Bytes are memory from address 0 on.
impl Memory for &[u8] {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(address).ok()?;
        Some(self.get(start..start.checked_add(len)?)?.to_vec())
    }

    fn is_live(&self) -> bool {
        false
    }
}

/// A number of eight bytes at `address`.
pub(crate) fn word(memory: &dyn Memory, address: u64) -> Option<u64> {
    Some(u64::from_le_bytes(memory.read(address, 8)?.try_into().ok()?))
}

/// Opens a file that somebody gave. A pipe in its place is not waited for.
pub(crate) fn open_at_once(path: &Path) -> Result<(File, Metadata), Error> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(Error::file("open", path))?;
    let metadata = file.metadata().map_err(Error::file("read", path))?;
    Ok((file, metadata))
}
