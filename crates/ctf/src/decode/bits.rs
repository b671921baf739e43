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

/// As [`unsigned`], with the sign extended.
#[inline]
pub(super) fn signed(data: &[u8], at: u64, size: u32, order: ByteOrder) -> i64 {
    let shift = 64 - size;
    ((unsigned(data, at, size, order) << shift) as i64) >> shift
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
                        signed(&data, at, size, order),
                        extended as i64,
                        "{size} bits at {at}, {order:?}"
                    );
                }
            }
        }
    }
}
