//! Integers of every size that fields can have, ordered as numbers.

use std::cmp::Ordering;
use std::fmt;

/// An integer from -2^127 to 2^128 - 1.
// Ordered by the first member, then by the second: two's complement orders negative numbers among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Integer {
    not_negative: bool,
    bits: u128,
}

impl Integer {
    /// The smallest representable integer, -2^127.
    pub const MIN: Self = Self { not_negative: false, bits: 1 << 127 };
    /// The largest representable integer, 2^128 - 1.
    pub const MAX: Self = Self { not_negative: true, bits: u128::MAX };

    /// Two's complement in 128 bits, or the number itself if it is not negative.
    pub fn bits(self) -> u128 {
        self.bits
    }

    /// Whether the number is below 0.
    pub fn is_negative(self) -> bool {
        !self.not_negative
    }

    /// The negated number, if it is in range.
    pub fn checked_neg(self) -> Option<Self> {
        match (self.not_negative, self.bits) {
            (true, 0) => Some(self),
            (true, 1..=0x8000_0000_0000_0000_0000_0000_0000_0000) => {
                Some(Self { not_negative: false, bits: self.bits.wrapping_neg() })
            }
            (true, _) => None,
            (false, bits) => Some(Self { not_negative: true, bits: bits.wrapping_neg() }),
        }
    }

    /// The nearest floating-point number, and how it compares with the integer.
    pub(crate) fn nearest_real(self) -> (f64, Ordering) {
        let magnitude = if self.not_negative { self.bits } else { self.bits.wrapping_neg() };
        let real = magnitude as f64;
        // 2^128 is the only result that a conversion back would truncate.
        let order = if real >= 2_f64.powi(128) { Ordering::Greater } else { (real as u128).cmp(&magnitude) };
        if self.not_negative { (real, order) } else { (-real, order.reverse()) }
    }

    /// A floating-point number without fraction, clamped to the range.
    pub(crate) fn from_real(real: f64) -> Self {
        if real < 0.0 { Self::from(real as i128) } else { Self::from(real as u128) }
    }
}

impl From<u128> for Integer {
    fn from(value: u128) -> Self {
        Self { not_negative: true, bits: value }
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Self {
        Self { not_negative: value >= 0, bits: value as u128 }
    }
}

macro_rules! from {
    ($($type:ty as $wide:ty),+) => { $(
        impl From<$type> for Integer {
            fn from(value: $type) -> Self {
                Self::from(<$wide>::from(value))
            }
        }
    )+ };
}

from!(bool as u128, u8 as u128, u16 as u128, u32 as u128, u64 as u128, i32 as i128, i64 as i128);

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.not_negative { self.bits.fmt(f) } else { (self.bits as i128).fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_ordered_as_numbers() {
        let ascending = [
            Integer::MIN,
            Integer::from(i64::MIN),
            Integer::from(-1),
            Integer::from(0_u8),
            Integer::from(i128::MAX),
            Integer::from(i128::MAX as u128 + 1),
            Integer::MAX,
        ];
        assert!(ascending.is_sorted());
        assert_eq!(Integer::from(7_u8), Integer::from(7_i64));
        assert_eq!(ascending.map(|number| number.to_string())[2], "-1");
    }

    #[test]
    fn negation_keeps_to_the_range() {
        assert_eq!(Integer::from(0_u8).checked_neg(), Some(Integer::from(0_u8)));
        assert_eq!(Integer::from(1_u128 << 127).checked_neg(), Some(Integer::MIN));
        assert_eq!(Integer::from((1_u128 << 127) + 1).checked_neg(), None);
        assert_eq!(Integer::MIN.checked_neg(), Some(Integer::from(1_u128 << 127)));
    }

    #[test]
    fn the_nearest_real_knows_on_which_side_it_is() {
        assert_eq!(Integer::from(-3).nearest_real(), (-3.0, Ordering::Equal));
        assert_eq!(Integer::MAX.nearest_real(), (2_f64.powi(128), Ordering::Greater));
        let above = Integer::from((1_i64 << 53) + 1);
        assert_eq!(above.nearest_real(), (2_f64.powi(53), Ordering::Less));
        assert_eq!(above.checked_neg().unwrap().nearest_real(), (-2_f64.powi(53), Ordering::Greater));
    }
}
