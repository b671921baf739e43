//! ELF objects, from files or from memory (System V ABI, chapters 4 and 5).
//!
//! | module | does |
//! |---|---|
//! | `headers` | an object's headers, read from as few bytes as possible |
//! | `segments` | which parts of a file are loaded where |
//! | `blocks`, `content` | a file's bytes for the crate `object`, which knows the tables: in large blocks, and no more than real files need |
//! | `fault` | why something is not an object |
//! | `debug` | the file that has another one's debug information |
//! | `unwind` | the tables by which callers are found |

mod blocks;
mod content;
mod debug;
mod fault;
mod headers;
mod segments;
mod unwind;

#[cfg(feature = "probes")]
pub(crate) use blocks::Blocks;
pub(crate) use content::Content;
#[cfg(feature = "probes")]
pub(crate) use debug::debug_file;
pub(crate) use debug::{by_build_id, hexadecimal, shared_file};
pub use fault::ElfFault;
pub use headers::{Elf, Processor};
pub use segments::Segment;
pub(crate) use segments::Segments;
pub use unwind::{Section, UnwindTables};
