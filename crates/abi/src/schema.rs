//! Descriptions of event classes, as a program sends them to its recorder.
//!
//! [`Class`] is what a program has in its read-only data; [`ClassView`] is what the recorder makes of the
//! bytes. Equal bytes are the same class, whichever program or copy of a library sent them, and get the same
//! id.
//!
//! Encoding (little-endian; `str` is a `u16` length and UTF-8 bytes):
//!
//! ```text
//! class: u16 bytes that follow, u8 level, u8 major, str name, str description, str print form, str file, u32 line, u8 fields
//! field: str name, u8 shape, u8 scalar, u32 length, u8 base, str unit, u16 labels, labels × (u64 value, str label)
//! ```
//!
//! Payload of an event: its fields in order, unaligned, little-endian:
//!
//! | shape | bytes |
//! |---|---|
//! | `One` | the scalar |
//! | `Text` | UTF-8 without NUL, then one NUL |
//! | `Array` | `length` scalars |
//! | `Slice` | `u16` count, then that many scalars |
//! | `Optional` | `u8` 0, or `u8` 1 and the scalar |
//! | `Enumeration` | the scalar |

use crate::wire::{Input, Malformed, Output, WireError};

/// How severe an event is, with LTTng-UST's number (`loglevel` in the metadata).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// `TRACE_ERR`.
    Error = 3,
    /// `TRACE_WARNING`.
    Warn = 4,
    /// `TRACE_INFO`.
    Info = 6,
    /// `TRACE_DEBUG_MODULE`.
    Debug = 10,
    /// `TRACE_DEBUG`.
    Trace = 14,
}

impl Level {
    /// The level with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace]
            .into_iter()
            .find(|l| *l as u8 == number)
    }
}

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $number),+ }

        impl $name {
            /// The one with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

numbered! {
    /// Type of a single value.
    Scalar {
        /// Unsigned, 1 byte.
        U8 = 0,
        /// Unsigned, 2 bytes.
        U16 = 1,
        /// Unsigned, 4 bytes.
        U32 = 2,
        /// Unsigned, 8 bytes.
        U64 = 3,
        /// Signed, 1 byte.
        I8 = 4,
        /// Signed, 2 bytes.
        I16 = 5,
        /// Signed, 4 bytes.
        I32 = 6,
        /// Signed, 8 bytes.
        I64 = 7,
        /// IEEE 754, 4 bytes.
        F32 = 8,
        /// IEEE 754, 8 bytes.
        F64 = 9,
        /// 1 byte, 0 or 1.
        Bool = 10,
        /// 4 bytes: the character in UTF-8, padded with NUL.
        Char = 11,
        /// Unsigned, 16 bytes; reaches the trace as two 64-bit halves, low one first.
        U128 = 12,
        /// Signed, 16 bytes; likewise.
        I128 = 13,
    }
}

impl Scalar {
    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Char => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 | Self::I128 => 16,
        }
    }
}

numbered! {
    /// How many values a field has.
    Shape {
        /// Exactly one.
        One = 0,
        /// A string; the scalar is `U8`.
        Text = 1,
        /// A fixed number of them, the field's `length`.
        Array = 2,
        /// A number of them that each event gives.
        Slice = 3,
        /// None or one.
        Optional = 4,
        /// One integer that stands for a label.
        Enumeration = 5,
    }
}

numbered! {
    /// How an integer is meant to be shown.
    Base {
        /// Decimal.
        Decimal = 10,
        /// Hexadecimal.
        Hexadecimal = 16,
        /// Octal.
        Octal = 8,
        /// Binary.
        Binary = 2,
    }
}

/// A label of an enumeration: the value's 64 bits (sign-extended where the scalar is signed) and its name.
pub type Label<'a> = (u64, &'a str);

// Readers of programs' files rely on this layout, which the compiler does not guarantee.
const _: () = assert!(
    core::mem::offset_of!(Label<'static>, 0) == 0
        && core::mem::offset_of!(Label<'static>, 1) == 8
        && size_of::<Label<'static>>() == 24
);

/// One field of an event class. The layout is fixed, so that it can be read from a program's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Field<'a> {
    /// The field's name.
    pub name: &'a str,
    /// Number of values.
    pub shape: Shape,
    /// Type of a value.
    pub scalar: Scalar,
    /// Number of values of an `Array`, else 0.
    pub length: u32,
    /// How to display integers.
    pub base: Base,
    /// Unit in words (`ns`, `bytes`), or empty.
    pub unit: &'a str,
    /// Labels of an `Enumeration`, else empty.
    pub labels: &'a [Label<'a>],
}

/// Number of major classes (K42: Wisniewski and Rosenburg, section 2, "64 major classes": one mask word
/// switches them).
pub const MAJORS: u8 = 64;

/// One event class. The layout is fixed, so that it can be read from a program's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Class<'a> {
    /// `provider:event`.
    pub name: &'a str,
    /// Severity.
    pub level: Level,
    /// Its major class, below [`MAJORS`].
    pub major: u8,
    /// What it means, or empty.
    pub description: &'a str,
    /// The author's format for display (`region {region:#x} attached`), or empty.
    pub print: &'a str,
    /// Source file in which it is declared.
    pub file: &'a str,
    /// Line in `file`, from 1.
    pub line: u32,
    /// Its fields, in payload order; at most 255.
    pub fields: &'a [Field<'a>],
}

