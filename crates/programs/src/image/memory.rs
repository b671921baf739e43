//! Memory by its addresses: of a process, from a core dump, or plain bytes.

/// Addressed bytes, none of which is trusted.
pub trait Memory {
    /// `len` bytes from `address` on; `None` if not all of them exist. Allocates memory only for bytes that
    /// do.
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>>;

    /// Whether other processes or threads may be writing to the memory.
    fn is_live(&self) -> bool;

    /// A little-endian number of eight bytes.
    fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.read(address, 8)?.try_into().ok()?))
    }
}

/// Memory that consists of mappings.
pub trait AddressSpace: Memory {
    /// The mappings, by address.
    fn mappings(&self) -> &[Mapping];
}

/// A mapping of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Whether its code can be executed.
    pub is_executable: bool,
    /// Whether it is known to belong to this process alone. Core dumps do not say.
    pub is_private: bool,
    /// Whether it is known to begin with the first byte of the mapped file. Core dumps do not say.
    pub is_begin: bool,
    /// The mapped object, if known: a file's path, `/memfd:NAME (deleted)`.
    pub name: Option<String>,
}

/// The bytes are memory from address 0 on.
impl Memory for &[u8] {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(address).ok()?;
        Some(self.get(start..start.checked_add(len)?)?.to_vec())
    }

    fn is_live(&self) -> bool {
        false
    }
}
