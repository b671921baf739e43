//! Reads integers of any size from any bit of a byte slice (specification 1.8.3, section 4.1.5 and 4.1.6).

use crate::model::ByteOrder;

/// The `size` bits (1 to 64) at bit `at`; the caller has checked that they are there.
#[inline]
pub(super) fn unsigned(data: &[u8], at: u64, size: u32, order: ByteOrder) -> u64 {
    if at.is_multiple_of(8) {
        let from = &data[(at / 8) as usize..];
        match (size, order) {
            (8, _) => return u64::from(from[0]),
            (16, ByteOrder::Little) => return u64::from(u16::from_le_bytes(first(from))),
            (16, ByteOrder::Big) => return u64::from(u16::from_be_bytes(first(from))),
            (32, ByteOrder::Little) => return u64::from(u32::from_le_bytes(first(from))),
            (32, ByteOrder::Big) => return u64::from(u32::from_be_bytes(first(from))),
            (64, ByteOrder::Little) => return u64::from_le_bytes(first(from)),
            (64, ByteOrder::Big) => return u64::from_be_bytes(first(from)),
            _ => {}
        }
    }
    packed(data, at, size, order)
}

/// The integer in two's complement whose lowest `size` bits are given.
#[inline]
pub(super) fn sign_extended(bits: u64, size: u32) -> i64 {
    let shift = 64 - size;
    ((bits << shift) as i64) >> shift
}

fn first<const N: usize>(from: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&from[..N]);
    bytes
}

/// Little-endian fields fill bytes from the least significant bit, big-endian ones from the most significant.
fn packed(data: &[u8], at: u64, size: u32, order: ByteOrder) -> u64 {
    let skip = (at % 8) as u32;
    let count = (skip + size).div_ceil(8);
    let bytes = &data[(at / 8) as usize..][..count as usize];
    let value = match order {
        ByteOrder::Little => {
            bytes.iter().rev().fold(0, |value: u128, &byte| value << 8 | u128::from(byte)) >> skip
        }
        ByteOrder::Big => {
            bytes.iter().fold(0, |value: u128, &byte| value << 8 | u128::from(byte))
                >> (count * 8 - skip - size)
        }
    };
    value as u64 & (u64::MAX >> (64 - size))
}

/// The lowest `size` bits of `value` in the opposite order.
#[inline]
pub(super) fn reversed(value: u64, size: u32) -> u64 {
    value.reverse_bits() >> (64 - size)
}

/// The 128 bits at bit `at`; the caller has checked that they are there.
pub(super) fn wide(data: &[u8], at: u64, order: ByteOrder) -> u128 {
    let halves = (unsigned(data, at, 64, order), unsigned(data, at + 64, 64, order));
    let (low, high) = match order {
        ByteOrder::Little => halves,
        ByteOrder::Big => (halves.1, halves.0),
    };
    u128::from(high) << 64 | u128::from(low)
}

/// What is wrong with an integer of variable length.
pub(super) enum Leb128Fault {
    /// The bytes end within it.
    Short,
    /// Its value has more than 64 bits.
    Oversized,
}

/// The integer of variable length with which `bytes` begin, sign-extended if `signed`, and the bytes it
/// takes.
pub(super) fn leb128(bytes: &[u8], signed: bool) -> Result<(u64, u32), Leb128Fault> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let (group, shift) = (u64::from(byte & 0x7F), 7 * index as u32);
        if index == 9 {
            // One bit is left; the others are to repeat the sign.
            let fits = if signed { matches!(byte, 0 | 0x7F) } else { byte <= 1 };
            return if fits { Ok((value | group << 63, 10)) } else { Err(Leb128Fault::Oversized) };
        }
        value |= group << shift;
        if byte & 0x80 == 0 {
            if signed && byte & 0x40 != 0 {
                value |= u64::MAX << (shift + 7);
            }
            return Ok((value, index as u32 + 1));
        }
    }
    Err(Leb128Fault::Short)
}

/// The number of 64 bits nearest to that of 128 bits (IEEE 754 binary128), ties to even.
pub(super) fn float128(bits: u128) -> f64 {
    const FRACTION: u32 = 112;
    let sign = ((bits >> 127) as u64) << 63;
    let exponent = (bits >> FRACTION & 0x7FFF) as i32 - 16383;
    let fraction = bits & ((1 << FRACTION) - 1);
    let magnitude = match exponent {
        0x4000 if fraction != 0 => f64::NAN.to_bits(),
        1024.. => f64::INFINITY.to_bits(),
        // Below half of the least number.
        ..-1075 => 0,
        _ => {
            // Subnormal numbers have fewer digits: one less for each power of two below the least normal one.
            let dropped = FRACTION - 52 + (-1022 - exponent).max(0) as u32;
            let digits = fraction | 1 << FRACTION;
            let kept = (digits >> dropped) as u64;
            let rest = digits & ((1 << dropped) - 1);
            let half = 1 << (dropped - 1);
            let up = rest > half || (rest == half && kept & 1 == 1);
            // The leading digit adds one to the exponent's field; a carry out of the fraction does so too.
            let biased = (exponent.max(-1022) + 1022) as u64;
            (biased << 52) + kept + u64::from(up)
        }
    };
    f64::from_bits(sign | magnitude)
}

