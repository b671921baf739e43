//! Strings in quotes, with C's escapes for what would not show or would end them; and strings without, as a
//! terminal may have them.

use crate::append;
use std::borrow::Cow;

/// Whether a character may command a terminal, break a line, or make a text look like another one: control
/// characters (C0, DEL, C1), what sets the direction of text (U+061C, U+200E, U+200F, U+202A to U+202E,
/// U+2066 to U+2069), and the separators of lines and paragraphs (U+2028, U+2029).
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of a trace as a terminal may have it: what is [unsafe](is_unsafe) is written as escapes.
pub fn shown(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.bytes().all(is_plain) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| -> String { if is_unsafe(c) { c.escape_default().collect() } else { c.into() } };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Appends a string in quotes.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.len() <= 32 && is_plain(text) {
        append::text(out, text);
        return out.push(b'"');
    }
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| ESCAPED[usize::from(byte)]) {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        rest = &rest[at + 1..];
        let letter = match byte {
            b'\\' | b'\'' | b'"' | b'?' => byte,
            0x07 => b'a',
            0x08 => b'b',
            0x1b => b'e',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            other => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digits = [DIGITS[usize::from(other >> 4)], DIGITS[usize::from(other & 15)]];
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&digits);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Whether nothing in a text is escaped. Blocks of 16 bytes, which may overlap, are looked at as a whole
/// each; a shorter text is put together to one from its first and its last bytes.
#[inline(always)]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    match text.len() {
        16.. => text.chunks_exact(16).chain([&text[text.len() - 16..]]).all(|block| {
            block.first_chunk().is_some_and(|block| is_plain_block(u128::from_le_bytes(*block)))
        }),
        8..=15 => ends(text).is_some_and(|(first, last)| {
            is_plain_block(u128::from(u64::from_le_bytes(first)) | u128::from(u64::from_le_bytes(last)) << 64)
        }),
        4..=7 => ends(text).is_some_and(|(first, last)| {
            let both = u128::from(u32::from_le_bytes(first)) | u128::from(u32::from_le_bytes(last)) << 32;
            is_plain_block(both | both << 64)
        }),
        _ => !text.iter().any(|&byte| is_escaped(byte)),
    }
}

/// The first and the last `SIZE` bytes.
#[inline(always)]
fn ends<const SIZE: usize>(text: &[u8]) -> Option<([u8; SIZE], [u8; SIZE])> {
    Some((*text.first_chunk()?, *text.last_chunk()?))
}

/// Whether nothing in 16 bytes is escaped.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_plain_block(block: u128) -> bool {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };
    // SAFETY: each of these works on registers only and needs SSE2, which every CPU with this architecture
    // has.
    unsafe {
        let text = _mm_set_epi64x((block >> 64) as i64, block as i64);
        let or = |some, others| _mm_or_si128(some, others);
        let is = |byte: u8| _mm_cmpeq_epi8(text, _mm_set1_epi8(byte as i8));
        let controls = or(_mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(31)), text), is(127));
        let marks = or(or(is(b'\\'), is(b'\'')), or(is(b'"'), is(b'?')));
        _mm_movemask_epi8(or(controls, marks)) == 0
    }
}

/// Whether nothing in 16 bytes is escaped.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn is_plain_block(block: u128) -> bool {
    !block.to_le_bytes().iter().any(|byte| is_escaped(*byte))
}

/// Whether a byte is escaped: control characters of ASCII, and `\`, `'`, `"`, `?`.
#[inline(always)]
const fn is_escaped(byte: u8) -> bool {
    (byte < 32) | (byte == 127) | (byte == b'\\') | (byte == b'\'') | (byte == b'"') | (byte == b'?')
}

/// [`is_escaped`], as a table.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        escaped[byte] = is_escaped(byte as u8);
        byte += 1;
    }
    escaped
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut out = Vec::new();
        quoted(&mut out, b"a\"b'c\\d?e\n\t\x01\x7f\x1b\xff");
        assert_eq!(out, b"\"a\\\"b\\'c\\\\d\\?e\\n\\t\\x01\\x7f\\e\xff\"");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown("naïve \u{1b}[2J\n\u{9b}x\u{7f}"), "naïve \\u{1b}[2J\\n\\u{9b}x\\u{7f}");
        assert_eq!(shown("\u{202e}a\u{2066}\u{200f}\u{2028}"), "\\u{202e}a\\u{2066}\\u{200f}\\u{2028}");
    }

    #[test]
    fn one_escape_anywhere() {
        for length in 0..70 {
            let mut text = vec![b'a'; length];
            assert!(is_plain(&text), "{length} bytes");
            for at in 0..length {
                for byte in 0..=255 {
                    text[at] = byte;
                    assert_eq!(is_plain(&text), !ESCAPED[usize::from(byte)], "{byte} at {at} of {length}");
                }
                text[at] = b'a';
            }
        }
    }
}
