//! What can be wrong with a trace class: what it declares, and no data stream can have; or what the other
//! version of CTF cannot declare.

use crate::model::Role;

/// Why the data streams of a trace class cannot be decoded, or it cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceClassFault {
    /// There are several data stream classes, but packets have no field that selects one.
    #[error("several streams, but the packet header has no `stream_id`")]
    NoStreamId,
    /// Streams of one id.
    #[error("two streams have the id {0}")]
    SameStreamId(u64),
    /// There are several event record classes, but event records have no field that selects one.
    #[error("several events, but the event header has no `id`")]
    NoEventId,
    /// Events of one id.
    #[error("two events have the id {0}")]
    SameEventId(u64),
    /// Names and ranges take too much memory.
    #[error("names and ranges of field classes take more than {0} bytes")]
    Memory(usize),
    /// Field classes are nested deeper than is decoded.
    #[error("field classes are nested more than {0} deep")]
    Depth(usize),
    /// An alignment that is none.
    #[error("alignment {0} is not a power of two")]
    Alignment(u32),
    /// A floating point number of a size that is none.
    #[error("a floating point number of {0} bits")]
    FloatSize(u32),
    /// An integer of a size that is none.
    #[error("an integer of {0} bits")]
    IntegerSize(u32),
    /// Bits of a number that is none.
    #[error("{0} bits; expected 1 to 64")]
    BitsSize(u32),
    /// A role's field that can be negative.
    #[error("this field must be unsigned")]
    Signed,
    /// A magic number of another size.
    #[error("a magic of {0} bits, expected 32")]
    MagicSize(u32),
    /// An optional's selector is a boolean, and has ranges.
    #[error("ranges of integers, but its selector is a boolean")]
    RangesOfBoolean,
    /// An optional's selector is an integer, and has no ranges.
    #[error("no ranges of integers, but its selector is an integer")]
    NoRanges,
    /// A variant's tag is a boolean.
    #[error("its tag is a boolean; expected an integer")]
    BooleanTag,
    /// A value of a variant's tag has the labels of two options.
    #[error("a value of its tag selects both `{first}` and `{second}`")]
    TwoOptions {
        /// Name of the option that is declared first.
        first: String,
        /// Name of the option that has the same label.
        second: String,
    },
    /// A variant's tag has no labels.
    #[error("the tag is not an enumeration")]
    NoEnumeration,
    /// A length is no unsigned integer.
    #[error("its length `{path}` is {found}; expected an unsigned integer")]
    Length {
        /// The field that says it.
        path: String,
        /// What that is: `a boolean`, `signed`.
        found: &'static str,
    },
    /// A length, a tag or a selector is not an integer.
    #[error("its {reference} `{path}` is no integer")]
    NoInteger {
        /// What the field is for.
        reference: Reference,
        /// Path of the field that it refers to.
        path: String,
    },
    /// A length, a tag or a selector is one of several fields, and these differ.
    #[error("its {reference} `{path}` is of another kind from option to option")]
    Mixed {
        /// What the field is for.
        reference: Reference,
        /// Path of the field that it refers to.
        path: String,
    },
    /// A length, a tag or a selector is not there, or only afterwards.
    #[error("its {reference} `{path}` is not an earlier field; expected an integer before it")]
    NoEarlierField {
        /// What the field is for.
        reference: Reference,
        /// Path of the field that it refers to.
        path: String,
    },
    /// A field refers to one that is not there.
    #[error("it refers to `{0}`, which is not an earlier field")]
    NoField(String),
    /// CTF 1.8 has no such numbers.
    #[error("readers of CTF 1.8 support no floating point numbers of 128 bits")]
    Float128,
    /// Members would be of one name.
    #[error("two of its members would be called `{0}` in CTF 1.8")]
    SameName(String),
    /// CTF 1.8 has roles by name, at the top only.
    #[error("in CTF 1.8, the role {} is only for members of the scope itself", .0.name())]
    NestedRole(Role),
    /// A selector that CTF 1.8 cannot have.
    #[error("its selector is neither a boolean nor an integer")]
    Selector,
    /// A selector that CTF 1.8 cannot name.
    #[error("a field selects another, and CTF 1.8 cannot say where it is")]
    Unreachable,
}

/// What one field refers to another for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reference {
    /// How many elements it has.
    #[error("length")]
    Length,
    /// Which of its options is there.
    #[error("tag")]
    Tag,
    /// Whether it is there.
    #[error("selector")]
    Selector,
}
