//! Integers of variable length (CTF2-SPEC-2.0, variable-length integer field class).

/// Bytes that 64 bits take at most.
pub(super) const MOST: usize = 10;

/// Appends an unsigned integer in as few bytes as it takes.
pub(super) fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed integer in as few bytes as it takes.
pub(super) fn signed(out: &mut Vec<u8>, mut value: i64) {
    // The last byte's highest bit but one is the sign.
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

/// An unsigned integer in as many bytes as any takes.
pub(super) fn longest(value: u64) -> [u8; MOST] {
    std::array::from_fn(|index| {
        let group = (value >> (7 * index)) as u8 & 0x7f;
        if index + 1 < MOST { group | 0x80 } else { group }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn as_dwarf_has_them() {
        for (value, expected) in
            [(0, vec![0]), (127, vec![0x7f]), (128, vec![0x80, 1]), (624_485, vec![0xe5, 0x8e, 0x26])]
        {
            assert_eq!(bytes(|out| unsigned(out, value)), expected);
        }
        for (value, expected) in [
            (-1, vec![0x7f]),
            (63, vec![0x3f]),
            (64, vec![0xc0, 0]),
            (-64, vec![0x40]),
            (-123_456, vec![0xc0, 0xbb, 0x78]),
        ] {
            assert_eq!(bytes(|out| signed(out, value)), expected);
        }
        assert_eq!(bytes(|out| unsigned(out, u64::MAX)), longest(u64::MAX));
        assert_eq!(longest(5), [0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]);
    }
}
