//! Images: the memory of programs, whether it is that of a process or what files would become when they are
//! loaded.
//!
//! | module | does |
//! |---|---|
//! | `memory` | memory by its addresses, and what is mapped there |
//! | `process`, `core_dump` | memory of a process, living or not |
//! | `maps` | the kernel's list of a process's mappings |
//! | `files` | programs and libraries as the dynamic linker would see them |
//! | `object_file` | a file as it would lie in memory: segments, relocations, symbols |
//! | `search` | where the libraries are that a program needs |
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

use crate::elf::Elf;

pub use core_dump::CoreDump;
pub use error::{CoreFault, Error};
pub use files::Files;
pub use memory::{AddressSpace, Mapping, Memory};
pub use object_file::Bytes;
pub use process::Process;
pub use search::find_library;

/// A program, shared library or plug-in.
#[derive(Debug)]
pub struct Object {
    /// Path of its file, as far as it is known.
    pub name: String,
    /// Its headers.
    pub elf: Elf,
    /// Its addresses are those in its headers plus this.
    pub bias: u64,
}

/// An address. In files, each object has addresses of its own; in a process the object says who refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which of [`Image::objects`].
    pub object: usize,
    /// Where.
    pub address: u64,
}

impl Place {
    /// So many bytes further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { address: self.address.wrapping_add(bytes), ..self }
    }
}

/// Memory with objects in it.
pub trait Image {
    /// The objects.
    fn objects(&self) -> &[Object];

    /// Fills `into` with the bytes from `at` on; `None` where not all of them are there.
    fn read(&self, at: Place, into: &mut [u8]) -> Option<()>;

    /// Where the pointer that lies at `at` leads to; `None` where that is not known.
    fn pointer(&self, at: Place) -> Option<Place>;
}

/// A number of eight bytes, little-endian.
pub(crate) fn word(image: &dyn Image, at: Place) -> Option<u64> {
    let mut bytes = [0; 8];
    image.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// A number of four bytes, little-endian.
pub(crate) fn half_word(image: &dyn Image, at: Place) -> Option<u32> {
    let mut bytes = [0; 4];
    image.read(at, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}

/// One byte.
pub(crate) fn byte(image: &dyn Image, at: Place) -> Option<u8> {
    let mut byte = [0];
    image.read(at, &mut byte)?;
    Some(byte[0])
}
