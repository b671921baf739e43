//! Numbers and texts as bytes, and how damage of bytes is noticed.

use crate::error::{Damage, Damaged};
use tracewing_units::Duration;

/// Appends a number in 7-bit groups, the lowest first.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
pub(crate) fn put_time(out: &mut Vec<u8>, time: Duration) {
    put(out, time.as_ns());
}

/// Appends a text with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// What is left of some bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'b>(pub(crate) &'b [u8]);

impl<'b> Bytes<'b> {
    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Damaged> {
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        self.long_number()
    }

    #[inline]
    pub(crate) fn time(&mut self) -> Result<Duration, Damaged> {
        self.number().map(Duration::from_ns)
    }

    fn long_number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for (place, byte) in self.0.iter().take(10).enumerate() {
            let group = u64::from(byte & 0x7f);
            if place == 9 && group > 1 {
                break;
            }
            number |= group << (7 * place);
            if byte & 0x80 == 0 {
                self.0 = &self.0[place + 1..];
                return Ok(number);
            }
        }
        Err(Damaged(Damage::OpenNumber))
    }

    /// The next number, of at most 32 bits.
    #[inline]
    pub(crate) fn small(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.number()?).map_err(|_| Damaged(Damage::LargeNumber))
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: u64) -> Result<&'b [u8], Damaged> {
        let count = usize::try_from(count).map_err(|_| Damaged(Damage::LargeLength))?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged(Damage::OpenText))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<String, Damaged> {
        let length = self.number()?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Damaged(Damage::NotUtf8))
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged(Damage::LeftOver)) }
    }
}

/// A sum of bytes in which each change of up to eight neighbouring bytes shows: every step is a bijection of
/// what went before.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last)).map(|word| u64::from_le_bytes(*word));
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(ODD).rotate_left(31);
    words.fold(bytes.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_broken_ones_are_noticed() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(Bytes(&bytes).number(), Ok(number));
            bytes.pop();
            Bytes(&bytes).number().expect_err("cut off");
        }
        Bytes(&[0xff; 12]).number().expect_err("too long");
        Bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number().expect_err("too large");
    }

    #[test]
    fn each_changed_bit_changes_the_sum() {
        let bytes: Vec<u8> = (0..61).collect();
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&changed), checksum(&bytes));
        }
        assert_ne!(checksum(&[]), checksum(&[0]));
    }
}