impl<'a> Class<'a> {
    /// A class of level `Info` without fields, of which nothing else is known.
    pub const fn named(name: &'a str) -> Self {
        Self {
            name,
            level: Level::Info,
            major: 0,
            description: "",
            print: "",
            file: "",
            line: 0,
            fields: &[],
        }
    }
}

impl<'a> Field<'a> {
    /// A field in base 10, without a length, a unit or labels.
    pub const fn plain(name: &'a str, shape: Shape, scalar: Scalar) -> Self {
        Self { name, shape, scalar, length: 0, base: Base::Decimal, unit: "", labels: &[] }
    }
}

impl Class<'_> {
    pub(crate) fn encode_to(&self, out: &mut Output<'_>) -> Result<(), WireError> {
        let start = out.len;
        out.u16(0)?;
        out.u8(self.level as u8)?;
        out.u8(self.major)?;
        for text in [self.name, self.description, self.print, self.file] {
            out.str(text)?;
        }
        out.u32(self.line)?;
        out.u8(u8::try_from(self.fields.len()).map_err(|_| WireError::TooLarge)?)?;
        for field in self.fields {
            field.encode_to(out)?;
        }
        let size = u16::try_from(out.len - start - 2).map_err(|_| WireError::TooLarge)?;
        out.bytes[start..start + 2].copy_from_slice(&size.to_le_bytes());
        Ok(())
    }
}

impl Field<'_> {
    fn encode_to(&self, out: &mut Output<'_>) -> Result<(), WireError> {
        out.str(self.name)?;
        out.u8(self.shape as u8)?;
        out.u8(self.scalar as u8)?;
        out.u32(self.length)?;
        out.u8(self.base as u8)?;
        out.str(self.unit)?;
        out.u16(u16::try_from(self.labels.len()).map_err(|_| WireError::TooLarge)?)?;
        for (value, label) in self.labels {
            out.u64(*value)?;
            out.str(label)?;
        }
        Ok(())
    }
}

/// A class description that came as bytes; every part was checked by [`ClassView::decode`].
#[derive(Clone, Copy)]
pub struct ClassView<'a> {
    /// See [`Class::level`].
    pub level: Level,
    /// See [`Class::major`].
    pub major: u8,
    /// See [`Class::name`].
    pub name: &'a str,
    /// See [`Class::description`].
    pub description: &'a str,
    /// See [`Class::print`].
    pub print: &'a str,
    /// See [`Class::file`].
    pub file: &'a str,
    /// See [`Class::line`].
    pub line: u32,
    fields: Input<'a>,
    field_count: u8,
}

/// A field of a [`ClassView`].
#[derive(Clone, Copy)]
pub struct FieldView<'a> {
    /// See [`Field::name`].
    pub name: &'a str,
    /// See [`Field::shape`].
    pub shape: Shape,
    /// See [`Field::scalar`].
    pub scalar: Scalar,
    /// See [`Field::length`].
    pub length: u32,
    /// See [`Field::base`].
    pub base: Base,
    /// See [`Field::unit`].
    pub unit: &'a str,
    labels: Input<'a>,
    label_count: u16,
}

impl<'a> ClassView<'a> {
    /// Reads the bytes of one class (as [`crate::message::decode_classes`] gives them) to their end.
    ///
    /// # Errors
    /// What is malformed. A class that decodes can be walked without further errors.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        let level = Level::from_number(input.u8()?).ok_or(WireError::Invalid(Malformed::Level))?;
        let major = input.u8()?;
        if major >= MAJORS {
            return Err(WireError::Invalid(Malformed::MajorClass));
        }
        let (name, description, print, file) = (input.str()?, input.str()?, input.str()?, input.str()?);
        let line = input.u32()?;
        let field_count = input.u8()?;
        let this = Self { level, major, name, description, print, file, line, fields: input, field_count };
        let mut rest = input;
        for _ in 0..field_count {
            let field = FieldView::decode(&mut rest)?;
            let mut labels = field.labels;
            for _ in 0..field.label_count {
                label(&mut labels)?;
            }
        }
        if !rest.bytes.is_empty() {
            return Err(WireError::Invalid(Malformed::ClassLength));
        }
        Ok(this)
    }

    /// The fields, in payload order.
    pub fn fields(&self) -> impl Iterator<Item = FieldView<'a>> + use<'a> {
        let mut rest = self.fields;
        (0..self.field_count).map_while(move |_| FieldView::decode(&mut rest).ok())
    }
}

fn label<'a>(input: &mut Input<'a>) -> Result<Label<'a>, WireError> {
    Ok((input.u64()?, input.str()?))
}

impl<'a> FieldView<'a> {
    fn decode(input: &mut Input<'a>) -> Result<Self, WireError> {
        let name = input.str()?;
        let shape = Shape::from_number(input.u8()?).ok_or(WireError::Invalid(Malformed::FieldShape))?;
        let scalar = Scalar::from_number(input.u8()?).ok_or(WireError::Invalid(Malformed::FieldType))?;
        let length = input.u32()?;
        let base = Base::from_number(input.u8()?).ok_or(WireError::Invalid(Malformed::FieldBase))?;
        let unit = input.str()?;
        let label_count = input.u16()?;
        let labels = *input;
        for _ in 0..label_count {
            label(input)?;
        }
        Ok(Self { name, shape, scalar, length, base, unit, labels, label_count })
    }

    /// The labels of an enumeration.
    pub fn labels(&self) -> impl Iterator<Item = Label<'a>> + use<'a> {
        let mut rest = self.labels;
        (0..self.label_count).map_while(move |_| label(&mut rest).ok())
    }
}
