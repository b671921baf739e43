//! The headers of tracewing's own traces: as field classes for the metadata, and as bytes.
//!
//! Everything is little-endian and byte-aligned (`align = 8`), so the layouts are fixed:
//!
//! | packet bytes | field | | user event bytes | field | | kernel event bytes | field |
//! |---|---|---|---|---|---|---|---|
//! | 0..4 | magic | | 0..4 | timestamp, low half | | 0..2 | id |
//! | 4..20 | uuid | | 4..6 | id | | 2..6 | timestamp, low half |
//! | 20..24 | stream_id | | 6..8 | length | | | |
//! | 24..32 | stream_instance_id | | if id is 65535: | | | if id is 65535: | |
//! | 32..40 | timestamp_begin | | 8..16 | timestamp | | 6..14 | timestamp |
//! | 40..48 | timestamp_end | | 16..18 | id | | 14..16 | id |
//! | 48..56 | content_size, bits | | | | | | |
//! | 56..64 | packet_size, bits | | | | | | |
//! | 64..72 | packet_seq_num | | | | | | |
//! | 72..80 | events_discarded | | | | | | |
//! | 80..84 | cpu_id | | | | | | |
//!
//! The compact form carries the low half of the time stamp; a reader fills in the rest from the stamp before
//! it, so it serves while less than 2^32 cycles pass between two events of a packet (and between the packet's
//! begin stamp and its first event). The extended form serves always; its `timestamp` and `id` win, as in
//! LTTng's large header.

use crate::model::{EnumerationClass, FieldClass, IntegerClass, StructureClass, Uuid, VariantClass};
use tracewing_units::{Cpu, Cycles};

/// What the first four bytes of a packet are, as a number.
pub const PACKET_MAGIC: u32 = crate::magic::PACKET_MAGIC;
/// Size of packet header and context in bytes; the first event record begins there.
pub const PACKET_HEADER_SIZE: usize = 84;
/// The id that announces the extended event header.
pub const EXTENDED_ID: u16 = 65535;
/// Size in bytes of a user event's compact header.
pub const USER_EVENT_HEADER_SIZE: usize = 8;

/// What the header and the context of a packet say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    /// The trace's UUID.
    pub uuid: Uuid,
    /// Data stream class id.
    pub stream_id: u32,
    /// Which data stream of that class.
    pub stream_instance_id: u64,
    /// Stamp at which the packet was begun; not after its first event's.
    pub begin: Cycles,
    /// Stamp at which it was closed; not before its last event's.
    pub end: Cycles,
    /// Size of header, context and event records, in bytes.
    pub content_bytes: u64,
    /// Size of the packet with its padding, in bytes; at least `content_bytes`.
    pub packet_bytes: u64,
    /// Packet sequence number in the data stream, from 0.
    pub seq: u64,
    /// Events discarded in the data stream up to the end of this packet.
    pub discarded: u64,
    /// The CPU on which its events were recorded.
    pub cpu: Cpu,
}

impl PacketHeader {
    /// The bytes of packet header and packet context.
    pub fn encode(&self) -> [u8; PACKET_HEADER_SIZE] {
        let mut bytes = [0; PACKET_HEADER_SIZE];
        bytes[0..4].copy_from_slice(&PACKET_MAGIC.to_le_bytes());
        bytes[4..20].copy_from_slice(&self.uuid);
        bytes[20..24].copy_from_slice(&self.stream_id.to_le_bytes());
        let words = [
            self.stream_instance_id,
            self.begin.0,
            self.end.0,
            self.content_bytes.saturating_mul(8),
            self.packet_bytes.saturating_mul(8),
            self.seq,
            self.discarded,
        ];
        for (chunk, word) in bytes[24..80].chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes[80..84].copy_from_slice(&self.cpu.0.to_le_bytes());
        bytes
    }
}

/// The packet header's class (`trace.packet.header`).
pub fn packet_header_class() -> StructureClass {
    StructureClass::new()
        .with("magic", FieldClass::unsigned(32))
        .with("uuid", FieldClass::array(FieldClass::unsigned(8), 16))
        .with("stream_id", FieldClass::unsigned(32))
        .with("stream_instance_id", FieldClass::unsigned(64))
}

/// The packet context's class (`stream.packet.context`), its stamps mapped to the clock class called `clock`.
pub fn packet_context_class(clock: &str) -> StructureClass {
    let stamp = || IntegerClass::unsigned(64).with_clock(clock);
    StructureClass::new()
        .with("timestamp_begin", stamp())
        .with("timestamp_end", stamp())
        .with("content_size", FieldClass::unsigned(64))
        .with("packet_size", FieldClass::unsigned(64))
        .with("packet_seq_num", FieldClass::unsigned(64))
        .with("events_discarded", FieldClass::unsigned(64))
        .with("cpu_id", FieldClass::unsigned(32))
}

/// The user events' header (`stream.event.header`), its stamps mapped to the clock class called `clock`.
///
/// babeltrace2 warns of every header field that is neither an event record class id nor mapped to a clock.
/// `length` is neither, so it is declared signed and mapped: a signed field never moves the clock, which
/// avoids the warning. Readers of the metadata ignore it; code that walks the records reads it as unsigned.
pub fn user_event_header_class(clock: &str) -> StructureClass {
    StructureClass::new()
        .with("timestamp", IntegerClass::unsigned(32).with_clock(clock))
        .with("id", event_id_class())
        .with("length", IntegerClass::signed(16).with_clock(clock))
        .with("v", extension_class(clock))
}

/// The kernel events' header (`stream.event.header`), its stamps mapped to the clock class called `clock`.
pub fn kernel_event_header_class(clock: &str) -> StructureClass {
    StructureClass::new()
        .with("id", event_id_class())
        .with("timestamp", IntegerClass::unsigned(32).with_clock(clock))
        .with("v", extension_class(clock))
}

fn event_id_class() -> EnumerationClass {
    EnumerationClass::new(IntegerClass::unsigned(16)).with("compact", 0, EXTENDED_ID - 1).with(
        "extended",
        EXTENDED_ID,
        EXTENDED_ID,
    )
}

fn extension_class(clock: &str) -> VariantClass {
    let extended = StructureClass::new()
        .with("timestamp", IntegerClass::unsigned(64).with_clock(clock))
        .with("id", FieldClass::unsigned(16));
    VariantClass::new("id").with("compact", StructureClass::new()).with("extended", extended)
}
