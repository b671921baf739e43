//! What is wrong with a file of a trace.

use tracewing_units::Cycles;

/// What is wrong with a file of a trace. Packets are counted from 0 on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamFault {
    /// Bytes are missing that were there.
    #[error("packet {packet}: the file became shorter while it was read")]
    Shorter {
        /// Number of the packet in its file, from 0.
        packet: u64,
    },
    /// There is not enough address space for a packet.
    #[error("packet {packet}: no room for its {bytes} bytes: {cause}")]
    NoRoom {
        /// Number of the packet in its file, from 0.
        packet: u64,
        /// Size of the packet, in bytes.
        bytes: u64,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// An event, or a packet's header, is too long.
    #[error("packet {packet}: more than {most} bytes for one event are not read")]
    TooLong {
        /// Number of the packet in its file, from 0.
        packet: u64,
        /// Bytes that an event may have.
        most: u64,
    },
    /// A packet is longer than its file.
    #[error("packet {packet} claims {claimed} bytes, but the file ends {rest} bytes after its beginning")]
    Cut {
        /// Number of the packet in its file, from 0.
        packet: u64,
        /// Bytes that it claims.
        claimed: u64,
        /// Bytes that it has.
        rest: u64,
    },
    /// A packet has no size.
    #[error("packet {packet} has a size of 0 bytes")]
    NoSize {
        /// Number of the packet in its file, from 0.
        packet: u64,
    },
    /// The begin or end of a packet is no moment.
    #[error("packet {packet}: the stamp {stamp} is outside the range of nanoseconds")]
    PacketStamp {
        /// Number of the packet in its file, from 0.
        packet: u64,
        /// Value of the clock, in cycles.
        stamp: Cycles,
    },
    /// The stamp of an event is no moment.
    #[error("the stamp {0} is outside the range of nanoseconds")]
    EventStamp(Cycles),
    /// The offset of a clock cannot be represented.
    #[error("the offset of clock `{0}` is outside the range of nanoseconds")]
    ClockOffset(String),
    /// The metadata is too long.
    #[error("the metadata has {bytes} bytes; more than {most} are not read")]
    LongMetadata {
        /// Size of the metadata, in bytes.
        bytes: u64,
        /// Bytes that it may have.
        most: u64,
    },
}
