//! Field classes of numbers and bits: integers, enumerations, floating point numbers, booleans, bit arrays
//! and bit maps.

use std::sync::Arc;

use super::{Attributes, Encoding, Role, Roles};

/// Order in which the bytes of an integer or floating point number lie, and the bits of a packed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte (and, when packed, bit) first.
    Little,
    /// Most significant first; also called network byte order.
    Big,
}

/// Order in which the bits of each byte are taken (CTF 2 only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitOrder {
    /// Least significant bit first; what little-endian fields do unless they say otherwise.
    FirstToLast,
    /// Most significant bit first; what big-endian fields do unless they say otherwise.
    LastToFirst,
}

/// The base in which to show an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DisplayBase {
    /// Base 2.
    Binary,
    /// Base 8.
    Octal,
    /// Base 10.
    #[default]
    Decimal,
    /// Base 16.
    Hexadecimal,
}

/// An integer of 1 to 64 bits.
///
/// One of variable length ([`VariableInteger`](super::field::FieldClass::VariableInteger)) has size 64, and
/// neither byte nor bit order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegerClass {
    /// Size in bits, 1 to 64.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Whether it is two's complement.
    pub signed: bool,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Bit order, where it is not that of the byte order.
    pub bit_order: Option<BitOrder>,
    /// The base in which to show it.
    pub base: DisplayBase,
    /// Whether arrays of it are text (TSDL only).
    pub encoding: Encoding,
    /// The clock class whose value it carries (TSDL only; CTF 2 has [`Role::DefaultClockTimestamp`]).
    pub mapped_clock: Option<Arc<str>>,
    /// What it means to a reader.
    pub roles: Roles,
    /// User attributes.
    pub attributes: Attributes,
}

impl IntegerClass {
    /// A little-endian unsigned integer, shown in base 10; aligned to 8 bits where `size` is a multiple of 8,
    /// packed otherwise.
    pub fn unsigned(size: u32) -> Self {
        IntegerClass {
            size,
            align: if size.is_multiple_of(8) { 8 } else { 1 },
            signed: false,
            byte_order: ByteOrder::Little,
            bit_order: None,
            base: DisplayBase::Decimal,
            encoding: Encoding::None,
            mapped_clock: None,
            roles: Roles::NONE,
            attributes: Attributes::default(),
        }
    }

    /// The signed twin of [`IntegerClass::unsigned`].
    pub fn signed(size: u32) -> Self {
        IntegerClass { signed: true, ..IntegerClass::unsigned(size) }
    }

    /// Sets the alignment in bits.
    #[must_use]
    pub fn with_align(mut self, align: u32) -> Self {
        self.align = align;
        self
    }

    /// Sets the byte order.
    #[must_use]
    pub fn with_byte_order(mut self, byte_order: ByteOrder) -> Self {
        self.byte_order = byte_order;
        self
    }

    /// Sets the base in which it is shown.
    #[must_use]
    pub fn with_base(mut self, base: DisplayBase) -> Self {
        self.base = base;
        self
    }

    /// Makes arrays of it text.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Adds a role.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.roles = self.roles.with(role);
        self
    }

    /// Maps it to the clock class called `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: &str) -> Self {
        self.mapped_clock = Some(clock.into());
        self
    }
}

/// An IEEE 754 number of 16, 32, 64 or 128 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatClass {
    /// Size in bits: 16, 32, 64 or 128.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Bit order, where it is not that of the byte order.
    pub bit_order: Option<BitOrder>,
    /// User attributes.
    pub attributes: Attributes,
}

impl FloatClass {
    /// A little-endian, byte-aligned number of `size` bits.
    pub fn new(size: u32) -> Self {
        FloatClass {
            size,
            align: 8,
            byte_order: ByteOrder::Little,
            bit_order: None,
            attributes: Attributes::default(),
        }
    }
}

/// Bits of fixed length: a bit array by itself, the bits of a boolean, of a bit map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitArrayClass {
    /// Size in bits, 1 to 64.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Byte order.
    pub byte_order: ByteOrder,
    /// Bit order, where it is not that of the byte order.
    pub bit_order: Option<BitOrder>,
    /// User attributes.
    pub attributes: Attributes,
}

impl BitArrayClass {
    /// `size` little-endian bits without alignment.
    pub fn new(size: u32) -> Self {
        BitArrayClass {
            size,
            align: 1,
            byte_order: ByteOrder::Little,
            bit_order: None,
            attributes: Attributes::default(),
        }
    }
}

/// A bit array whose bits have names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitMapClass {
    /// The bit array that the names apply to.
    pub bits: BitArrayClass,
    /// The names, in order of declaration.
    pub flags: Vec<Flag>,
}

/// A name of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The flag's name.
    pub name: String,
    /// First and last bit of each range, counted from the least significant one.
    pub ranges: Vec<(u64, u64)>,
}

impl BitMapClass {
    /// The flags that have a bit set in `bits`, in order of declaration.
    pub fn active(&self, bits: u64) -> impl Iterator<Item = &str> {
        let within = move |&(first, last): &(u64, u64)| {
            first < 64 && (bits >> first) & (u64::MAX >> (63 - last.min(63).saturating_sub(first))) != 0
        };
        let flags = self.flags.iter().filter(move |flag| flag.ranges.iter().any(within));
        flags.map(|flag| flag.name.as_str())
    }
}

/// An integer whose values have labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumerationClass {
    /// The integer that is stored.
    pub integer: IntegerClass,
    /// The labels; ranges may overlap.
    pub mappings: Vec<EnumerationMapping>,
}

/// A label and the values that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumerationMapping {
    /// The label of these values.
    pub label: String,
    /// First and last value of each range; they fit the integer's 64 bits, signed or not.
    pub ranges: Vec<(i128, i128)>,
}

impl EnumerationClass {
    /// An enumeration without labels.
    pub fn new(integer: IntegerClass) -> Self {
        EnumerationClass { integer, mappings: Vec::new() }
    }

    /// Adds a label for the values `first` to `last`; a label that is there already gets one more range.
    #[must_use]
    pub fn with(mut self, label: impl Into<String>, first: impl Into<i128>, last: impl Into<i128>) -> Self {
        self.add(label.into(), first.into(), last.into());
        self
    }

    /// As [`EnumerationClass::with`], in place.
    pub fn add(&mut self, label: String, first: i128, last: i128) {
        match self.mappings.iter_mut().find(|mapping| mapping.label == label) {
            Some(mapping) => mapping.ranges.push((first, last)),
            None => self.mappings.push(EnumerationMapping { label, ranges: vec![(first, last)] }),
        }
    }

    /// The labels of `value`, in order of declaration.
    pub fn labels(&self, value: i128) -> impl Iterator<Item = &str> {
        self.mappings
            .iter()
            .filter(move |mapping| {
                mapping.ranges.iter().any(|&(first, last)| first <= value && value <= last)
            })
            .map(|mapping| mapping.label.as_str())
    }
}
