//! What fields mean to a reader: CTF 2's roles, which CTF 1.8 gives by member name.

/// What a field means to a reader of the data stream (CTF2-SPEC-2.0, field roles).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The packet header's `magic`: 0xC1FC1FC1.
    PacketMagicNumber,
    /// The packet header's `uuid`: that of the metadata stream.
    MetadataStreamUuid,
    /// The packet header's `stream_id`.
    DataStreamClassId,
    /// The packet header's `stream_instance_id`.
    DataStreamId,
    /// The packet context's `packet_size`, in bits.
    PacketTotalLength,
    /// The packet context's `content_size`, in bits.
    PacketContentLength,
    /// The default clock's value at the beginning of a packet (`timestamp_begin`) or at an event record.
    DefaultClockTimestamp,
    /// The packet context's `timestamp_end`.
    PacketEndDefaultClockTimestamp,
    /// The packet context's `events_discarded`.
    DiscardedEventRecordCounterSnapshot,
    /// The packet context's `packet_seq_num`.
    PacketSequenceNumber,
    /// The event record header's `id`.
    EventRecordClassId,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 11] = [
        Role::PacketMagicNumber,
        Role::MetadataStreamUuid,
        Role::DataStreamClassId,
        Role::DataStreamId,
        Role::PacketTotalLength,
        Role::PacketContentLength,
        Role::DefaultClockTimestamp,
        Role::PacketEndDefaultClockTimestamp,
        Role::DiscardedEventRecordCounterSnapshot,
        Role::PacketSequenceNumber,
        Role::EventRecordClassId,
    ];

    /// Its name in CTF 2 metadata.
    pub fn name(self) -> &'static str {
        match self {
            Role::PacketMagicNumber => "packet-magic-number",
            Role::MetadataStreamUuid => "metadata-stream-uuid",
            Role::DataStreamClassId => "data-stream-class-id",
            Role::DataStreamId => "data-stream-id",
            Role::PacketTotalLength => "packet-total-length",
            Role::PacketContentLength => "packet-content-length",
            Role::DefaultClockTimestamp => "default-clock-timestamp",
            Role::PacketEndDefaultClockTimestamp => "packet-end-default-clock-timestamp",
            Role::DiscardedEventRecordCounterSnapshot => "discarded-event-record-counter-snapshot",
            Role::PacketSequenceNumber => "packet-sequence-number",
            Role::EventRecordClassId => "event-record-class-id",
        }
    }
}

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roles(u16);

impl Roles {
    /// No role.
    pub const NONE: Roles = Roles(0);

    /// Adds a role.
    #[must_use]
    pub const fn with(self, role: Role) -> Roles {
        Roles(self.0 | 1 << role as u16)
    }

    /// Whether `role` is in the set.
    pub const fn has(self, role: Role) -> bool {
        self.0 & 1 << role as u16 != 0
    }

    /// Whether the set has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles in the set, in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.has(*role))
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Roles {
        Roles::NONE.with(role)
    }
}