/// The number of 16 bits (IEEE 754 binary16), exactly.
pub(super) fn float16(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f32::from(bits & 0x3FF);
    match bits >> 10 & 0x1F {
        0 => sign * fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN.copysign(sign),
        exponent => sign * (1024.0 + fraction) * 2_f32.powi(i32::from(exponent) - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit at a time, straight from the specification.
    fn slow(data: &[u8], at: u64, size: u32, order: ByteOrder) -> u64 {
        (0..u64::from(size)).fold(0, |value, i| {
            let (byte, bit) = (data[((at + i) / 8) as usize], (at + i) % 8);
            match order {
                ByteOrder::Little => value | u64::from(byte >> bit & 1) << i,
                ByteOrder::Big => value << 1 | u64::from(byte >> (7 - bit) & 1),
            }
        })
    }

    #[test]
    fn every_size_at_every_bit() {
        let data: Vec<u8> = (0..20_u32).map(|i| (i * 151 + 89) as u8).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in 1..=64 {
                for at in 0..80 {
                    let expected = slow(&data, at, size, order);
                    assert_eq!(unsigned(&data, at, size, order), expected, "{size} bits at {at}, {order:?}");
                    let sign = expected >> (size - 1) & 1;
                    let extended =
                        if sign == 1 && size < 64 { expected | u64::MAX << size } else { expected };
                    assert_eq!(
                        sign_extended(unsigned(&data, at, size, order), size),
                        extended as i64,
                        "{size} bits at {at}, {order:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn variable_length() {
        let read = |bytes: &[u8], signed| leb128(bytes, signed).ok();
        assert_eq!(read(&[0xE5, 0x8E, 0x26, 0xFF], false), Some((624_485, 3)));
        assert_eq!(read(&[0xC0, 0xBB, 0x78], true), Some((-123_456_i64 as u64, 3)));
        assert_eq!(read(&[0x7F], true), Some((u64::MAX, 1)));
        let longest = |last| [[0xFF; 9].as_slice(), &[last]].concat();
        assert_eq!(read(&longest(1), false), Some((u64::MAX, 10)));
        assert_eq!(read(&longest(2), false), None);
        assert_eq!(read(&longest(0), true), Some((i64::MAX as u64, 10)));
        assert_eq!(read(&longest(0x7F), true), Some((u64::MAX, 10)));
        assert_eq!(read(&longest(1), true), None);
        assert_eq!(read(&longest(0x80), false), None);
        assert!(matches!(leb128(&[0x80, 0x80], false), Err(Leb128Fault::Short)));
    }

    #[test]
    fn half_precision() {
        for (bits, number) in [
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x7BFF, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
            (0x7C00, f32::INFINITY),
            (0xFC00, f32::NEG_INFINITY),
        ] {
            assert_eq!(float16(bits), number, "{bits:#x}");
        }
        assert!(float16(0x7E00).is_nan());
        assert!(float16(0x8000).is_sign_negative());
    }

    /// The bits of `number` in 128 bits, exactly.
    fn widened(number: f64) -> u128 {
        let bits = number.to_bits();
        let (mut exponent, mut fraction) = ((bits >> 52 & 0x7FF) as i64, u128::from(bits << 12 >> 12));
        match exponent {
            0x7FF => exponent = 0x7FFF,
            0 if fraction == 0 => {}
            0 => {
                let shift = u64::from(fraction.leading_zeros() - 75);
                fraction = fraction << shift & ((1 << 52) - 1);
                exponent = 1 - shift as i64 + 16383 - 1023;
            }
            _ => exponent += 16383 - 1023,
        }
        u128::from(bits >> 63) << 127 | (exponent as u128) << 112 | fraction << 60
    }

    #[test]
    fn quadruple_precision() {
        let least = f64::from_bits(1);
        for number in [0.0, -0.0, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, least, 3.0 * least, f64::INFINITY] {
            assert_eq!(float128(widened(number)).to_bits(), number.to_bits(), "{number:e}");
        }
        assert!(float128(widened(f64::NAN)).is_nan());
        let one = widened(1.0);
        // Half a step above 1 ties to the even 1; anything more goes up. Three halves of a step tie upwards.
        assert_eq!(float128(one | 1 << 59), 1.0);
        assert_eq!(float128(one | 1 << 59 | 1), 1.0 + f64::EPSILON);
        assert_eq!(float128(one | 3 << 59), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(float128(widened(f64::MAX) | 1 << 59), f64::INFINITY);
        // Half of the least number ties to 0, three quarters do not.
        assert_eq!(float128(widened(least) - (1 << 112)), 0.0);
        assert_eq!(float128((widened(least) - (1 << 112)) | 1 << 111), least);
    }
}
