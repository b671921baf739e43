//! The contents of programs, from their files and from running processes.
//!
//! | module | does |
//! |---|---|
//! | `elf` | headers and segments, and a file's bytes |
//! | `image` | memory of programs: of a process, a core dump, or as files would be loaded |
//! | `notes`, `entries` | tracewing's ELF notes, and where a recorder can enter a process |
//! | `sites` | instrumentation points, and which are on |
//! | `symbols` | functions and source lines at addresses |
//! | `probes` | places for kernel probes, and the values there (feature `probes`) |
//!
//! Nothing in a file or a process is trusted or changed.

#![warn(unreachable_pub)]

pub mod elf;
mod entries;
pub mod image;
mod notes;
#[cfg(feature = "probes")]
pub mod probes;
pub mod sites;
pub mod symbols;

pub use entries::{Entry, entries};
