//! Numbers of known place: eight bytes are loaded, whatever the number's size, and the number is cut out of
//! them.

use crate::model::ByteOrder;

/// A load takes eight bytes whatever the field's size, so that many must follow the last one's first.
pub(super) const SLACK: usize = 8;

/// Numbers that begin in the first 256 bytes of a record are loaded from these without a look at its length.
pub(super) const NEAR: usize = 256 + SLACK;

/// Where a number lies in an event record, and how it is cut out of the eight bytes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) byte: u32,
    shift: u8,
    pub(super) big: bool,
    mask: u64,
}

impl Load {
    /// A number of no bits.
    pub(super) const NOTHING: Load = Load { byte: 0, shift: 0, big: false, mask: 0 };

    /// The whole byte `byte`.
    pub(super) fn at_byte(byte: u64) -> Option<Self> {
        Some(Load { byte: u32::try_from(byte).ok()?, ..Load::NOTHING })
    }

    /// `None` where the number does not lie within eight bytes from its first.
    pub(super) fn new(at: u64, size: u32, order: ByteOrder) -> Option<Self> {
        let (byte, skip) = (u32::try_from(at / 8).ok()?, (at % 8) as u32);
        let rest = 64_u32.checked_sub(skip + size)?;
        let big = order == ByteOrder::Big;
        let shift = if big { rest } else { skip } as u8;
        Some(Load { byte, shift, big, mask: u64::MAX >> (64 - size) })
    }

    /// The number's bits; `None` if `record` is too short.
    #[inline(always)]
    pub(super) fn bits(&self, record: &[u8]) -> Option<u64> {
        if self.big { self.swapped_bits(record) } else { self.plain_bits(record) }
    }

    /// As [`Load::bits`] of a little-endian number.
    #[inline(always)]
    pub(super) fn plain_bits(&self, record: &[u8]) -> Option<u64> {
        Some((u64::from_le_bytes(self.raw(record)?) >> self.shift) & self.mask)
    }

    #[inline(always)]
    fn swapped_bits(&self, record: &[u8]) -> Option<u64> {
        Some((u64::from_be_bytes(self.raw(record)?) >> self.shift) & self.mask)
    }

    #[inline(always)]
    fn raw(&self, record: &[u8]) -> Option<[u8; 8]> {
        let from = self.byte as usize;
        record.get(from..from + 8)?.first_chunk().copied()
    }

    /// Whether the number begins so near to the record's beginning that it can be loaded from the first
    /// [`NEAR`] bytes.
    pub(super) fn is_near(&self) -> bool {
        u8::try_from(self.byte).is_ok()
    }

    /// As [`Load::bits`] of a little-endian number that [is near](Load::is_near).
    #[inline(always)]
    pub(super) fn near_bits(&self, record: &[u8; NEAR]) -> u64 {
        let from = usize::from(self.byte as u8);
        let raw = record[from..from + 8].first_chunk().copied().unwrap_or_default();
        (u64::from_le_bytes(raw) >> self.shift) & self.mask
    }

    /// As [`Load::near_bits`], with the sign extended.
    #[inline(always)]
    pub(super) fn near_signed(&self, record: &[u8; NEAR]) -> i64 {
        let sign = self.mask ^ (self.mask >> 1);
        (self.near_bits(record) ^ sign).wrapping_sub(sign) as i64
    }

    /// As [`Load::bits`], with the sign extended.
    #[inline(always)]
    pub(super) fn signed(&self, record: &[u8]) -> Option<i64> {
        let sign = self.mask ^ (self.mask >> 1);
        Some((self.bits(record)? ^ sign).wrapping_sub(sign) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::bits;

    #[test]
    fn loads_give_what_bits_do() {
        let data: Vec<u8> = (0..24_u32).map(|i| (i * 151 + 89) as u8).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in 1..=64 {
                for at in 0..64 {
                    let load = Load::new(at, size, order);
                    assert_eq!(load.is_some(), at % 8 + u64::from(size) <= 64);
                    let Some(load) = load else { continue };
                    assert_eq!(
                        load.bits(&data),
                        Some(bits::unsigned(&data, at, size, order)),
                        "{size} bits at {at}"
                    );
                    assert_eq!(
                        load.signed(&data),
                        Some(bits::sign_extended(bits::unsigned(&data, at, size, order), size)),
                        "{size} bits at {at}"
                    );
                }
            }
        }
    }
}
