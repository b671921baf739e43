//! The Common Trace Format, versions 1.8 (specification v1.8.3) and 2 (CTF2-SPEC-2.0): what a trace's bytes mean.
//!
//! Bytes in, values out: nothing here opens a file, and nothing here knows tracewing's own events.
//!
//! | module | does |
//! |---|---|
//! | [`model`] | a trace class: clocks, data stream classes, event record classes, field classes |
//! | `metadata` | the trace class that a metadata stream of either version describes |
//! | [`tsdl`] | the metadata of CTF 1.8: print a trace class, parse one |
//! | [`json`] | the metadata of CTF 2: print a trace class, parse one |
//! | [`convert`] | a trace class of one version in terms of the other |
//! | `decode` | packets and event records of a data stream, checked and without allocation per event |
//! | `encode` | the same the other way: values in, packets out |
//! | [`index`] | LTTng's packet index files |
//! | [`mod@write`] | the packet and event headers that tracewing's own traces use |
//!
//! Words are those of CTF 2 (data stream class, event record class, field class) also where CTF 1.8 has others.
//!
//! The feature `read` (on by default) holds the parser and the decoder; a program that only writes traces turns
//! it off.

pub mod convert;
#[cfg(feature = "read")]
pub mod decode;
#[cfg(feature = "read")]
pub mod encode;
mod error;
pub mod index;
pub mod json;
mod log_level;
#[cfg(feature = "read")]
pub mod metadata;
pub mod model;
pub mod tsdl;
pub mod write;

pub use error::Error;
