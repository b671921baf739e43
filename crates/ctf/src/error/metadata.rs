//! What can be wrong with a metadata stream of either version; what only one of the two languages has is in
//! `tsdl.rs` and `json.rs`.

use super::{JsonFault, TraceClassFault, TsdlFault};
use crate::magic::{METADATA_PACKET_HEADER_SIZE, METADATA_PACKET_MAGIC};

/// Why a metadata text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// It is metadata of no version that is read.
    #[error(
        "expected `/* CTF 1.8 */`, a metadata packet or byte 0x1E: this is neither CTF 1.8 nor CTF 2 metadata"
    )]
    NeitherVersion,
    /// A reader of CTF 1.8 alone is given CTF 2.
    #[error("expected CTF 1.8 metadata, found CTF 2's")]
    IsCtf2,
    /// A reader of CTF 2 alone is given CTF 1.8.
    #[error("expected CTF 2 metadata, found CTF 1.8's")]
    IsCtf1,
    /// Text of CTF 2 is not UTF-8.
    #[error("these bytes are not UTF-8")]
    NotUtf8,
    /// Text of CTF 2 does not begin with a record separator.
    #[error("expected a record separator (byte 0x1E)")]
    NoSeparator,
    /// Text of CTF 2 is empty.
    #[error("expected a preamble fragment; there is no fragment")]
    NoFragment,
    /// In the text of CTF 1.8.
    #[error(transparent)]
    Tsdl(#[from] TsdlFault),
    /// In a fragment of CTF 2.
    #[error("fragment {fragment}: {fault}")]
    Json {
        /// The fragment, from 1.
        fragment: usize,
        /// What is wrong in it.
        fault: JsonFault,
    },
    /// The text is well-formed, but its declarations are not:
    /// [`Error::TraceClass`](crate::Error::TraceClass), with the place of the declaration.
    #[error("{}{place}: {fault}", fragment.map_or_else(String::new, |fragment| format!("fragment {fragment}: ")))]
    TraceClass {
        /// The fragment of CTF 2, from 1; `None` for CTF 1.8.
        fragment: Option<usize>,
        /// The class and field.
        place: String,
        /// What is wrong.
        fault: Box<TraceClassFault>,
    },
}

/// Why a metadata stream in packets could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataPacketFault {
    /// Bytes after the last packet: a warning, not an error.
    #[error("{0} bytes after the last packet are ignored")]
    Ignored(usize),
    /// It ends within a packet's header.
    #[error("{0} bytes are left; a packet header has {METADATA_PACKET_HEADER_SIZE}")]
    Short(usize),
    /// A packet does not begin as one does.
    #[error("magic {0:#010x}, expected {METADATA_PACKET_MAGIC:#010x}")]
    Magic(u32),
    /// A packet belongs to another trace.
    #[error("the UUID differs from the first packet's")]
    OtherUuid,
    /// A packet's content has no whole number of bytes, or ends within the header.
    #[error("content of {0} bits; expected whole bytes, at least {METADATA_PACKET_HEADER_SIZE}")]
    Content(u32),
    /// A packet has no whole number of bytes, or is smaller than its content.
    #[error("packet of {packet} bits around content of {content} bits")]
    Size {
        /// Bits of the packet.
        packet: u32,
        /// Bits of its content.
        content: u32,
    },
    /// The stream ends within a packet's content.
    #[error("content of {content} bytes, but the file has only {there} more")]
    CutShort {
        /// Bytes of content.
        content: usize,
        /// Bytes that are there.
        there: usize,
    },
    /// The content is compressed, encrypted or has a checksum.
    #[error("{what} scheme {scheme}; none is known")]
    Scheme {
        /// `compression`, `encryption` or `checksum`.
        what: &'static str,
        /// The number of the scheme.
        scheme: u8,
    },
    /// The version is not known.
    #[error("CTF version {major}.{minor}, expected 1.8 or 2.0")]
    Version {
        /// Major version that the input states.
        major: u8,
        /// Minor version that the input states.
        minor: u8,
    },
    /// A packet is of another version than the one before.
    #[error("the CTF version differs from the first packet's")]
    OtherVersion,
}
