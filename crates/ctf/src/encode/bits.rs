//! Writes integers of any size to any bit of a byte slice (specification 1.8.3, section 4.1.5 and 4.1.6).

use crate::model::ByteOrder;

/// Puts the low `size` bits (1 to 64) of `value` at bit `at`, where `data` has only zeros so far.
#[inline]
pub(super) fn put(data: &mut [u8], at: u64, size: u32, order: ByteOrder, value: u64) {
    let (from, skip) = ((at / 8) as usize, (at % 8) as u32);
    let count = (skip + size).div_ceil(8) as usize;
    let value = u128::from(value & (u64::MAX >> (64 - size)));
    let to = &mut data[from..from + count];
    match order {
        ByteOrder::Little => {
            let bytes = (value << skip).to_le_bytes();
            to.iter_mut().zip(bytes).for_each(|(to, byte)| *to |= byte);
        }
        ByteOrder::Big => {
            let bytes = (value << (count as u32 * 8 - skip - size)).to_be_bytes();
            to.iter_mut().zip(&bytes[16 - count..]).for_each(|(to, byte)| *to |= byte);
        }
    }
}

/// The low `size` bits of `value` in the opposite order.
pub(super) fn reversed(value: u64, size: u32) -> u64 {
    value.reverse_bits() >> (64 - size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit at a time, straight from the specification.
    fn slow(data: &mut [u8], at: u64, size: u32, order: ByteOrder, value: u64) {
        for i in 0..u64::from(size) {
            let (byte, bit) = (((at + i) / 8) as usize, (at + i) % 8);
            data[byte] |= match order {
                ByteOrder::Little => ((value >> i & 1) as u8) << bit,
                ByteOrder::Big => ((value >> (u64::from(size) - 1 - i) & 1) as u8) << (7 - bit),
            };
        }
    }

    #[test]
    fn every_size_at_every_bit() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in 1..=64 {
                for at in 0..24 {
                    let (mut fast, mut plain) = ([0; 16], [0; 16]);
                    for value in [u64::MAX, 0x9e37_79b9_7f4a_7c15] {
                        put(&mut fast, at, size, order, value);
                        slow(&mut plain, at, size, order, value);
                    }
                    assert_eq!(fast, plain, "{size} bits at {at}, {order:?}");
                }
            }
        }
    }
}
