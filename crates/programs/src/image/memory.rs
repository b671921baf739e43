//! Memory by its addresses: of a process, out of a core dump, or bytes.

/// Addressed bytes. Nothing about them is trusted.
pub trait Memory {
    /// `len` bytes from `address` on; `None` where not all of them are there. Takes memory only for bytes
    /// that are.
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>>;

    /// Whether other processes or threads may write to them at this moment.
    fn is_live(&self) -> bool;

    /// A number of eight bytes, little-endian.
    fn word(&self, address: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.read(address, 8)?.try_into().ok()?))
    }
}

/// Memory that has been mapped piece by piece.
pub trait AddressSpace: Memory {
    /// Its mappings, by address.
    fn mappings(&self) -> &[Mapping];
}

/// A mapping of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Whether code in it can be executed.
    pub is_executable: bool,
    /// Whether it is known to be the process's own, which no other process sees. Core dumps do not say.
    pub is_private: bool,
    /// Whether it is known to begin with the first byte of what is mapped. Core dumps do not say.
    pub is_begin: bool,
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
