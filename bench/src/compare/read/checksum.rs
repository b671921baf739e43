//! A checksum over every field of a trace's events.
//!
//! Each stream has one of 64 bits, and the trace's is their sum. For each value the stream's checksum is
//! rotated left by 5 bits, and the value is added. An event's values are its stamp in cycles and the members
//! of its contexts and its payload, in order; compounds are replaced by their content. A value is an
//! integer's two's complement, the bits of a real number as a double, or the sum of a text's bytes plus its
//! length.
//! `bench/peers/babeltrace2/checksum.py` does the same with babeltrace2's Python bindings.

use tracewing_ctf::decode::{Compound, Value, Visitor};

/// The sum so far.
#[derive(Clone, Copy, Default)]
pub struct Checksum(pub u64);

impl Checksum {
    #[inline(always)]
    pub fn add(&mut self, bits: u64) {
        self.0 = self.0.rotate_left(5).wrapping_add(bits);
    }
}

/// The sum of the bytes of a text.
#[inline(always)]
fn byte_sum(text: &[u8]) -> u64 {
    // Eight at a time, in pairs.
    let of_word = |word: u64| {
        const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
        ((word & EVEN) + (word >> 8 & EVEN)).wrapping_mul(0x0001_0001_0001_0001) >> 48
    };
    let (words, rest) = text.as_chunks::<8>();
    let sum: u64 = words.iter().map(|word| of_word(u64::from_le_bytes(*word))).sum();
    sum + match text.last_chunk::<8>() {
        // Of the last eight those that are no part of a whole word.
        Some(last) if !rest.is_empty() => of_word(u64::from_le_bytes(*last) >> (64 - 8 * rest.len())),
        _ => rest.iter().map(|byte| u64::from(*byte)).sum(),
    }
}

impl Visitor for Checksum {
    #[inline(always)]
    fn value(&mut self, _: Option<&str>, value: Value<'_>) {
        let bits = match value {
            Value::Unsigned(value, _) | Value::UnsignedEnumeration(value, _) => value,
            Value::Signed(value, _) | Value::SignedEnumeration(value, _) => value as u64,
            Value::Float32(value) => f64::from(value).to_bits(),
            Value::Float64(value) => value.to_bits(),
            Value::Text(text) => byte_sum(text) + text.len() as u64,
            Value::Boolean(value) => value.into(),
            Value::BitArray(bits, _) | Value::BitMap(bits, _) => bits,
            _ => 0,
        };
        self.add(bits);
    }

    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}
    fn end(&mut self, _: Compound<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::byte_sum;

    #[test]
    fn sums_of_texts_of_every_length() {
        let text: Vec<u8> = (0..100_u32).map(|i| (i * 151 + 89) as u8).collect();
        for length in 0..=100 {
            let expected: u64 = text[..length].iter().map(|byte| u64::from(*byte)).sum();
            assert_eq!(byte_sum(&text[..length]), expected, "{length} bytes");
        }
        assert_eq!(byte_sum(&[255; 100]), 25_500);
    }
}
