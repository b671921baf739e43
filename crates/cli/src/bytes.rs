//! Looks at long texts many bytes at a time.

/// Bytes that are looked at without a branch between them.
const PIECE: usize = 128;

/// Whether any byte is one of these. In pieces of known size, each without a branch, so that the compiler
/// compares as many bytes at a time as the processor can.
#[inline(always)]
pub fn any(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    let has = |piece: &[u8]| piece.iter().fold(0, |any, byte| any | u8::from(is(*byte))) != 0;
    let (pieces, rest) = bytes.as_chunks::<PIECE>();
    pieces.iter().any(|piece| has(piece)) || has(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        for length in 0..3 * PIECE {
            let mut bytes = vec![b' '; length];
            assert!(!any(&bytes, |byte| byte == b'x'), "{length} bytes");
            for at in 0..length {
                bytes[at] = b'x';
                assert!(any(&bytes, |byte| byte == b'x'), "byte {at} of {length}");
                bytes[at] = b' ';
            }
        }
    }
}
