//! Converts a value to what the field's class can express.

use std::borrow::Cow;
use std::fmt;

use crate::ValueFault;
use crate::decode::{Value, WideText};
use crate::model::Encoding;

/// A value that is no compound.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar<'a> {
    Boolean(bool),
    Unsigned(u64),
    Signed(i64),
    Real32(f32),
    Real(f64),
    Real128(u128),
    Text(&'a [u8]),
    WideText(WideText<'a>),
    Blob(&'a [u8]),
}

/// An integer, the non-negative ones always as unsigned.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Unsigned(u64),
    Negative(i64),
}

impl From<Number> for i128 {
    fn from(number: Number) -> i128 {
        match number {
            Number::Unsigned(value) => value.into(),
            Number::Negative(value) => value.into(),
        }
    }
}

impl<'a> Scalar<'a> {
    /// What kind of value it is, for messages.
    pub(super) fn what(self) -> &'static str {
        match self {
            Scalar::Boolean(_) => "a boolean",
            Scalar::Unsigned(_) | Scalar::Signed(_) => "an integer",
            Scalar::Real32(_) | Scalar::Real(_) | Scalar::Real128(_) => "a floating point number",
            Scalar::Text(_) | Scalar::WideText(_) => "text",
            Scalar::Blob(_) => "bytes",
        }
    }

    /// As an integer; a boolean is 0 or 1.
    pub(super) fn number(self) -> Result<Number, ValueFault> {
        match self {
            Scalar::Boolean(value) => Ok(Number::Unsigned(u64::from(value))),
            Scalar::Unsigned(value) => Ok(Number::Unsigned(value)),
            Scalar::Signed(value @ 0..) => Ok(Number::Unsigned(value as u64)),
            Scalar::Signed(value) => Ok(Number::Negative(value)),
            _ => Err(ValueFault::Kind { value: self.what(), class: "an integer" }),
        }
    }

    /// The bits of a floating point number of `size` bits that has the same value.
    pub(super) fn real(self, size: u32) -> Result<u128, ValueFault> {
        let inexact =
            |value: &dyn fmt::Display| Err(ValueFault::Inexact { value: value.to_string(), bits: size });
        match (self, size) {
            (Scalar::Real32(value), 16) => {
                half(value).map_or_else(|| inexact(&value), |bits| Ok(bits.into()))
            }
            (Scalar::Real32(value), 32) => Ok(value.to_bits().into()),
            (Scalar::Real32(value), 64) => Ok(f64::from(value).to_bits().into()),
            (Scalar::Real(value), 64) => Ok(value.to_bits().into()),
            (Scalar::Real(value), 16 | 32) => {
                let narrow = value as f32;
                if f64::from(narrow) == value || value.is_nan() {
                    Scalar::Real32(narrow).real(size)
                } else {
                    inexact(&value)
                }
            }
            (Scalar::Real128(bits), 128) => Ok(bits),
            (Scalar::Real32(_) | Scalar::Real(_) | Scalar::Real128(_), _) => {
                Err(ValueFault::FloatSize { bits: size })
            }
            _ => Err(ValueFault::Kind { value: self.what(), class: "a floating point number" }),
        }
    }

    /// The bytes of a string in `encoding`.
    pub(super) fn text(self, encoding: Encoding) -> Result<Cow<'a, [u8]>, ValueFault> {
        match self {
            Scalar::Text(text) if encoding.unit() == 1 => Ok(Cow::Borrowed(text)),
            Scalar::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Cow::Owned(wide(text, encoding))),
                Err(_) => Err(ValueFault::Encoding),
            },
            Scalar::WideText(text) if text.encoding() == encoding => Ok(Cow::Borrowed(text.bytes())),
            Scalar::WideText(text) => {
                let text = text.to_string();
                Ok(Cow::Owned(if encoding.unit() == 1 { text.into_bytes() } else { wide(&text, encoding) }))
            }
            _ => Err(ValueFault::Kind { value: self.what(), class: "a string" }),
        }
    }
}

impl<'a> From<Value<'a>> for Scalar<'a> {
    fn from(value: Value<'a>) -> Self {
        match value {
            Value::Unsigned(value, _) => Scalar::Unsigned(value),
            Value::UnsignedEnumeration(value, _) => Scalar::Unsigned(value),
            Value::Signed(value, _) => Scalar::Signed(value),
            Value::SignedEnumeration(value, _) => Scalar::Signed(value),
            Value::BitArray(bits, _) => Scalar::Unsigned(bits),
            Value::BitMap(bits, _) => Scalar::Unsigned(bits),
            Value::Boolean(value) => Scalar::Boolean(value),
            Value::Float32(value) => Scalar::Real32(value),
            Value::Float64(value) => Scalar::Real(value),
            Value::Float128(bits) => Scalar::Real128(bits),
            Value::Text(text) => Scalar::Text(text),
            Value::WideText(text) => Scalar::WideText(text),
            Value::Blob(bytes) => Scalar::Blob(bytes),
        }
    }
}

/// Text in UTF-16 or UTF-32.
fn wide(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf32Be => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
        Encoding::Utf32Le => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
        Encoding::None | Encoding::Utf8 | Encoding::Ascii => text.as_bytes().to_vec(),
    }
}

/// The IEEE 754 binary16 number of the same value, if there is one; a NaN stays a NaN.
fn half(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let (sign, exponent, mantissa) =
        ((bits >> 16) as u16 & 0x8000, (bits >> 23 & 0xff) as i32, bits & 0x7f_ffff);
    let (magnitude, lost) = match exponent - 127 {
        128 if mantissa == 0 => (0x7c00, 0),
        // Of its payload, what there is room for; at least a bit, lest it become infinity.
        128 => (0x7c00 | (mantissa >> 13).max(1), 0),
        -127 => (0, mantissa),
        power @ -14..=15 => (((power + 15) as u32) << 10 | mantissa >> 13, mantissa & 0x1fff),
        power @ -24..=-15 => {
            let (whole, shift) = (mantissa | 0x80_0000, (-1 - power) as u32);
            (whole >> shift, whole & ((1 << shift) - 1))
        }
        _ => return None,
    };
    (lost == 0).then_some(sign | magnitude as u16)
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves() {
        // One by one: 2^-24 * mantissa, 2^(exponent - 15) * (1 + mantissa / 1024), infinities.
        for bits in 0..=u16::MAX {
            let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
            let magnitude = match (exponent, bits & 0x3ff) {
                (0, _) => mantissa * 2_f32.powi(-24),
                (31, 0) => f32::INFINITY,
                (31, _) => continue,
                _ => (1.0 + mantissa / 1024.0) * 2_f32.powi(exponent - 15),
            };
            let value = if bits >> 15 == 1 { -magnitude } else { magnitude };
            assert_eq!(half(value), Some(bits), "{value}");
        }
        assert!(half(f32::NAN).is_some_and(|bits| bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0));
        for inexact in [0.1, 65536.0, 1e-10, 1.000_001] {
            assert_eq!(half(inexact), None, "{inexact}");
        }
    }
}
