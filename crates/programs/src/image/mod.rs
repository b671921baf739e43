//! Images: the memory of programs, either of a process or as files would be loaded.
//!
//! | module | does |
//! |---|---|
//! | `memory` | memory by its addresses, and what is mapped there |
//! | `process`, `core_dump` | memory of a process, living or not |
//! | `maps` | the kernel's list of a process's mappings |
//! | `files` | programs and libraries as the dynamic linker would see them |
//! | `object_file` | a file as it would be loaded: segments, relocations, symbols |
//! | `search` | where a program's libraries are |
//! | `start` | with which objects a program starts |
//!
//! Nothing about an image is trusted.

mod core_dump;
mod error;
mod files;
mod maps;
mod memory;
mod object_file;
mod process;
mod search;
mod start;

use crate::elf::Elf;

pub use core_dump::CoreDump;
pub use error::{CoreFault, Error};
pub use files::Files;
pub use maps::MapsLine;
pub use memory::{AddressSpace, Mapping, Memory};
pub use object_file::Bytes;
pub use process::Process;
pub use search::find_library;
pub use start::started_with;

/// A program, shared library or plug-in in an image.
#[derive(Debug)]
pub struct Object {
    /// Path of its file, if known.
    pub name: String,
    /// Its ELF headers, from the file or from memory.
    pub elf: Elf,
    /// Added to the addresses in its headers.
    pub bias: u64,
}

/// An address. In files, each object has an address space of its own; in a process the object is the one that
/// refers to the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index in [`Image::objects`].
    pub object: usize,
    /// Address, with the bias.
    pub address: u64,
}

impl Place {
    /// The place `bytes` further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { address: self.address.wrapping_add(bytes), ..self }
    }
}

/// Memory with objects in it.
pub trait Image {
    /// All objects, by index.
    fn objects(&self) -> &[Object];

    /// Fills `into` with the bytes from `at` on; `None` if not all of them exist.
    fn read(&self, at: Place, into: &mut [u8]) -> Option<()>;

    /// The target of the pointer at `at`; `None` if it is unknown.
    fn pointer(&self, at: Place) -> Option<Place>;
}

/// A little-endian number of eight bytes.
pub(crate) fn word(image: &dyn Image, at: Place) -> Option<u64> {
    let mut bytes = [0; 8];
    image.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// A little-endian number of four bytes.
pub(crate) fn half_word(image: &dyn Image, at: Place) -> Option<u32> {
    let mut bytes = [0; 4];
    image.read(at, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}

pub(crate) fn byte(image: &dyn Image, at: Place) -> Option<u8> {
    let mut byte = [0];
    image.read(at, &mut byte)?;
    Some(byte[0])
}
