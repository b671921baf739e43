//! A trace class: everything that a CTF metadata stream says about its data streams.
//!
//! Build one from code with the constructors and chained setters, print it with [`tsdl::print`](crate::tsdl::print),
//! or get one from [`tsdl::parse`](crate::tsdl::parse). Nothing here checks that a class makes sense; a printer or
//! a decoder says so when it does not.

mod field;

pub use field::{
    ByteOrder, DisplayBase, DynamicArrayClass, Encoding, EnumerationClass, EnumerationMapping, FieldClass,
    FieldLocation, FloatClass, IntegerClass, Member, Scope, StaticArrayClass, StringClass, StructureClass,
    VariantClass,
};

/// Bytes of a UUID, in the order in which they are written in text.
pub type Uuid = [u8; 16];

/// What a metadata stream describes.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceClass {
    /// Identity of the trace; every packet header with a `uuid` field repeats it.
    pub uuid: Option<Uuid>,
    /// Byte order that the metadata declares as the trace's native one.
    ///
    /// Every field class carries its own; this one decides only how they are printed.
    pub byte_order: ByteOrder,
    /// The `env` block, in the order of the text.
    pub env: Vec<(String, EnvValue)>,
    /// Clocks to which integer field classes may be mapped by name.
    pub clock_classes: Vec<ClockClass>,
    /// Layout of the packet header, the same for all data streams.
    pub packet_header: Option<StructureClass>,
    /// Data stream classes; their ids differ.
    pub data_stream_classes: Vec<DataStreamClass>,
}

impl TraceClass {
    /// A little-endian trace class without anything in it.
    pub fn new() -> Self {
        TraceClass {
            uuid: None,
            byte_order: ByteOrder::Little,
            env: Vec::new(),
            clock_classes: Vec::new(),
            packet_header: None,
            data_stream_classes: Vec::new(),
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

    /// The clock class called `name`.
    pub fn clock_class(&self, name: &str) -> Option<&ClockClass> {
        self.clock_classes.iter().find(|clock| clock.name == name)
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

/// A clock (specification 1.8.3, section 8).
///
/// A value of `v` cycles is `offset_seconds + (offset_cycles + v) / frequency` seconds after the clock's origin,
/// which is the Unix epoch for most traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockClass {
    /// The name by which `map = clock.NAME.value` refers to it.
    pub name: String,
    /// Two clocks with one UUID are the same clock.
    pub uuid: Option<Uuid>,
    /// Free text.
    pub description: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    /// Uncertainty in cycles.
    pub precision: u64,
    /// Whole seconds from the origin to value 0.
    pub offset_seconds: i64,
    /// Cycles from there to value 0.
    pub offset_cycles: u64,
    /// Whether the clock is a global reference across the clocks of other traces.
    pub absolute: bool,
}

impl ClockClass {
    /// A clock of `frequency` cycles per second that starts at the origin.
    pub fn new(name: impl Into<String>, frequency: u64) -> Self {
        ClockClass {
            name: name.into(),
            uuid: None,
            description: None,
            frequency,
            precision: 0,
            offset_seconds: 0,
            offset_cycles: 0,
            absolute: false,
        }
    }

    /// Nanoseconds from the origin to the value `cycles`; `None` where an `i64` cannot hold them.
    ///
    /// The rounding is babeltrace2's, whose stamps a reader will compare with these: an offset in cycles of a second
    /// or more counts as whole seconds first, and where the frequency is not 1 GHz the rest goes through a double.
    pub fn nanoseconds(&self, cycles: u64) -> Option<i64> {
        let whole = self.offset_cycles.checked_div(self.frequency)?;
        let rest = self.offset_cycles % self.frequency;
        let seconds = self.offset_seconds.checked_add(i64::try_from(whole).ok()?)?;
        let base = seconds.checked_mul(1_000_000_000)?.checked_add_unsigned(self.span(rest))?;
        base.checked_add_unsigned(self.span(cycles))
    }

    /// Nanoseconds that `cycles` last.
    fn span(&self, cycles: u64) -> u64 {
        if self.frequency == 1_000_000_000 {
            cycles
        } else {
            (1e9 * cycles as f64 / self.frequency as f64) as u64
        }
    }
}

/// A data stream class (TSDL: `stream`): the layout shared by all its packets and event records.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataStreamClass {
    /// What the packet header's `stream_id` says; 0 where there is none.
    pub id: u64,
    /// Layout of the packet context.
    pub packet_context: Option<StructureClass>,
    /// Layout of the event record header.
    pub event_header: Option<StructureClass>,
    /// Layout of the context that all event records share (TSDL: `stream.event.context`).
    pub common_context: Option<StructureClass>,
    /// Event record classes; their ids differ.
    pub event_record_classes: Vec<EventRecordClass>,
}

impl DataStreamClass {
    /// A data stream class without anything in it.
    pub fn new(id: u64) -> Self {
        DataStreamClass { id, ..DataStreamClass::default() }
    }

    /// The event record class with this id.
    pub fn event_record_class(&self, id: u64) -> Option<&EventRecordClass> {
        self.event_record_classes.iter().find(|class| class.id == id)
    }
}

/// An event record class (TSDL: `event`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventRecordClass {
    /// What the event record header's `id` says; 0 where there is none.
    pub id: u64,
    /// The name shown to people, for example `sched_switch`.
    pub name: Option<String>,
    /// LTTng-UST's log level: 0 (emergency) to 14 (debug).
    pub log_level: Option<i64>,
    /// URI of the event's model (Eclipse Modeling Framework), as LTTng writes it.
    pub emf_uri: Option<String>,
    /// Layout of this class's own context (TSDL: `event.context`).
    pub specific_context: Option<StructureClass>,
    /// Layout of the payload (TSDL: `event.fields`).
    pub payload: Option<StructureClass>,
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
