//! What is in programs, out of their files and out of running processes.
//!
//! | module | does |
//! |---|---|
//! | `elf` | headers and segments, and a file's bytes |
//! | `image` | memory of programs: of a process, a core dump, or as files would be loaded |
//! | `sites` | instrumentation points, with what is on |
//! | `symbols` | functions and source lines at addresses |
//! | `probes` | places at which the kernel can be asked for events, and the values there (feature `probes`) |
//!
//! Nothing in a file or a process is trusted, and nothing is changed there.

pub mod elf;
pub mod image;
#[cfg(feature = "probes")]
pub mod probes;
pub mod sites;
pub mod symbols;
