//! Numbers into a byte buffer, without allocation: decimal, octal, hexadecimal, binary, and C's `%g`.

use std::io::Write;

/// Bytes that must be there for [`decimal`] to write to; more than any number needs.
pub(crate) const ROOM: usize = 24;

/// Appends `value` in base 10.
#[inline]
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    // Written where they stay: a copy would have to wait for all of them.
    let start = out.len();
    out.extend_from_slice(&[0; ROOM]);
    let length = out[start..].first_chunk_mut().map_or(0, |room| decimal(room, value));
    out.truncate(start + length);
}

/// Writes `value` in base 10; gives the number of its digits, at most 20.
#[inline(always)]
pub(crate) fn decimal(room: &mut [u8; ROOM], value: u64) -> usize {
    if value < EIGHT { first_digits(room, value as u32) } else { many_digits(room, value) }
}

const EIGHT: u64 = 100_000_000;

/// Writes `value`, which has at least nine digits; gives their number.
fn many_digits(room: &mut [u8; ROOM], value: u64) -> usize {
    let (high, low) = (value / EIGHT, (value % EIGHT) as u32);
    let length = if high < EIGHT {
        first_digits(room, high as u32)
    } else {
        let length = first_digits(room, (high / EIGHT) as u32);
        eight(room, length, (high % EIGHT) as u32)
    };
    eight(room, length, low)
}

/// Writes `value`, which is below 10^8, without zeros in front; gives the number of its digits.
#[inline(always)]
fn first_digits(room: &mut [u8; ROOM], value: u32) -> usize {
    let (high, low) = (value / 10_000, value % 10_000);
    if high == 0 {
        return first_four(room, low);
    }
    let length = first_four(room, high);
    four(room, length, low)
}

/// The same of a value below 10,000.
#[inline(always)]
fn first_four(room: &mut [u8; ROOM], value: u32) -> usize {
    let digits = u32::from_le_bytes(FOURS[value as usize]);
    // Number of leading zeros; the last digit is always printed.
    let zeros = ((digits & 0x0f0f_0f0f) | 1 << 24).trailing_zeros() / 8;
    room[..4].copy_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    4 - zeros as usize
}

/// Writes the four digits of a value below 10,000 at `at`; gives where they end.
#[inline(always)]
fn four(room: &mut [u8; ROOM], at: usize, value: u32) -> usize {
    room[at..at + 4].copy_from_slice(&FOURS[value as usize]);
    at + 4
}

/// Writes the eight digits of a value below 10^8 at `at`; gives where they end.
#[inline(always)]
fn eight(room: &mut [u8; ROOM], at: usize, value: u32) -> usize {
    let at = four(room, at, value / 10_000);
    four(room, at, value % 10_000)
}

/// All numbers of four digits, in order: a look here takes less than the divisions that it spares.
static FOURS: [[u8; 4]; 10_000] = {
    let mut fours = [[0; 4]; 10_000];
    let mut value = 0;
    while value < 10_000 {
        let digits = [value / 1000, value / 100 % 10, value / 10 % 10, value % 10];
        fours[value] =
            [b'0' + digits[0] as u8, b'0' + digits[1] as u8, b'0' + digits[2] as u8, b'0' + digits[3] as u8];
        value += 1;
    }
    fours
};

/// Appends `value` in base 10.
#[inline]
pub fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

/// Appends `value` in base 10, with zeros in front up to `WIDTH` (at most 20) digits.
#[inline]
pub fn padded<const WIDTH: usize>(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; ROOM];
    let length = decimal(&mut digits, value);
    out.extend(std::iter::repeat_n(b'0', WIDTH.saturating_sub(length)));
    out.extend_from_slice(&digits[..length]);
}

/// Writes `value`, which is below 10^9, as nine digits.
#[inline]
pub(crate) fn nine(digits: &mut [u8; 9], value: u32) {
    let (high, low) = (value / 10_000, value % 10_000);
    digits[0] = b'0' + (high / 10_000) as u8;
    digits[1..5].copy_from_slice(&FOURS[(high % 10_000) as usize]);
    digits[5..].copy_from_slice(&FOURS[low as usize]);
}

/// Appends `value` in base 2, 8 or 16 (`SHIFT` 1, 3 or 4), capitals, without prefix.
pub(crate) fn power_of_two<const SHIFT: u32>(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 64];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789ABCDEF"[(value & ((1 << SHIFT) - 1)) as usize];
        value >>= SHIFT;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` as C's `%g` does: six significant digits, scientific below 1e-4 and from 1e6 on.
pub(crate) fn general(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    // d.ddddde<exponent>, rounded once; everything else is moving the point.
    let mut text = [0; 16];
    let mut rest = &mut text[..];
    if write!(rest, "{value:.5e}").is_err() {
        return;
    }
    let length = 16 - rest.len();
    let mut digits = [0; 6];
    digits[0] = text[0];
    digits[1..].copy_from_slice(&text[2..7]);
    let exponent: i32 =
        std::str::from_utf8(&text[8..length]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let significant = 6 - digits.iter().rev().take_while(|digit| **digit == b'0').count();
    let digits = &digits[..significant.max(1)];
    if !(-4..6).contains(&exponent) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        let magnitude = u64::from(exponent.unsigned_abs());
        if magnitude < 10 {
            out.push(b'0');
        }
        unsigned(out, magnitude);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.resize(out.len() + whole - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers() {
        let powers = (0..20).map(|exponent| 10_u64.pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power + 1]);
        for value in around.chain([12345, 98_765_432, u64::MAX / 2, u64::MAX]) {
            assert_eq!(text(|out| unsigned(out, value)), value.to_string());
            assert_eq!(text(|out| padded::<9>(out, value)), format!("{value:09}"));
            assert_eq!(text(|out| padded::<20>(out, value)), format!("{value:020}"));
            assert_eq!(text(|out| power_of_two::<4>(out, value)), format!("{value:X}"));
            assert_eq!(text(|out| power_of_two::<3>(out, value)), format!("{value:o}"));
            assert_eq!(text(|out| power_of_two::<1>(out, value)), format!("{value:b}"));
        }
        for value in [i64::MIN, -1, 0, 5, i64::MAX] {
            assert_eq!(text(|out| signed(out, value)), value.to_string());
        }
    }

    /// The C library is the oracle: over powers of ten, their neighbours, and pseudo-random bit patterns.
    #[test]
    fn reals_are_those_of_printf() {
        let mut values: Vec<f64> =
            (-330..310).map(|exponent| format!("1e{exponent}").parse().unwrap()).collect();
        values.extend([
            0.0,
            999_999.5,
            999_999.4,
            9.999_995,
            0.000_099_999_95,
            123_456.5,
            2.5,
            5e-324,
            f64::MAX,
        ]);
        values.extend([f64::NAN, f64::INFINITY]);
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            values.push(f64::from_bits(state));
            values.push((state >> 40) as f64 / 1024.0);
        }
        for value in values {
            for value in [value, -value] {
                let mut buffer = [0 as libc::c_char; 64];
                // SAFETY: the buffer is writable, 64 bytes long, and longer than any %g result; the format
                // takes one double.
                let expected = unsafe {
                    libc::snprintf(buffer.as_mut_ptr(), buffer.len(), c"%g".as_ptr(), value);
                    std::ffi::CStr::from_ptr(buffer.as_ptr()).to_str().unwrap().to_owned()
                };
                assert_eq!(text(|out| general(out, value)), expected, "{value:e}");
            }
        }
    }
}
