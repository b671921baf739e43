//! The types that a field of an event can have: how the recording describes each of them ([`FieldType`]) and
//! how a value reaches the payload ([`Field::write`]). The bytes are those that [`tracewing_abi::schema`]
//! specifies.
//!
//! How values of several fields become one payload is [`payload`](crate::payload)'s part.

use crate::layout::{Layout, Writer};
use core::num::NonZero;
use core::time::Duration;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use tracewing_abi::schema::{Label, Scalar, Shape};

/// Arrays up to this size, bytes, are copied into the payload's fixed part; larger ones are read from where
/// they are.
const SMALL_ARRAY: usize = 64;

/// A type whose values can be fields of events.
///
/// | Rust | in the trace |
/// |---|---|
/// | `u8` to `u64`, `i8` to `i64`, `usize`, `isize`, [`NonZero`] of these | an integer of that size |
/// | `u128`, `i128`, [`NonZero`] of these | two 64-bit integers |
/// | `bool` | an integer, 0 or 1 |
/// | `f32`, `f64` | a floating-point number |
/// | `char` | a text of one character |
/// | `str`, [`String`] | a text; it ends before its first NUL character, where it has one |
/// | `[T; N]` of integers, floating-point numbers or `bool` | an array |
/// | `[T]`, [`Vec<T>`](Vec) of these | a sequence of at most 65535 values |
/// | [`Option`] of integers, [`NonZero`], floating-point numbers, `bool` or `char` | nothing or the value |
/// | an `enum` without fields that derives [`EventField`](crate::EventField) | an enumeration |
/// | [`Duration`] | its nanoseconds as `u64`, unit `ns` (at most `u64::MAX`: 584 years) |
/// | `&T`, `&mut T`, [`Box<T>`](Box), [`Rc<T>`](Rc), [`Arc<T>`](Arc), [`Cow<T>`](Cow) of all these | as `T` |
///
/// Texts and sequences are not copied before they reach the buffer.
///
/// # Safety
/// Implemented here and by [`derive(EventField)`](macro@crate::EventField) only. In each call, `write` must
/// 1. put at most `TYPE.layout.run` bytes into the writer, exactly as many where `TYPE.layout.exact`;
/// 2. add at most `TYPE.layout.segments / 2` stretches of memory, each of which stays readable and unchanged
///    as long as `self` is borrowed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of an event",
    label = "not a field type",
    note = "fields are integers, floating-point numbers, `bool`, `char`, text, arrays and slices of numbers, `Option` of \
            a number, `Duration`, and enums that derive `tracewing::EventField`; leave a field out with \
            `#[event(skip)]`"
)]
pub unsafe trait Field {
    /// How the recording describes the type.
    #[doc(hidden)]
    const TYPE: FieldType;

    /// Adds the value's bytes.
    ///
    /// # Safety
    /// 1. The writer has room for what `TYPE.layout` says.
    /// 2. `self` stays borrowed until the writer's payload was taken.
    #[doc(hidden)]
    unsafe fn write(&self, out: &mut Writer);
}

/// How the recording describes `T`.
#[doc(hidden)]
pub const fn field_type<T: Field + ?Sized>() -> FieldType {
    T::TYPE
}

/// What the recording must know about a field's type.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct FieldType {
    pub shape: Shape,
    pub scalar: Scalar,
    pub length: u32,
    pub unit: &'static str,
    pub labels: &'static [Label<'static>],
    pub layout: Layout,
}

impl FieldType {
    const fn new(shape: Shape, scalar: Scalar, layout: Layout) -> Self {
        Self { shape, scalar, length: 0, unit: "", labels: &[], layout }
    }

