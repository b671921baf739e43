//! The Common Trace Format, versions 1.8 (specification v1.8.3) and 2 (CTF2-SPEC-2.0): what a trace's bytes
//! mean.
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
//! Reading is three steps: metadata gives a trace class, which is compiled once, and then decodes any of its
//! data streams.
//!
#![cfg_attr(feature = "read", doc = "```")]
#![cfg_attr(not(feature = "read"), doc = "```ignore")]
//! use std::sync::Arc;
//! use tracewing_ctf::decode::{Decoder, Step, StreamReader, Value};
//! use tracewing_ctf::model::Scope;
//!
//! let metadata = b"/* CTF 1.8 */
//!     trace { major = 1; minor = 8; byte_order = le; };
//!     event { name = hit; fields := struct { integer { size = 8; } size; }; };";
//! let decoder = Decoder::new(Arc::new(tracewing_ctf::metadata::parse(metadata)?))?;
//!
//! // A data stream: two event records of one byte.
//! let mut reader = StreamReader::new(decoder, &[20, 22]);
//! let mut sum = 0;
//! loop {
//!     match reader.advance()? {
//!         Step::Event => {
//!             if let Some(Value::Unsigned(size, _)) = reader.event().field(Scope::Payload, "size") {
//!                 sum += size;
//!             }
//!         }
//!         Step::End => break,
//!         Step::Packet | Step::PacketEnd => {}
//!     }
//! }
//! assert_eq!(sum, 42);
//! # Ok::<(), tracewing_ctf::Error>(())
//! ```
//!
//! More examples: `count` (event records by name), `sum` (a field, of an asynchronous stream), `write` (a trace
//! of either version).
//!
//! Words are those of CTF 2 (data stream class, event record class, field class) even where CTF 1.8 has others.
//!
//! The feature `read` (on by default) holds the parser and the decoder; a program that only writes traces turns
//! it off.

#![warn(unreachable_pub)]

pub mod convert;
#[cfg(feature = "read")]
pub mod decode;
#[cfg(feature = "read")]
pub mod encode;
mod error;
pub mod index;
pub mod json;
mod log_level;
mod magic;
#[cfg(feature = "read")]
pub mod metadata;
#[cfg(feature = "read")]
mod metadata_text;
pub mod model;
pub mod tsdl;
pub mod write;

pub use error::{
    Error, Expected, FieldFault, IndexFault, JsonFault, LimitFault, MetadataFault, MetadataPacketFault,
    Needed, PacketFault, ParserText, Reference, RoleFault, TraceClassFault, TsdlBlock, TsdlFault,
    TsdlMissing, TsdlNeeded, TsdlType, ValueFault,
};
