//! The crate's error type: what is wrong, where, and why. Each variant's cause is an enumeration in a file of
//! its own in this folder.

mod index;
mod json;
mod limit;
mod metadata;
mod packet;
mod trace_class;
mod tsdl;
mod value;

pub use index::IndexFault;
pub use json::{Expected, JsonFault, Needed, ParserText, RoleFault};
pub use limit::LimitFault;
pub use metadata::{MetadataFault, MetadataPacketFault};
pub use packet::{FieldFault, PacketFault};
pub use trace_class::{Reference, TraceClassFault};
pub use tsdl::{TsdlBlock, TsdlFault, TsdlMissing, TsdlNeeded, TsdlType};
pub use value::ValueFault;

/// Why metadata, a packet or an index could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The metadata text is not CTF 1.8's TSDL or CTF 2's JSON, or describes something impossible.
    #[error("metadata, line {line}, column {column}: {fault}\n  {text}\n  {blank:caret$}^", blank = "", caret = *caret as usize)]
    Metadata {
        /// Line, from 1.
        line: u32,
        /// Column in bytes, from 1.
        column: u32,
        /// The line itself, or what of it is near the column.
        text: String,
        /// The character of `text` where the column is, from 0.
        caret: u32,
        /// What was found, and what was expected.
        fault: Box<MetadataFault>,
    },
    /// The metadata stream, before its text is looked at, is malformed.
    #[error("metadata, byte {offset}: {fault}")]
    MetadataPacket {
        /// Offset in bytes.
        offset: u64,
        /// What is wrong.
        fault: MetadataPacketFault,
    },
    /// The trace class parsed, but its data streams cannot be decoded; or it has what cannot be converted.
    #[error("metadata, {place}: {fault}")]
    TraceClass {
        /// The class and field, as `event "sched_switch", field "prev_comm"`.
        place: String,
        /// What is wrong.
        fault: Box<TraceClassFault>,
        /// Where in the metadata's text that is declared, if it was read from one: [`Error::in_metadata`]
        /// shows it.
        at: crate::model::Place,
    },
    /// A packet's bytes do not match its classes.
    #[error("packet {packet} at byte {packet_offset}: {fault} (at byte {}, bit {})", offset_bits / 8, offset_bits % 8)]
    Packet {
        /// Index of the packet in its data stream, from 0.
        packet: u64,
        /// Offset in bytes of the packet in its data stream.
        packet_offset: u64,
        /// Offset in bits, from the start of the data stream, of what could not be decoded.
        offset_bits: u64,
        /// What is wrong.
        fault: Box<PacketFault>,
    },
    /// A value cannot be written.
    #[error("{place}: {fault}")]
    Value {
        /// The class and field, as `event "sched_switch", field "prev_comm"`.
        place: String,
        /// What is wrong.
        fault: Box<ValueFault>,
    },
    /// An index file is malformed.
    #[error("index, byte {offset}: {fault}")]
    Index {
        /// Offset in bytes.
        offset: u64,
        /// What is wrong.
        fault: IndexFault,
    },
}
