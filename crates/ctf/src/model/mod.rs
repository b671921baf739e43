//! A trace class: everything that CTF metadata says about its data streams.
//!
//! One model for both versions, in CTF 2's terms. Features of only one version are marked.
//!
//! Build one from code with the constructors and chained setters, print it with
//! [`tsdl::print`](crate::tsdl::print), or get one from [`tsdl::parse`](crate::tsdl::parse). Nothing here
//! validates a class; printers and decoders report what is wrong with it.

mod attributes;
mod clock;
mod field;
mod location;
mod named_roles;
mod number;
mod place;
mod role;
mod text;

pub use attributes::{Attribute, Attributes};
pub use clock::{ClockClass, ClockOrigin};
pub use field::{
    DynamicArrayClass, FieldClass, Member, OptionalClass, StaticArrayClass, StructureClass, VariantClass,
    VariantOption,
};
pub use location::{FieldLocation, Origin, Scope};
pub use number::{
    BitArrayClass, BitMapClass, BitOrder, ByteOrder, DisplayBase, EnumerationClass, EnumerationMapping, Flag,
    FloatClass, IntegerClass,
};
pub use place::Place;
pub use role::{Role, Roles};
pub use text::{
    DEFAULT_MEDIA_TYPE, DynamicBlobClass, DynamicStringClass, Encoding, StaticBlobClass, StaticStringClass,
    StringClass,
};

/// Bytes of a UUID, in the order in which they are written in text.
pub type Uuid = [u8; 16];

/// What a metadata stream describes.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceClass {
    /// The CTF version of the metadata.
    pub version: Version,
    /// Identity of the metadata stream (TSDL: of the trace); every packet header with a `uuid` field repeats
    /// it.
    pub uuid: Option<Uuid>,
    /// Namespace of name and unique id (CTF 2).
    pub namespace: Option<String>,
    /// The trace's name (CTF 2).
    pub name: Option<String>,
    /// The trace's unique id (CTF 2).
    pub uid: Option<String>,
    /// Byte order that the metadata declares as the trace's native one.
    ///
    /// Every field class carries its own; this one decides only how TSDL prints them. CTF 2 has none.
    pub byte_order: ByteOrder,
    /// The `env` block, in the order of the text.
    pub env: Vec<(String, EnvValue)>,
    /// Clocks to which data stream classes refer by id.
    pub clock_classes: Vec<ClockClass>,
    /// Layout of the packet header, the same for all data streams.
    pub packet_header: Option<StructureClass>,
    /// Data stream classes; their ids differ.
    pub data_stream_classes: Vec<DataStreamClass>,
    /// User attributes.
    pub attributes: Attributes,
}

/// A version of the Common Trace Format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Version {
    /// CTF 1.8: metadata in TSDL.
    #[default]
    V1_8,
    /// CTF 2: metadata in JSON.
    V2,
}

impl TraceClass {
    /// A little-endian trace class without anything in it.
    pub fn new() -> Self {
        TraceClass {
            version: Version::V1_8,
            uuid: None,
            namespace: None,
            name: None,
            uid: None,
            byte_order: ByteOrder::Little,
            env: Vec::new(),
            clock_classes: Vec::new(),
            packet_header: None,
            data_stream_classes: Vec::new(),
            attributes: Attributes::default(),
        }
    }

    /// The value of the environment entry `name`.
    pub fn env(&self, name: &str) -> Option<&EnvValue> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Adds an environment entry, or replaces the one of that name.
    pub fn set_env(&mut self, name: impl Into<String>, value: impl Into<EnvValue>) {
        let (name, value) = (name.into(), value.into());
        match self.env.iter_mut().find(|(key, _)| *key == name) {
            Some(entry) => entry.1 = value,
            None => self.env.push((name, value)),
        }
    }

    /// The clock class with this id.
    pub fn clock_class(&self, id: &str) -> Option<&ClockClass> {
        self.clock_classes.iter().find(|clock| clock.id == id)
    }

