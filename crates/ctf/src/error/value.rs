//! Why a value cannot be written.

use tracewing_units::Cycles;

/// Why a value does not fit its field, or an event record its class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueFault {
    /// The value is of another kind than the field.
    #[error("{value}, but the class has {class}")]
    Kind {
        /// What is to be written: `an integer`, `text`.
        value: &'static str,
        /// What the class has.
        class: &'static str,
    },
    /// An integer has more bits than its field.
    #[error("{value} does not fit in {bits} {} bits", sign(*signed))]
    LargeInteger {
        /// The integer that does not fit.
        value: i128,
        /// Bits of the field.
        bits: u32,
        /// Whether the field is signed.
        signed: bool,
    },
    /// An integer is none that a field of variable length can have.
    #[error("{value} is no {} integer of 64 bits", sign(*signed))]
    LargeVariable {
        /// The integer that does not fit.
        value: i128,
        /// Whether the field is signed.
        signed: bool,
    },
    /// A floating point number would change.
    #[error("{value} is no floating point number of {bits} bits")]
    Inexact {
        /// The number in decimal.
        value: String,
        /// Bits of the field.
        bits: u32,
    },
    /// A floating point number is of another format than its field.
    #[error("the class has a floating point number of {bits} bits, which takes one of just that size")]
    FloatSize {
        /// Bits of the field.
        bits: u32,
    },
    /// Text cannot be encoded as its field asks.
    #[error("text that is not UTF-8, but the class has another encoding")]
    Encoding,
    /// Text would end earlier for its readers.
    #[error("a string with a null in it")]
    Null,
    /// Text is longer than its field.
    #[error("{text} bytes of text, but there is room for {room}")]
    LongText {
        /// Bytes of the text.
        text: usize,
        /// Bytes of the field.
        room: u64,
    },
    /// Text is so much shorter than its field that this is taken for a mistake.
    #[error("the length field says {room}, but there are {text} bytes of text")]
    ShortText {
        /// Bytes of the text.
        text: usize,
        /// Bytes of the field.
        room: u64,
    },
    /// Another number of elements than is declared.
    #[error("{elements} elements, but {} says {expected}", if *fixed { "the class" } else { "the length field" })]
    Length {
        /// Elements that are there.
        elements: u64,
        /// Elements that are declared.
        expected: u64,
        /// Whether the class declares them, and not another field.
        fixed: bool,
    },
    /// An array ends before all its elements are there.
    #[error("{there} elements instead of {expected}")]
    FewElements {
        /// Elements that are there.
        there: u64,
        /// Elements that were announced.
        expected: u64,
    },
    /// Fields of both byte orders share a byte.
    #[error("its byte order differs from that of the field in the same byte")]
    Mixed,
    /// The tag of a variant or an optional selects nothing.
    #[error("{0}, but its tag selects nothing")]
    NothingSelected(&'static str),
    /// The option is not the one that the tag selects.
    #[error("option `{option}`, but the tag selects `{selected}`")]
    OtherOption {
        /// The option.
        option: String,
        /// The one that the tag selects.
        selected: String,
    },
    /// An optional's selector says otherwise.
    #[error("a field that {}, but its selector says that it {}", is(*present), is(!*present))]
    Presence {
        /// Whether the field is there.
        present: bool,
    },
    /// An optional is not there, and its tag says that it is.
    #[error("an optional that is absent, but its tag says that it is present")]
    Absent,
    /// A field's tag selects no option.
    #[error("its tag selects no option")]
    NoOption,
    /// A compound has not ended.
    #[error("it is not closed")]
    Open,
    /// An optional or variant without its value.
    #[error("there is no value")]
    NoValue,
    /// Something else than a byte, among bytes.
    #[error("what is no byte")]
    NoByte,
    /// A field that the class does not have.
    #[error("{}, which the class does not have here", field(_0.as_deref()))]
    Surplus(Option<String>),
    /// A field that the class has, and the event record does not.
    #[error("`{0}` is missing")]
    Missing(String),
    /// A second packet of a class whose packets have no sizes.
    #[error("it has no sizes, so that there can be one packet only")]
    OnePacket,
    /// Padding of a class whose packets have no content size.
    #[error("it has no content size, so padding and event records look alike")]
    Padding,
    /// A packet is larger than its size field can say.
    #[error("the packet has {packet} bits, which do not fit in {bits} bits")]
    LargePacket {
        /// Bits of the packet or its content.
        packet: u64,
        /// Bits of the field.
        bits: u32,
    },
    /// An event record without a bit.
    #[error("the event record has no size, which no reader accepts")]
    NoSize,
    /// No form of the event header can hold the values.
    #[error("it has no form that holds the id {id}{}", stamp.map_or_else(String::new, |stamp| format!(" and the stamp {stamp}")))]
    NoHeader {
        /// The class's id.
        id: u64,
        /// The stamp, if one is to be written.
        stamp: Option<Cycles>,
    },
}

fn sign(signed: bool) -> &'static str {
    if signed { "signed" } else { "unsigned" }
}

fn is(present: bool) -> &'static str {
    if present { "is there" } else { "is not there" }
}

fn field(name: Option<&str>) -> String {
    name.map_or_else(|| "one more field".to_owned(), |name| format!("`{name}`"))
}
