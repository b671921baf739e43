//! Field classes: the layout of one value (specification 1.8.3, section 4; CTF2-SPEC-2.0, field classes).
//!
//! Sizes and alignments are in bits. Compound classes are shared by reference count, so a clone is cheap.

mod compound;

use std::sync::Arc;

use super::{
    BitArrayClass, BitMapClass, DynamicBlobClass, DynamicStringClass, Encoding, EnumerationClass,
    FieldLocation, FloatClass, IntegerClass, StaticBlobClass, StaticStringClass, StringClass,
};
pub use compound::{
    DynamicArrayClass, Member, OptionalClass, StaticArrayClass, StructureClass, VariantClass, VariantOption,
};

/// The type of a field: how its bits are laid out, and what they mean.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldClass {
    /// Bits that mean nothing by themselves (CTF 2).
    BitArray(BitArrayClass),
    /// Bits, some of them with names (CTF 2).
    BitMap(Arc<BitMapClass>),
    /// A boolean: false if all bits are 0 (CTF 2).
    Boolean(BitArrayClass),
    /// An integer of fixed length.
    Integer(IntegerClass),
    /// An integer of variable length: LEB128 (CTF 2).
    VariableInteger(IntegerClass),
    /// A floating point number.
    Float(FloatClass),
    /// An integer of fixed length whose values have labels (CTF 2: one with mappings).
    Enumeration(Arc<EnumerationClass>),
    /// An integer of variable length whose values have labels (CTF 2).
    VariableEnumeration(Arc<EnumerationClass>),
    /// A null-terminated string.
    String(StringClass),
    /// A string in a known number of bytes (CTF 2; TSDL has a [`StaticArray`](Self::StaticArray) of text
    /// bytes).
    StaticString(Arc<StaticStringClass>),
    /// A string in as many bytes as an earlier field says (CTF 2; TSDL has a
    /// [`DynamicArray`](Self::DynamicArray) of text bytes).
    DynamicString(Arc<DynamicStringClass>),
    /// A known number of bytes (CTF 2).
    StaticBlob(Arc<StaticBlobClass>),
    /// As many bytes as an earlier field says (CTF 2).
    DynamicBlob(Arc<DynamicBlobClass>),
    /// Named members, one after the other.
    Structure(Arc<StructureClass>),
    /// A known number of elements.
    StaticArray(Arc<StaticArrayClass>),
    /// As many elements as an earlier field says (TSDL: sequence).
    DynamicArray(Arc<DynamicArrayClass>),
    /// A field that is there or not, as an earlier field says (CTF 2).
    Optional(Arc<OptionalClass>),
    /// The one option that an earlier field selects.
    Variant(Arc<VariantClass>),
}

impl FieldClass {
    /// A little-endian unsigned integer; see [`IntegerClass::unsigned`].
    pub fn unsigned(size: u32) -> Self {
        IntegerClass::unsigned(size).into()
    }

    /// A little-endian signed integer; see [`IntegerClass::signed`].
    pub fn signed(size: u32) -> Self {
        IntegerClass::signed(size).into()
    }

    /// A little-endian, byte-aligned floating point number of 32 or 64 bits.
    pub fn float(size: u32) -> Self {
        FloatClass::new(size).into()
    }

    /// A null-terminated UTF-8 string.
    pub fn string() -> Self {
        FieldClass::String(StringClass::new(Encoding::Utf8))
    }

    /// `length` elements of one class.
    pub fn array(element: impl Into<FieldClass>, length: u64) -> Self {
        FieldClass::StaticArray(Arc::new(StaticArrayClass::new(length, element)))
    }

    /// As many elements as the unsigned integer field at `length` says.
    pub fn sequence(element: impl Into<FieldClass>, length: impl Into<FieldLocation>) -> Self {
        FieldClass::DynamicArray(Arc::new(DynamicArrayClass::new(length, element)))
    }

    /// Alignment in bits of the class's first bit (specification 1.8.3, sections 4.1.2 and 4.2;
    /// CTF2-SPEC-2.0, alignment requirement of an instance of a field class).
    pub fn alignment(&self) -> u32 {
        match self {
            FieldClass::BitArray(class) | FieldClass::Boolean(class) => class.align,
            FieldClass::BitMap(class) => class.bits.align,
            FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.align,
            FieldClass::Float(class) => class.align,
            FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => class.integer.align,
            FieldClass::String(_)
            | FieldClass::StaticString(_)
            | FieldClass::DynamicString(_)
            | FieldClass::StaticBlob(_)
            | FieldClass::DynamicBlob(_) => 8,
            FieldClass::Structure(class) => class.alignment(),
            FieldClass::StaticArray(class) => class.min_align.max(class.element.alignment()),
            FieldClass::DynamicArray(class) => class.min_align.max(class.element.alignment()),
            FieldClass::Optional(_) | FieldClass::Variant(_) => 1,
        }
    }
}

impl From<IntegerClass> for FieldClass {
    fn from(class: IntegerClass) -> Self {
        FieldClass::Integer(class)
    }
}

impl From<FloatClass> for FieldClass {
    fn from(class: FloatClass) -> Self {
        FieldClass::Float(class)
    }
}

impl From<EnumerationClass> for FieldClass {
    fn from(class: EnumerationClass) -> Self {
        FieldClass::Enumeration(Arc::new(class))
    }
}