    /// An enumeration.
    pub const fn enumeration(scalar: Scalar, labels: &'static [Label<'static>]) -> Self {
        Self { labels, ..Self::new(Shape::Enumeration, scalar, Layout::exactly(scalar.size())) }
    }

    /// Whether hexadecimal and the like mean something for it.
    pub const fn is_integer(self) -> bool {
        !matches!(self.shape, Shape::Text | Shape::Enumeration)
            && !matches!(self.scalar, Scalar::F32 | Scalar::F64 | Scalar::Bool | Scalar::Char)
    }

    /// Whether a precision (digits after the point) is valid for it.
    pub const fn has_precision(self) -> bool {
        matches!(self.shape, Shape::Text) || matches!(self.scalar, Scalar::F32 | Scalar::F64)
    }
}

mod sealed {
    use super::Scalar;

    /// A single value of constant size.
    ///
    /// # Safety
    /// `Bytes` is an array of `SCALAR.size()` bytes.
    #[diagnostic::on_unimplemented(
        message = "`Option<{Self}>` cannot be a field of an event",
        label = "not a number, `bool` or `char`",
        note = "an `Option` of an integer, a floating-point number, `bool` or `char` can; of texts and enums it cannot"
    )]
    pub unsafe trait Number: Copy {
        const SCALAR: Scalar;
        type Bytes: Copy;
        fn bytes(self) -> Self::Bytes;
    }

    /// A number whose bytes in memory are those of the payload.
    ///
    /// # Safety
    /// That is so, and its size is `SCALAR.size()`.
    #[diagnostic::on_unimplemented(
        message = "arrays and slices of `{Self}` cannot be fields of an event",
        label = "not a number or `bool`",
        note = "arrays and slices of integers, floating-point numbers and `bool` can"
    )]
    pub unsafe trait Plain: Number {}
}
pub(crate) use sealed::{Number, Plain};

#[cfg(target_endian = "big")]
compile_error!("tracewing takes slices of numbers for little-endian bytes");

macro_rules! numbers {
    ($($type:ty as $as:ty: $scalar:ident, |$value:ident| $bytes:expr;)+) => { $(
        // SAFETY: the bytes of `$as`, whose size `$scalar` gives.
        unsafe impl Number for $type {
            const SCALAR: Scalar = Scalar::$scalar;
            type Bytes = [u8; size_of::<$as>()];
            #[inline(always)]
            fn bytes(self) -> Self::Bytes {
                const { assert!(size_of::<$as>() == Scalar::$scalar.size()) };
                let $value = self;
                $bytes
            }
        }

        // SAFETY: (1) exactly the scalar's bytes, (2) nothing.
        unsafe impl Field for $type {
            const TYPE: FieldType = FieldType::new(Shape::One, Scalar::$scalar, Layout::exactly(size_of::<$as>()));
            #[inline(always)]
            unsafe fn write(&self, out: &mut Writer) {
                // SAFETY: the caller's (1).
                unsafe { out.put(self.bytes()) }
            }
        }
    )+ };
}

macro_rules! integers {
    ($($type:ident $scalar:ident),+) => { $(
        numbers! {
            $type as $type: $scalar, |value| value.to_le_bytes();
            NonZero<$type> as $type: $scalar, |value| value.get().to_le_bytes();
        }
        // SAFETY: little-endian in memory on the targets that compile.
        unsafe impl Plain for $type {}
        // SAFETY: laid out as the integer.
        unsafe impl Plain for NonZero<$type> {}
    )+ };
}

integers!(u8 U8, u16 U16, u32 U32, u64 U64, u128 U128, i8 I8, i16 I16, i32 I32, i64 I64, i128 I128);

#[cfg(target_pointer_width = "64")]
integers!(usize U64, isize I64);

#[cfg(target_pointer_width = "32")]
integers!(usize U32, isize I32);

numbers! {
    f32 as f32: F32, |value| value.to_le_bytes();
    f64 as f64: F64, |value| value.to_le_bytes();
    bool as u8: Bool, |value| [value.into()];
    char as u32: Char, |value| {
        let mut bytes = [0; 4];
        value.encode_utf8(&mut bytes);
        bytes
    };
}

// SAFETY: IEEE 754, little-endian in memory on the targets that compile.
unsafe impl Plain for f32 {}
// SAFETY: likewise.
unsafe impl Plain for f64 {}
// SAFETY: one byte, 0 or 1.
unsafe impl Plain for bool {}

