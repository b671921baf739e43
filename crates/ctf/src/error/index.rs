//! What can be wrong with an index file.

use crate::magic::{INDEX_HEADER_SIZE, INDEX_MAGIC};

/// Why an index file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFault {
    /// It ends within its header.
    #[error("{there} bytes; the header alone has {INDEX_HEADER_SIZE}")]
    Short {
        /// Bytes that are there.
        there: usize,
    },
    /// It does not begin as an index does.
    #[error("magic {0:#010x}, expected {INDEX_MAGIC:#010x}: not an LTTng index")]
    Magic(u32),
    /// Its version is not known.
    #[error("version {major}.{minor}, expected 1.0 or 1.1")]
    Version {
        /// Major version that the input states.
        major: u32,
        /// Minor version that the input states.
        minor: u32,
    },
    /// Its entries have no room for what its version stores.
    #[error("entries of {size} bytes; version 1.{minor} needs {least}")]
    EntrySize {
        /// Bytes of an entry.
        size: usize,
        /// Minor version that the input states.
        minor: u32,
        /// Bytes that an entry of that version has at least.
        least: usize,
    },
}
