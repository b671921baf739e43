//! Appends short texts to a byte buffer by copies of known sizes, which take no call: more than is there is written, and cut
//! off again.

/// Appends a text; fast up to 32 bytes.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, text: &[u8]) {
    let (start, length) = (out.len(), text.len());
    match length {
        16..=32 => ends::<16, 32>(out, start, text),
        8..=15 => ends::<8, 16>(out, start, text),
        4..=7 => ends::<4, 8>(out, start, text),
        0..=3 => text.iter().for_each(|byte| out.push(*byte)),
        _ => out.extend_from_slice(text),
    }
}

/// Appends the first and the last `HALF` bytes of a text of `HALF` to `WHOLE` bytes, which overlap.
#[inline(always)]
fn ends<const HALF: usize, const WHOLE: usize>(out: &mut Vec<u8>, start: usize, text: &[u8]) {
    let length = text.len();
    out.extend_from_slice(&[0; WHOLE]);
    if let (Some(first), Some(last)) = (text.first_chunk::<HALF>(), text.last_chunk::<HALF>()) {
        out[start..start + HALF].copy_from_slice(first);
        out[start + length - HALF..start + length].copy_from_slice(last);
    }
    out.truncate(start + length);
}

/// A text of at most 32 bytes, with what follows it in memory.
#[derive(Debug, Clone)]
pub(crate) struct Short {
    bytes: [u8; 32],
    length: u8,
}

impl Short {
    /// The longest beginning of `text` that fits, and the rest.
    pub(crate) fn split(text: &[u8]) -> (Self, &[u8]) {
        let (now, rest) = text.split_at(text.len().min(32));
        let mut bytes = [0; 32];
        bytes[..now.len()].copy_from_slice(now);
        (Short { bytes, length: now.len() as u8 }, rest)
    }

    /// Appends it.
    #[inline(always)]
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        let end = out.len() + usize::from(self.length);
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length() {
        let all: Vec<u8> = (0..70).collect();
        for length in 0..70 {
            let mut out = b"before".to_vec();
            text(&mut out, &all[..length]);
            assert_eq!(out, [b"before", &all[..length]].concat());
            let (short, rest) = Short::split(&all[..length]);
            let mut out = b"before".to_vec();
            short.append(&mut out);
            assert_eq!([&out, rest].concat(), [b"before", &all[..length]].concat());
        }
    }
}