    /// The data stream class with this id.
    pub fn data_stream_class(&self, id: u64) -> Option<&DataStreamClass> {
        self.data_stream_classes.iter().find(|class| class.id == id)
    }
}

impl Default for TraceClass {
    fn default() -> Self {
        TraceClass::new()
    }
}

/// A value of the `env` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// A string.
    String(String),
    /// An integer.
    Integer(i64),
}

impl From<&str> for EnvValue {
    fn from(value: &str) -> Self {
        EnvValue::String(value.to_owned())
    }
}

impl From<String> for EnvValue {
    fn from(value: String) -> Self {
        EnvValue::String(value)
    }
}

impl From<i64> for EnvValue {
    fn from(value: i64) -> Self {
        EnvValue::Integer(value)
    }
}

/// A data stream class (TSDL: `stream`): the layout shared by all its packets and event records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataStreamClass {
    /// The value of the packet header's `stream_id`; 0 if there is none.
    pub id: u64,
    /// Namespace of name and unique id (CTF 2).
    pub namespace: Option<String>,
    /// The name shown to people (CTF 2).
    pub name: Option<String>,
    /// Unique id (CTF 2).
    pub uid: Option<String>,
    /// The id of the clock class of its stamps. CTF 1.8 says it field by field:
    /// [`IntegerClass::mapped_clock`].
    pub default_clock: Option<String>,
    /// Layout of the packet context.
    pub packet_context: Option<StructureClass>,
    /// Layout of the event record header.
    pub event_header: Option<StructureClass>,
    /// Layout of the context that all event records share (TSDL: `stream.event.context`).
    pub common_context: Option<StructureClass>,
    /// Event record classes; their ids differ.
    pub event_record_classes: Vec<EventRecordClass>,
    /// User attributes.
    pub attributes: Attributes,
    /// Where it is declared.
    pub place: Place,
}

impl DataStreamClass {
    /// A data stream class without anything in it.
    pub fn new(id: u64) -> Self {
        DataStreamClass { id, ..DataStreamClass::default() }
    }

    /// The size in bits of the packet context's integer with this role.
    pub fn packet_context_bits(&self, role: Role) -> Option<u32> {
        self.packet_context.as_ref()?.role_bits(role)
    }

    /// The event record class with this id.
    pub fn event_record_class(&self, id: u64) -> Option<&EventRecordClass> {
        self.event_record_classes.iter().find(|class| class.id == id)
    }
}

/// An event record class (TSDL: `event`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventRecordClass {
    /// The value of the event record header's `id`; 0 if there is none.
    pub id: u64,
    /// Namespace of name and unique id (CTF 2).
    pub namespace: Option<String>,
    /// The name shown to people, for example `sched_switch`.
    pub name: Option<String>,
    /// Unique id (CTF 2).
    pub uid: Option<String>,
    /// LTTng-UST's log level: 0 (emergency) to 14 (debug).
    pub log_level: Option<i64>,
    /// URI of the event's model (Eclipse Modeling Framework), as LTTng writes it.
    pub emf_uri: Option<String>,
    /// Layout of this class's own context (TSDL: `event.context`).
    pub specific_context: Option<StructureClass>,
    /// Layout of the payload (TSDL: `event.fields`).
    pub payload: Option<StructureClass>,
    /// User attributes.
    pub attributes: Attributes,
    /// Where it is declared.
    pub place: Place,
}

impl EventRecordClass {
    /// An event record class with an empty payload.
    pub fn new(id: u64, name: impl Into<String>) -> Self {
        EventRecordClass { id, name: Some(name.into()), ..EventRecordClass::default() }
    }

    /// Sets the payload's layout.
    #[must_use]
    pub fn with_payload(mut self, payload: StructureClass) -> Self {
        self.payload = Some(payload);
        self
    }
}
