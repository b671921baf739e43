//! A metadata stream as a text: what its bytes are, before a parser reads them, and how errors show a place
//! in it.

mod packets;
mod warnings;

use std::borrow::Cow;

pub(crate) use self::warnings::Warnings;
use crate::magic::RECORD_SEPARATOR;
use crate::model::ByteOrder;
use crate::{Error, MetadataFault};

/// Field classes inside one another; real ones stay below ten.
pub(crate) const DEEPEST_FIELD_CLASS: u32 = 64;

/// The maximum number of field classes in all scopes of a trace together, for metadata of this many bytes. A
/// field class that has no name takes more text than that; named ones can be multiplied with each line of a
/// hostile text, and each takes some 400 bytes of memory.
pub(crate) const fn most_field_classes(text_bytes: usize) -> u64 {
    (1 << 17) + text_bytes as u64 / 2
}

/// The language of a metadata text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// TSDL, the language of CTF 1.8.
    Tsdl,
    /// CTF 2's: a JSON text sequence.
    Json,
}

/// A metadata stream's text, without packets.
pub(crate) struct Text<'m> {
    pub(crate) language: Language,
    pub(crate) text: Cow<'m, str>,
    /// The byte order of the packets, if the stream is cut into packets.
    pub(crate) packets: Option<ByteOrder>,
    /// What is to be said of the bytes after the last packet, if there are some.
    pub(crate) rest: Option<Error>,
}

/// The metadata's language and text, without packets.
pub(crate) fn text(metadata: &[u8]) -> Result<Text<'_>, Error> {
    let (language, bytes, packets, rest) = match packets::contents(metadata) {
        Some(contents) => {
            let packets::Contents { text, version, order, rest } = contents?;
            let language = if version == (2, 0) { Language::Json } else { Language::Tsdl };
            (language, Cow::Owned(text), Some(order), rest)
        }
        None => (language(metadata)?, Cow::Borrowed(metadata), None, None),
    };
    let text = match (language, bytes) {
        // Free text may be in any encoding; the language itself is ASCII.
        (Language::Tsdl, Cow::Borrowed(bytes)) => String::from_utf8_lossy(bytes),
        (Language::Tsdl, Cow::Owned(bytes)) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        (Language::Json, bytes) => {
            if let Err(error) = std::str::from_utf8(&bytes) {
                let text = String::from_utf8_lossy(&bytes);
                return Err(error_at(&text, error.valid_up_to(), MetadataFault::NotUtf8));
            }
            Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    Ok(Text { language, text, packets, rest })
}

/// The language of plain text, by how it begins.
fn language(bytes: &[u8]) -> Result<Language, Error> {
    if bytes.first() == Some(&(RECORD_SEPARATOR as u8)) {
        return Ok(Language::Json);
    }
    // Blanks may be missing or more, as for babeltrace2.
    let version = ["/*", "CTF", "1.8"].into_iter().try_fold(bytes, |rest, part| {
        rest.trim_ascii_start().strip_prefix(part.as_bytes()).filter(|_| !bytes[0].is_ascii_whitespace())
    });
    if version.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_digit)) {
        return Ok(Language::Tsdl);
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    Err(error_at(&text, 0, MetadataFault::NeitherVersion))
}

/// A metadata error at a byte offset of the text.
#[cold]
pub(crate) fn error_at(text: &str, at: usize, fault: impl Into<MetadataFault>) -> Error {
    /// Number of characters shown before and after the place.
    const BEFORE: usize = 100;
    const AFTER: usize = 60;
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    let after = text[at..].lines().next().unwrap_or("");
    let skipped = before.chars().count().saturating_sub(BEFORE);
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    // Tabs and separators would move the caret.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    shown.extend(before.chars().skip(skipped).map(plain));
    let caret = shown.chars().count() as u32;
    shown.extend(after.chars().take(AFTER).map(plain));
    if after.chars().nth(AFTER).is_some() {
        shown.push('…');
    }
    Error::Metadata {
        line: 1 + text[..start].bytes().filter(|&byte| byte == b'\n').count() as u32,
        column: 1 + (at - start) as u32,
        text: shown,
        caret,
        fault: Box::new(fault.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_needs_its_signature() {
        for bytes in [&b"/* CTF 1.8 */"[..], b"/*CTF 1.8*/", b"/*  CTF1.8 */", b"/* CTF 1.8"] {
            assert_eq!(text(bytes).unwrap().language, Language::Tsdl, "{bytes:?}");
        }
        assert_eq!(text(b"\x1e{}").unwrap().language, Language::Json);
        for bytes in
            [&b"/* CTF 1.80 */"[..], b"/* CTF 2.0 */", b" /* CTF 1.8 */", b"", b"/*", b"\0\0\0", b"{}"]
        {
            assert!(text(bytes).err().unwrap().to_string().contains("neither CTF 1.8 nor"), "{bytes:?}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let line = format!("first\n{}\tX{}\nlast", "é".repeat(200), "b".repeat(100));
        let shown = error_at(&line, 6 + 401, MetadataFault::NotUtf8).to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "metadata, line 2, column 402: these bytes are not UTF-8");
        assert_eq!(lines[1], format!("  …{} X{}…", "é".repeat(99), "b".repeat(59)));
        assert_eq!(lines[2].chars().count(), 2 + 1 + 99 + 1 + 1);
        assert!(lines[2].ends_with(" ^"));
    }
}
