//! What can be wrong in metadata of CTF 1.8.

use super::LimitFault;

/// Why a text is not TSDL, or describes something impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsdlFault {
    /// A character that begins no token.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// A character literal of another length.
    #[error("a character literal holds one byte")]
    CharacterLiteral,
    /// A comment without end.
    #[error("this comment has no end; expected `*/`")]
    OpenComment,
    /// A literal without end.
    #[error("this literal has no end; expected `{0}` on the same line")]
    OpenLiteral(char),
    /// A number that is too large, or none.
    #[error("`{0}` is not an integer of 64 bits")]
    Number(String),
    /// A backslash before another character.
    #[error("unknown escape `\\{0}`")]
    UnknownEscape(char),
    /// An escape that is no byte.
    #[error("this escape is above 255")]
    LargeEscape,
    /// Another token than the grammar has here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What the grammar has here.
        expected: TsdlNeeded,
        /// The token that was found.
        found: String,
    },
    /// Another token than the sign that the grammar has here.
    #[error("expected `{expected}`, found {found}")]
    NoSign {
        /// The sign that was expected.
        expected: &'static str,
        /// The token that was found.
        found: String,
    },
    /// A keyword as a name.
    #[error("`{keyword}` is a keyword; expected {expected}")]
    Keyword {
        /// The keyword that was found.
        keyword: String,
        /// What the grammar has here.
        expected: TsdlNeeded,
    },
    /// A block without end.
    #[error("this block has no end; expected `}}`")]
    OpenBlock,
    /// An attribute that blocks of this kind do not have: a warning, not an error.
    #[error("unknown attribute `{attribute}` of `{block}`; it is ignored")]
    UnknownAttribute {
        /// Name of the attribute.
        attribute: String,
        /// The kind of block.
        block: TsdlBlock,
    },
    /// An attribute's value is of another kind.
    #[error("`{attribute}` is {expected}")]
    Value {
        /// Name of the attribute.
        attribute: String,
        /// The values that the attribute accepts.
        expected: TsdlNeeded,
    },
    /// Something else is expected here.
    #[error("expected {0}")]
    Expected(TsdlNeeded),
    /// An attribute that is there already.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// A block without an attribute that it needs.
    #[error("this {0}")]
    Missing(TsdlMissing),
    /// Another version.
    #[error("CTF version {major}.{minor}, expected 1.8")]
    Version {
        /// Major version that the input states.
        major: u64,
        /// Minor version that the input states.
        minor: u64,
    },
    /// The packet header's magic is not its first field.
    #[error("`magic` must be the first field of the packet header")]
    LateMagic,
    /// The environment has a structure.
    #[error("an environment has no `{0}`")]
    EnvironmentClass(String),
    /// A clock has a field class.
    #[error("a clock has no field classes")]
    ClockClass,
    /// A clock does not tick.
    #[error("a clock's frequency is not 0")]
    NoFrequency,
    /// A clock begins before all times.
    #[error("with `offset_s` this is before what 64 bits of seconds can say")]
    ClockOffset,
    /// The metadata's packets are of another byte order than its trace.
    #[error("the metadata's packets are not in the trace's `byte_order`")]
    PacketsByteOrder,
    /// More than one block of the trace.
    #[error("a second `trace` block; there can be one")]
    SecondTrace,
    /// No block of the trace.
    #[error("there is no `trace` block")]
    NoTrace,
    /// Clocks of one name.
    #[error("a second clock called `{0}`")]
    SecondClock(String),
    /// A clock that is not declared.
    #[error("there is no clock called `{0}`")]
    NoClock(String),
    /// Streams of one id.
    #[error("a second stream with id {0}")]
    SecondStream(u64),
    /// A reference that fits several fields.
    #[error("`{0}` may be several fields, whose names differ by underscores before them only")]
    Ambiguous(String),
    /// An event whose stream is not known.
    #[error("this event has no `stream_id`, and there are several streams")]
    NoStreamId,
    /// An event in a stream that is not declared.
    #[error("this event is in stream {0}, which does not exist")]
    NoStream(u64),
    /// One of several events without id.
    #[error("this event has no `id`, and its stream has several events")]
    NoEventId,
    /// A field whose name has a meaning, but whose class does not fit it.
    #[error("`{field}` must be {expected}")]
    FieldWithMeaning {
        /// Name of the field.
        field: String,
        /// The field class that it must have.
        expected: TsdlNeeded,
    },
    /// A type that is not declared.
    #[error("there is no `{kind} {name}`")]
    NoType {
        /// What it would be.
        kind: TsdlType,
        /// Name that is not declared.
        name: String,
    },
    /// A field class that is not declared.
    #[error("there is no field class called `{0}`")]
    NoFieldClass(String),
    /// A type that is there already.
    #[error("`{0}` is declared twice in this scope")]
    SecondType(String),
    /// A variant without tag.
    #[error("this variant has no tag; expected `<TAG>`")]
    NoTag,
    /// A variant's tag that the structure around it has as something else.
    #[error("the tag `{0}` is not an enumeration")]
    TagIsNoEnumeration(String),
    /// A variant none of whose options can be selected.
    #[error("no option of this variant is a label of its tag `{0}`")]
    NoOption(String),
    /// A type where a length belongs.
    #[error("`{0}` is a type; expected a length or the name of a field")]
    TypeAsLength(String),
    /// Stamps of several clocks in one data stream class.
    #[error("stream {stream} has stamps of the clocks `{first}` and `{second}`; expected one clock")]
    TwoClocks {
        /// The data stream class' id.
        stream: u64,
        /// The first clock's name.
        first: String,
        /// The second clock's name.
        second: String,
    },
    /// Members of one name.
    #[error("a second member called `{0}`")]
    SecondMember(String),
    /// An integer without bits.
    #[error("an integer of 0 bits; it has at least 1")]
    NoBits,
    /// An integer with more bits than are read.
    #[error("an integer of {0} bits; those of more than 64 are not read")]
    ManyBits(u64),
    /// A floating point number of a format that is not read.
    #[error(
        "exp_dig = {exponent} and mant_dig = {mantissa}; expected 8 and 24 (32 bits) or 11 and 53 (64 bits)"
    )]
    Float {
        /// Bits of the exponent.
        exponent: u64,
        /// Bits of the mantissa, with the implicit one.
        mantissa: u64,
    },
    /// An alignment that is none.
    #[error("an alignment is a power of two, in bits")]
    Alignment,
    /// A base that is none.
    #[error("base {0}; expected 2, 8, 10 or 16")]
    Base(String),
    /// An encoding that is not known.
    #[error("encoding `{0}`; expected none, UTF8 or ASCII")]
    Encoding(String),
    /// An enumeration without an integer.
    #[error("this enumeration has no container, and there is no `int`")]
    NoContainer,
    /// An enumeration of something else.
    #[error("an enumeration's container is an integer")]
    Container,
    /// An enumeration without labels.
    #[error("this enumeration has no labels")]
    NoLabels,
    /// A range that ends before it begins.
    #[error("the range {first} ... {last} is empty")]
    EmptyRange {
        /// First number of the range, inclusive.
        first: i128,
        /// Last number of the range, inclusive.
        last: i128,
    },
    /// A range with numbers that the enumeration's integer cannot have.
    #[error("{} does not fit the container, which holds {least} to {most}", range(*first, *last))]
    LargeRange {
        /// First number of the range, inclusive.
        first: i128,
        /// Last number of the range, inclusive.
        last: i128,
        /// The least number that the integer can have.
        least: i128,
        /// The greatest number that the integer can have.
        most: i128,
    },
    /// More field classes than are read.
    #[error(transparent)]
    Limit(#[from] LimitFault),
}