// SAFETY: (1) exactly eight bytes, (2) nothing.
unsafe impl Field for Duration {
    const TYPE: FieldType = FieldType { unit: "ns", ..u64::TYPE };
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's (1); the layout is that of `u64`.
        unsafe { out.put(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).to_le_bytes()) }
    }
}

// SAFETY: (1) one byte, and the scalar where there is one, (2) nothing.
unsafe impl<T: Number> Field for Option<T> {
    const TYPE: FieldType = FieldType::new(Shape::Optional, T::SCALAR, Layout::at_most(1 + T::SCALAR.size()));
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's (1).
        unsafe {
            out.put([u8::from(self.is_some())]);
            if let Some(value) = self {
                out.put(value.bytes());
            }
        }
    }
}

// SAFETY: (1) a small array exactly, else nothing, (2) then the array itself, which is borrowed.
unsafe impl<T: Plain, const N: usize> Field for [T; N] {
    const TYPE: FieldType = {
        assert!(N <= u32::MAX as usize, "the length of an array field must fit 32 bits");
        let layout = if size_of::<Self>() <= SMALL_ARRAY {
            Layout::exactly(size_of::<Self>())
        } else {
            Layout::elsewhere(0)
        };
        FieldType { length: N as u32, ..FieldType::new(Shape::Array, T::SCALAR, layout) }
    };
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's (1) and (2).
        unsafe {
            if size_of::<Self>() <= SMALL_ARRAY {
                out.put(*self);
            } else {
                out.refer(self.as_ptr().cast(), size_of::<Self>());
            }
        }
    }
}

// SAFETY: (1) the count, (2) the values, which are borrowed.
unsafe impl<T: Plain> Field for [T] {
    const TYPE: FieldType = FieldType::new(Shape::Slice, T::SCALAR, Layout::elsewhere(2));
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's (1) and (2). A count above 65535 is cut here, but then the payload is longer
        // than an event can be, which the event path sees by its length.
        unsafe {
            out.put((self.len() as u16).to_le_bytes());
            out.refer(self.as_ptr().cast(), size_of_val(self));
        }
    }
}

// SAFETY: (1) the NUL at the end, (2) the text, which is borrowed.
unsafe impl Field for str {
    const TYPE: FieldType = FieldType::new(Shape::Text, Scalar::U8, Layout::elsewhere(1));
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's (1) and (2).
        unsafe {
            out.refer(self.as_ptr(), length_before_nul(self));
            out.put([0_u8]);
        }
    }
}

#[inline]
fn length_before_nul(text: &str) -> usize {
    // SAFETY: the text's bytes are readable; the function is async-signal-safe (POSIX.1-2016, 2.4.3).
    let nul = unsafe { libc::memchr(text.as_ptr().cast(), 0, text.len()) };
    if nul.is_null() { text.len() } else { nul as usize - text.as_ptr() as usize }
}

macro_rules! as_target {
    ($([$($generics:tt)*] $type:ty => $target:ty;)+) => { $(
        // SAFETY: as the target's, which lives as long as `self` is borrowed.
        unsafe impl<$($generics)*> Field for $type {
            const TYPE: FieldType = <$target>::TYPE;
            #[inline(always)]
            unsafe fn write(&self, out: &mut Writer) {
                let target: &$target = self;
                // SAFETY: the caller's (1) and (2); the layout is the target's.
                unsafe { target.write(out) }
            }
        }
    )+ };
}

as_target! {
    [T: Field + ?Sized] &T => T;
    [T: Field + ?Sized] &mut T => T;
    [T: Field + ?Sized] Box<T> => T;
    [T: Field + ?Sized] Rc<T> => T;
    [T: Field + ?Sized] Arc<T> => T;
    [T: Field + ToOwned + ?Sized] Cow<'_, T> => T;
    [] String => str;
    [T: Plain] Vec<T> => [T];
}
