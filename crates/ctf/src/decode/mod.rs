//! Decodes data streams: packets, then their event records one by one, as views into the bytes.
//!
//! [`Decoder`] compiles a trace class once into flat programs: names are looked up, references between fields
//! become slots, field classes of known size become one step. [`StreamReader`] walks a data stream with it.
//! Stepping to the next event record only reads fields that move the clock, select the class or determine a
//! size; everything else is decoded on request.
//!
//! Every read is checked against the packet's content. A failure is an
//! [`Error::Packet`](crate::Error::Packet) with its position; everything before it has been delivered.
//!
//! ```
//! use std::sync::Arc;
//! use tracewing_ctf::decode::{Decoder, Step, StreamReader, Value};
//! use tracewing_ctf::model::Scope;
//!
//! let metadata = b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
//!     event { name = tick; fields := struct { integer { size = 16; } n; }; };";
//! let class = tracewing_ctf::tsdl::parse(metadata)?;
//! let mut reader = StreamReader::new(Decoder::new(Arc::new(class))?, [1, 0, 2, 0]);
//! let mut numbers = Vec::new();
//! loop {
//!     match reader.advance()? {
//!         Step::Event => match reader.event().field(Scope::Payload, "n") {
//!             Some(Value::Unsigned(number, _)) => numbers.push(number),
//!             _ => unreachable!(),
//!         },
//!         Step::End => break,
//!         Step::Packet | Step::PacketEnd => {}
//!     }
//! }
//! assert_eq!(numbers, [1, 2]);
//! # Ok::<(), tracewing_ctf::Error>(())
//! ```

mod begin;
mod bits;
mod bounds;
mod compile;
mod compiler;
mod event;
mod fault;
mod fields;
mod header;
mod layout;
mod layout_builder;
mod load;
mod member;
pub(crate) mod packet;
mod path;
mod place;
pub(crate) mod program;
mod read;
mod reader;
mod record;
mod refer;
mod resolve;
mod search;
pub(crate) mod sink;
mod skip;
mod unwalked;
mod walk;
mod wide_text;
mod window;

pub use compile::Decoder;
pub use event::Event;
pub use member::MemberHandle;
pub use packet::{Loss, Packet};
pub use path::{PathHandle, PathStep};
pub use reader::{Position, Stand, Step, StreamReader, Stretch};
pub use record::{Record, RecordField};
pub use wide_text::WideText;

use crate::model::{BitArrayClass, BitMapClass, EnumerationClass, IntegerClass, StructureClass};

/// The value of a field that is no compound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer.
    Unsigned(u64, &'a IntegerClass),
    /// A signed integer.
    Signed(i64, &'a IntegerClass),
    /// An enumeration of unsigned integers; [`EnumerationClass::labels`] has its labels.
    UnsignedEnumeration(u64, &'a EnumerationClass),
    /// An enumeration of signed integers.
    SignedEnumeration(i64, &'a EnumerationClass),
    /// A floating point number of 32 bits.
    Float32(f32),
    /// A floating point number of 64 bits.
    Float64(f64),
    /// A floating point number of 128 bits: its bits (IEEE 754 binary128).
    Float128(u128),
    /// A boolean.
    Boolean(bool),
    /// Bits, the first one least significant.
    BitArray(u64, &'a BitArrayClass),
    /// Bits with names; [`BitMapClass::active`] has those of the set ones.
    BitMap(u64, &'a BitMapClass),
    /// A string, or an array of text bytes up to its first null. It may hold anything, not only valid UTF-8.
    Text(&'a [u8]),
    /// A string in UTF-16 or UTF-32 up to its first null.
    WideText(WideText<'a>),
    /// Bytes without a meaning of their own.
    Blob(&'a [u8]),
}

impl Value<'_> {
    /// A floating point number of any size, rounded to 64 bits.
    pub fn real(&self) -> Option<f64> {
        match *self {
            Value::Float32(number) => Some(number.into()),
            Value::Float64(number) => Some(number),
            Value::Float128(bits) => Some(bits::float128(bits)),
            _ => None,
        }
    }
}

/// What kind of compound begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compound<'a> {
    /// A structure; its members follow in order.
    Structure(&'a StructureClass),
    /// An array or a sequence; its elements follow, without names.
    Array {
        /// Number of elements.
        length: u64,
    },
    /// An optional; its field follows if it is there, with the optional's name.
    Optional {
        /// Whether it is there.
        present: bool,
    },
    /// A variant; the selected option follows, with its name.
    Variant {
        /// The selected option.
        option: &'a str,
    },
}

/// Is shown the fields of a scope, in order.
///
/// A scope's own structure is not announced: its members come at once.
pub trait Visitor {
    /// A value; elements of arrays have no name.
    fn value(&mut self, name: Option<&str>, value: Value<'_>);
    /// A compound begins.
    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>);
    /// The innermost compound ends.
    fn end(&mut self, compound: Compound<'_>);
}
