//! What can be wrong in metadata of CTF 2.

use super::LimitFault;
use crate::model::Role;
use tracewing_units::Cycles;

/// Why a fragment is not CTF 2 metadata, or describes something impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonFault {
    /// A fragment is no JSON text.
    #[error("this is not JSON: {0}")]
    Syntax(ParserText),
    /// A JSON value that is well-formed and cannot be read, as a number that is too large.
    #[error(transparent)]
    Unreadable(ParserText),
    /// Another value than the specification has here.
    #[error("expected {expected}, found `{found}`")]
    Unexpected {
        /// What the specification has here.
        expected: Expected,
        /// What is here, or its beginning.
        found: String,
    },
    /// Something else is expected here.
    #[error("expected {0}")]
    Expected(Needed),
    /// Members of one name.
    #[error("a second `{0}` in one object")]
    SecondProperty(String),
    /// An object without a member that it needs.
    #[error("this object has no `{0}`")]
    NoProperty(String),
    /// A member that objects of this kind do not have.
    #[error("there is no property `{0}` here")]
    UnknownProperty(String),
    /// Attributes that are nested deeper than is read.
    #[error("attributes are nested more than {0} deep")]
    DeepAttributes(u32),
    /// An extension of the format.
    #[error("extensions of `{0}` change the format; none is known here")]
    Extension(String),
    /// More than one preamble.
    #[error("a second preamble; there can be one, at the beginning")]
    SecondPreamble,
    /// Another fragment before the preamble.
    #[error("expected the preamble, which is the first fragment")]
    NoPreamble,
    /// A fragment of a type that is not known.
    #[error(
        "unknown fragment type `{0}`; expected preamble, field-class-alias, trace-class, clock-class, \
         data-stream-class or event-record-class"
    )]
    FragmentType(String),
    /// Aliases of one name.
    #[error("a second field class alias called `{0}`")]
    SecondAlias(String),
    /// An alias that is not declared before.
    #[error("there is no field class alias called `{0}` before this")]
    NoAlias(String),
    /// More than one trace class.
    #[error("a second trace class; there can be one")]
    SecondTraceClass,
    /// The trace class comes after a data stream class.
    #[error("the trace class must come before all data stream classes")]
    LateTraceClass,
    /// Clock classes of one id.
    #[error("a second clock class with the id `{0}`")]
    SecondClock(String),
    /// A clock class that is not declared before.
    #[error("there is no clock class with the id `{0}` before this")]
    NoClock(String),
    /// A clock's offset has more cycles than a second.
    #[error("an offset of {cycles} cycles; expected less than a second ({frequency} cycles)")]
    ClockOffset {
        /// The offset's cycles.
        cycles: Cycles,
        /// Cycles of a second.
        frequency: u64,
    },
    /// Data stream classes of one id.
    #[error("a second data stream class with the id {0}")]
    SecondStream(u64),
    /// A data stream class that is not declared before.
    #[error("there is no data stream class with the id {0} before this")]
    NoStream(u64),
    /// No data stream class at all.
    #[error("expected a data stream class fragment; the metadata has none")]
    NoStreams,
    /// Event record classes of one id.
    #[error("a second event record class with the id {event} in the data stream class with the id {stream}")]
    SecondEvent {
        /// The event record class.
        event: u64,
        /// Its data stream class.
        stream: u64,
    },
    /// A role at a field that cannot have it.
    #[error("the role `{}` {fault}", role.name())]
    Role {
        /// The role.
        role: Role,
        /// Why the field cannot have this role.
        fault: RoleFault,
    },
    /// A field class of a type that is not known.
    #[error("unknown field class type `{0}`")]
    FieldClassType(String),
    /// Members of one name.
    #[error("a second member called `{0}`")]
    SecondMember(String),
    /// Options of one name.
    #[error("a second option called `{0}`")]
    SecondOption(String),
    /// A variant without options.
    #[error("a variant has at least one option")]
    NoOptions,
    /// A bit map without flags.
    #[error("a bit map has at least one flag")]
    NoFlags,
    /// A range that selects two options.
    #[error("[{first}, {last}] selects another option already")]
    Taken {
        /// First number of the range, inclusive.
        first: i128,
        /// Last number of the range, inclusive.
        last: i128,
    },
    /// A range that ends before it begins.
    #[error("the range from {first} to {last} is empty")]
    EmptyRange {
        /// First number of the range, inclusive.
        first: i128,
        /// Last number of the range, inclusive.
        last: i128,
    },
    /// A field location that leaves its scope.
    #[error("nothing contains the root of a scope")]
    AboveRoot,
    /// A base that is none.
    #[error("base {0}; expected 2, 8, 10 or 16")]
    Base(u64),
    /// A floating point number that is larger than is read.
    #[error("floating point numbers of {0} bits are not supported; of 128 are")]
    LargeFloat(u64),
    /// A floating point number of a size that is none.
    #[error("{0} bits; expected 16, 32, 64 or 128")]
    FloatSize(u64),
    /// More field classes than are read.
    #[error(transparent)]
    Limit(#[from] LimitFault),
}

/// A fault in the words of the JSON parser, `serde_json`, whose own error can be neither copied nor compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParserText(pub(crate) String);

/// What the specification has in a place where something else is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Expected {
    /// A JSON object.
    #[error("an object")]
    Object,
    /// A JSON array.
    #[error("an array")]
    Array,
    /// A JSON string.
    #[error("a string")]
    String,
    /// A number without fraction or exponent.
    #[error("an integer from {least} to {most}")]
    Integer {
        /// The least that it may be.
        least: i128,
        /// The greatest that it may be.
        most: i128,
    },
    /// One of some words.
    #[error("{}", quoted(_0))]
    Word(Vec<String>),
}

/// What a value of the right type is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Needed {
    /// The version of the format.
    #[error("CTF version 2")]
    Version,
    /// As many bytes as a UUID has.
    #[error("the 16 bytes of a UUID")]
    Uuid,
    /// A structure as a scope.
    #[error("a structure field class")]
    Structure,
    /// A number that can be an alignment.
    #[error("an alignment: a power of two, in bits")]
    Alignment,
    /// A range in a set.
    #[error("at least one range")]
    Ranges,
    /// The two ends of a range.
    #[error("a range: its first and its last integer")]
    Range,
    /// A path that ends with a name.
    #[error("a member's name at the end of the path")]
    PathEnd,
}

/// Why a field cannot have a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoleFault {
    /// Fields of other scopes have it.
    #[error("is not for fields of this scope")]
    Scope,
    /// There is no clock.
    #[error("needs a default clock class, which this data stream class lacks")]
    NoClock,
    /// The field has another size than a UUID.
    #[error("is for 16 bytes, not {0}")]
    UuidSize(u64),
    /// There is no UUID to repeat.
    #[error("needs a UUID in the preamble, which has none")]
    NoUuid,
    /// The field has another size than a magic number.
    #[error("is for 32 bits, not {0}")]
    MagicSize(u64),
    /// Another field is before it.
    #[error("is for the first member of the packet header")]
    LateMagic,
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
