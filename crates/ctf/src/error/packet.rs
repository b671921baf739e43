//! What can be wrong with a packet.

use crate::magic::PACKET_MAGIC;

/// Why a packet's bytes do not match its classes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketFault {
    /// It does not begin as a packet does.
    #[error("magic {0:#010x}, expected {PACKET_MAGIC:#010x}: not a CTF packet")]
    Magic(u64),
    /// It belongs to another trace.
    #[error("the packet's UUID is not that of the metadata")]
    Uuid,
    /// It belongs to a data stream class that is not there.
    #[error("stream id {0}, which is not in the metadata")]
    UnknownStream(u64),
    /// Its data stream class is not known.
    #[error("a packet without stream id, and the metadata has {streams} streams")]
    NoStreamId {
        /// Data stream classes in the metadata.
        streams: usize,
    },
    /// The packets of a data stream differ in class.
    #[error("stream id {now}, but the packets before it have {then}")]
    OtherStream {
        /// The packet's data stream class.
        now: u64,
        /// That of the packets before it.
        then: u64,
    },
    /// Its content is larger than the packet.
    #[error("content of {content} bits in a packet of {size} bits")]
    LargeContent {
        /// Size of the content, in bits.
        content: u64,
        /// Size of the packet, in bits.
        size: u64,
    },
    /// Its content ends within its header or context.
    #[error("content of {content} bits, but packet header and context have {heads}")]
    SmallContent {
        /// Size of the content, in bits.
        content: u64,
        /// Bits of header and context.
        heads: u64,
    },
    /// It has no size, or one that is not a number of bytes.
    #[error("a packet of {size} bits; expected whole bytes")]
    NotWholeBytes {
        /// Size of the packet, in bits.
        size: u64,
    },
    /// The data stream ends before the packet does.
    #[error("the packet is {size} bytes long, but only {there} are there: cut short{}", inside(*part))]
    CutShort {
        /// Bytes that the packet says it has.
        size: u64,
        /// Bytes that are there.
        there: u64,
        /// In which part of an event record; `None` between two.
        part: Option<&'static str>,
    },
    /// An event record is of a class that is not there.
    #[error("event id {0}, which is not in the metadata")]
    UnknownEvent(u64),
    /// The class of an event record is not known.
    #[error("an event without id, and the metadata does not have exactly one event")]
    NoEventId,
    /// An event record takes no bits.
    #[error("the event record has no size, so their number is unknown")]
    NoSize,
    /// A field cannot be decoded.
    #[error("{part}{}{fault}", of_field(field.as_deref(), fault))]
    Field {
        /// The packet's or event record's part: `packet header`, `event payload`.
        part: &'static str,
        /// The field's name, if it has one.
        field: Option<Box<str>>,
        /// What is wrong with it.
        fault: FieldFault,
    },
}

/// Why a field cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldFault {
    /// It goes beyond the end of the content.
    #[error("goes beyond the end of the packet's content")]
    Short,
    /// A string without null.
    #[error("a string without end")]
    NoNull,
    /// More elements than the content has room for.
    #[error("{0} elements, for which the packet has no room")]
    TooLong(u64),
    /// Fields of both byte orders share a byte.
    #[error("its byte order differs from that of the field in the same byte")]
    Mixed,
    /// An integer of variable length that is too large.
    #[error("an oversized integer of variable length: more than 64 bits")]
    Oversized,
    /// A variant's tag selects nothing.
    #[error("no option for the tag value {0}")]
    NoOption(i128),
}

fn inside(part: Option<&str>) -> String {
    part.map_or_else(String::new, |part| format!(" inside the {part}"))
}

/// What is between the part's name and the fault.
fn of_field(field: Option<&str>, fault: &FieldFault) -> String {
    let name = field.map_or_else(String::new, |name| format!(", field `{name}`"));
    let end = if *fault == FieldFault::Short { " " } else { ": " };
    name + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_fields_name_part_and_field() {
        let fault = |field: Option<&str>, fault| {
            PacketFault::Field { part: "event payload", field: field.map(Box::from), fault }.to_string()
        };
        assert_eq!(
            fault(Some("a"), FieldFault::Short),
            "event payload, field `a` goes beyond the end of the packet's content"
        );
        assert_eq!(fault(None, FieldFault::NoNull), "event payload: a string without end");
        let cut = |part| PacketFault::CutShort { size: 9, there: 3, part }.to_string();
        assert_eq!(cut(None), "the packet is 9 bytes long, but only 3 are there: cut short");
        assert!(cut(Some("event header")).ends_with("cut short inside the event header"));
    }
}
