//! Field classes: the layout of one value (specification 1.8.3, section 4).
//!
//! Sizes and alignments are in bits. Compound classes are shared by reference count, so a clone is cheap.

use std::sync::Arc;

/// Order in which the bytes of an integer or floating point number lie, and the bits of a packed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte (and, when packed, bit) first.
    Little,
    /// Most significant first; also called network byte order.
    Big,
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

/// What the bytes of a string, or of an array of small integers, stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// Numbers, not text.
    #[default]
    None,
    /// UTF-8 text.
    Utf8,
    /// ASCII text.
    Ascii,
}

/// A field class.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldClass {
    /// An integer.
    Integer(IntegerClass),
    /// A floating point number.
    Float(FloatClass),
    /// An integer whose values have labels.
    Enumeration(Arc<EnumerationClass>),
    /// A null-terminated string.
    String(StringClass),
    /// Named members, one after the other.
    Structure(Arc<StructureClass>),
    /// A known number of elements.
    StaticArray(Arc<StaticArrayClass>),
    /// As many elements as an earlier field says (TSDL: sequence).
    DynamicArray(Arc<DynamicArrayClass>),
    /// The one option whose name is the label of an earlier enumeration field.
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
        FieldClass::String(StringClass { encoding: Encoding::Utf8 })
    }

    /// `length` elements of one class.
    pub fn array(element: impl Into<FieldClass>, length: u64) -> Self {
        FieldClass::StaticArray(Arc::new(StaticArrayClass { length, element: element.into() }))
    }

    /// As many elements as the unsigned integer field at `length` says.
    pub fn sequence(element: impl Into<FieldClass>, length: impl Into<FieldLocation>) -> Self {
        FieldClass::DynamicArray(Arc::new(DynamicArrayClass {
            length: length.into(),
            element: element.into(),
        }))
    }

    /// Alignment in bits of the class's first bit (specification 4.1.2, 4.2).
    pub fn alignment(&self) -> u32 {
        match self {
            FieldClass::Integer(class) => class.align,
            FieldClass::Float(class) => class.align,
            FieldClass::Enumeration(class) => class.integer.align,
            FieldClass::String(_) => 8,
            FieldClass::Structure(class) => class.alignment(),
            FieldClass::StaticArray(class) => class.element.alignment(),
            FieldClass::DynamicArray(class) => class.element.alignment(),
            FieldClass::Variant(_) => 1,
        }
    }
}

/// Where an earlier field is: the length of a sequence, the tag of a variant.
///
/// Without an origin the first name is looked up from the innermost structure around the reference outwards, then in
/// the scopes before it, nearest first (specification 7.3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLocation {
    /// The scope in which `path` starts.
    pub origin: Option<Scope>,
    /// Names of structure members (and variant options) on the way.
    pub path: Vec<String>,
}

impl From<&str> for FieldLocation {
    fn from(name: &str) -> Self {
        FieldLocation { origin: None, path: vec![name.to_owned()] }
    }
}

impl FieldLocation {
    /// A place given from the root of a scope.
    pub fn absolute<S: Into<String>>(origin: Scope, path: impl IntoIterator<Item = S>) -> Self {
        FieldLocation { origin: Some(origin), path: path.into_iter().map(Into::into).collect() }
    }
}

/// The parts of a packet and of an event record, in the order in which they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `trace.packet.header`
    PacketHeader,
    /// `stream.packet.context`
    PacketContext,
    /// `stream.event.header`
    EventHeader,
    /// `stream.event.context`
    CommonContext,
    /// `event.context`
    SpecificContext,
    /// `event.fields`
    Payload,
}

/// An integer of 1 to 64 bits.
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
    /// The base in which to show it.
    pub base: DisplayBase,
    /// Whether arrays of it are text.
    pub encoding: Encoding,
    /// The clock class whose value it carries.
    pub mapped_clock: Option<Arc<str>>,
}

impl IntegerClass {
    /// A little-endian unsigned integer, shown in base 10; aligned to 8 bits where `size` is a multiple of 8, packed
    /// otherwise.
    pub fn unsigned(size: u32) -> Self {
        IntegerClass {
            size,
            align: if size.is_multiple_of(8) { 8 } else { 1 },
            signed: false,
            byte_order: ByteOrder::Little,
            base: DisplayBase::Decimal,
            encoding: Encoding::None,
            mapped_clock: None,
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

    /// Maps it to the clock class called `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: &str) -> Self {
        self.mapped_clock = Some(clock.into());
        self
    }
}

impl From<IntegerClass> for FieldClass {
    fn from(class: IntegerClass) -> Self {
        FieldClass::Integer(class)
    }
}

/// An IEEE 754 number of 32 or 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatClass {
    /// Size in bits: 32 or 64.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Byte order.
    pub byte_order: ByteOrder,
}

impl FloatClass {
    /// A little-endian, byte-aligned number of `size` bits.
    pub fn new(size: u32) -> Self {
        FloatClass { size, align: 8, byte_order: ByteOrder::Little }
    }
}

impl From<FloatClass> for FieldClass {
    fn from(class: FloatClass) -> Self {
        FieldClass::Float(class)
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
    /// The label.
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

impl From<EnumerationClass> for FieldClass {
    fn from(class: EnumerationClass) -> Self {
        FieldClass::Enumeration(Arc::new(class))
    }
}

/// A null-terminated string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringClass {
    /// The text's encoding.
    pub encoding: Encoding,
}

/// Named members, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructureClass {
    /// Least alignment in bits; 0 or 1 for none.
    pub min_align: u32,
    /// The members; their names differ.
    pub members: Vec<Member>,
}

impl StructureClass {
    /// A structure without members.
    pub fn new() -> Self {
        StructureClass::default()
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        self.members.push(Member { name: name.into(), class: class.into() });
        self
    }

    /// Alignment in bits of the first member: the largest that a member or the declaration asks for.
    pub fn alignment(&self) -> u32 {
        self.members.iter().map(|member| member.class.alignment()).fold(self.min_align.max(1), u32::max)
    }

    /// The member called `name`.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl From<StructureClass> for FieldClass {
    fn from(class: StructureClass) -> Self {
        FieldClass::Structure(Arc::new(class))
    }
}

/// A member of a structure, or an option of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The name shown to people; TSDL's protecting underscore is not part of it.
    pub name: String,
    /// The field class.
    pub class: FieldClass,
}

/// A known number of elements.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticArrayClass {
    /// How many.
    pub length: u64,
    /// What each is.
    pub element: FieldClass,
}

/// As many elements as an earlier field says.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicArrayClass {
    /// An earlier unsigned integer field.
    pub length: FieldLocation,
    /// What each element is.
    pub element: FieldClass,
}

/// One of several options, chosen by the label of an earlier enumeration field.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantClass {
    /// An earlier enumeration field.
    pub tag: FieldLocation,
    /// The options; each is named like a label of the tag.
    pub options: Vec<Member>,
}

impl VariantClass {
    /// A variant without options.
    pub fn new(tag: impl Into<FieldLocation>) -> Self {
        VariantClass { tag: tag.into(), options: Vec::new() }
    }

    /// Adds an option.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        self.options.push(Member { name: name.into(), class: class.into() });
        self
    }
}

impl From<VariantClass> for FieldClass {
    fn from(class: VariantClass) -> Self {
        FieldClass::Variant(Arc::new(class))
    }
}