/// What CTF 1.8 has in a place where something else is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsdlNeeded {
    /// What a document consists of.
    #[error("`trace`, `env`, `clock`, `stream`, `event`, `callsite` or a field class")]
    Statement,
    /// A name that is no keyword.
    #[error("a name")]
    Name,
    /// The name of a field that is no keyword.
    #[error("a field's name")]
    FieldName,
    /// A reference to a field.
    #[error("a field")]
    Field,
    /// The new name of a field class.
    #[error("the alias")]
    Alias,
    /// A field class.
    #[error("a field class")]
    FieldClass,
    /// What a field class has between braces.
    #[error("an attribute or `}}`")]
    Attribute,
    /// What a block has between braces.
    #[error("an attribute, a field class or `}}`")]
    BlockItem,
    /// What follows `struct`, `variant` or `enum`.
    #[error("a name or `{{`")]
    NameOrBody,
    /// What an enumeration has between braces.
    #[error("a label or `}}`")]
    Label,
    /// What follows the name of an attribute or a scope.
    #[error("`=` or `:=`")]
    Assignment,
    /// The right side of an attribute.
    #[error("a value")]
    Value,
    /// Text as the right side of an attribute.
    #[error("a string")]
    Text,
    /// One of two words as the right side of an attribute.
    #[error("`true` or `false`")]
    Truth,
    /// An integer field class.
    #[error("an integer")]
    Integer,
    /// A number that is not negative, or a field class with such numbers.
    #[error("an unsigned integer")]
    Unsigned,
    /// A number that `i64` can hold.
    #[error("a signed integer of 64 bits")]
    Signed64,
    /// A number that `i64` or `u64` can hold.
    #[error("an integer of 64 bits")]
    Integer64,
    /// The field class of a magic number.
    #[error("an unsigned integer of 32 bits")]
    Unsigned32,
    /// The field class of a UUID.
    #[error("an array of 16 unsigned integers of 8 bits")]
    UuidClass,
    /// The text of a UUID.
    #[error("a UUID, as \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"")]
    Uuid,
    /// The byte order of a field class.
    #[error("`le`, `be`, `network` or `native`")]
    ByteOrder,
    /// The byte order of a trace.
    #[error("`le`, `be` or `network`")]
    TraceByteOrder,
    /// The clock of a stamp.
    #[error("`clock.NAME.value`")]
    Clock,
    /// The field class of a scope.
    #[error("a `struct`")]
    Structure,
}

