//! Finds the null at the end of a string.

/// Bytes that are looked at at once.
const BLOCK: usize = 16;

/// How many bytes precede the first null.
#[inline(always)]
pub(super) fn null(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Two blocks at a time: which of them has it need not be guessed then.
    while let Some(blocks) = bytes.get(at..).and_then(<[u8]>::first_chunk::<{ 2 * BLOCK }>) {
        let (first, second) = blocks.split_at(BLOCK);
        let found = nulls(first) | nulls(second) << BLOCK;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += 2 * BLOCK;
    }
    if let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let found = nulls(block);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    bytes[at..].iter().position(|byte| *byte == 0).map(|rest| at + rest)
}

/// Which of `BLOCK` bytes are null, the first one in the lowest bit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn nulls(block: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_setzero_si128};
    let words = block.first_chunk().map_or(u128::MAX, |block| u128::from_le_bytes(*block));
    // SAFETY: each of these works on registers only and needs SSE2, which every CPU with this architecture
    // has.
    unsafe {
        let words = _mm_set_epi64x((words >> 64) as i64, words as i64);
        _mm_movemask_epi8(_mm_cmpeq_epi8(words, _mm_setzero_si128())) as u32
    }
}

/// Which of `BLOCK` bytes are null, the first one in the lowest bit.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn nulls(block: &[u8]) -> u32 {
    block.iter().enumerate().fold(0, |nulls, (at, byte)| nulls | u32::from(*byte == 0) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_anywhere() {
        for length in 0..100 {
            let mut bytes = vec![0xFF; length];
            assert_eq!(null(&bytes), None, "{length} bytes");
            for at in (0..length).rev() {
                bytes[at] = 0;
                assert_eq!(null(&bytes), Some(at), "{length} bytes");
                assert_eq!(null(&bytes[at..]), Some(0), "{length} bytes");
            }
        }
    }
}
