//! Strings in UTF-16 and UTF-32, as they lie in a packet.

use std::fmt;

use crate::model::Encoding;

/// The code units of a string in UTF-16 or UTF-32, without the terminating null. They may be invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WideText<'a> {
    bytes: &'a [u8],
    encoding: Encoding,
}

impl<'a> WideText<'a> {
    /// The string in `bytes`: up to the first null, or all of them. An incomplete code unit is ignored.
    pub(super) fn new(bytes: &'a [u8], encoding: Encoding) -> Self {
        let unit = encoding.unit();
        let length = bytes.chunks_exact(unit).take_while(|unit| unit.iter().any(|&byte| byte != 0)).count();
        WideText { bytes: &bytes[..length * unit], encoding }
    }

    /// The undecoded bytes, without the null.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// One of the encodings UTF-16 and UTF-32.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The characters; U+FFFD for what is none.
    pub fn chars(&self) -> impl Iterator<Item = char> + 'a {
        let WideText { bytes, encoding } = *self;
        let mut units = bytes.chunks_exact(encoding.unit()).map(move |unit| match (encoding, unit) {
            (Encoding::Utf16Be, &[a, b]) => u32::from(u16::from_be_bytes([a, b])),
            (Encoding::Utf16Le, &[a, b]) => u32::from(u16::from_le_bytes([a, b])),
            (Encoding::Utf32Be, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
            (Encoding::Utf32Le, &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => u32::from(char::REPLACEMENT_CHARACTER),
        });
        let mut pending = None;
        let pairs = encoding.unit() == 2;
        std::iter::from_fn(move || {
            let unit = pending.take().or_else(|| units.next())?;
            if pairs && (0xD800..0xDC00).contains(&unit) {
                match units.next() {
                    Some(low @ 0xDC00..0xE000) => {
                        return char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
                    }
                    other => pending = other,
                }
            }
            Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
        })
    }
}

impl fmt::Display for WideText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|c| fmt::Write::write_char(f, c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogates_pair_and_strays_are_replaced() {
        let text = |units: &[u16]| {
            let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
            WideText::new(&bytes, Encoding::Utf16Be).to_string()
        };
        assert_eq!(text(&[0x61, 0xD83D, 0xDE00, 0x62]), "a\u{1F600}b");
        assert_eq!(text(&[0xD83D, 0x62, 0xDE00]), "\u{FFFD}b\u{FFFD}");
        assert_eq!(text(&[0xD83D]), "\u{FFFD}");
        assert_eq!(text(&[0x61, 0, 0x62]), "a");
    }

    #[test]
    fn incomplete_units_are_none() {
        let text = WideText::new(&[b'a', 0, 0, 0, b'b', 0, 0], Encoding::Utf32Le);
        assert_eq!((text.to_string().as_str(), text.bytes().len()), ("a", 4));
        assert_eq!(WideText::new(&[0, 0x11, 0, 0], Encoding::Utf32Be).to_string(), "\u{FFFD}");
    }
}