/// What has attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsdlBlock {
    /// The trace.
    #[error("trace")]
    Trace,
    /// A clock.
    #[error("clock")]
    Clock,
    /// A data stream class.
    #[error("stream")]
    Stream,
    /// An event record class.
    #[error("event")]
    Event,
    /// An integer field class.
    #[error("integer")]
    Integer,
    /// A field class of floating point numbers.
    #[error("floating_point")]
    Float,
    /// A field class of text.
    #[error("string")]
    Text,
}

/// What lacks an attribute that it needs, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsdlMissing {
    /// The version of the format.
    #[error("`trace` block has no `major` and `minor` version")]
    Version,
    /// The trace's byte order.
    #[error("`trace` block has no `byte_order`")]
    ByteOrder,
    /// The name of a clock.
    #[error("clock has no `name`")]
    ClockName,
    /// The name of an event: a warning, not an error.
    #[error("event has no `name`")]
    EventName,
    /// The size of an integer field class.
    #[error("integer has no `size`")]
    Size,
}

/// Field classes that are declared with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TsdlType {
    /// A structure.
    #[error("struct")]
    Structure,
    /// A variant.
    #[error("variant")]
    Variant,
    /// An enumeration.
    #[error("enum")]
    Enumeration,
}

fn range(first: i128, last: i128) -> String {
    if first == last { first.to_string() } else { format!("{first} ... {last}") }
}
