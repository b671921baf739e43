//! Metadata streams of either version: what their bytes are, before anybody parses them.

mod packets;
mod warnings;

use std::borrow::Cow;

pub(crate) use self::warnings::Warnings;
use crate::model::{ByteOrder, TraceClass};
use crate::{Error, MetadataFault, json, tsdl};

/// Field classes inside one another; real ones stay below ten.
pub(crate) const DEEPEST_FIELD_CLASS: u32 = 64;

/// Field classes in all scopes of a trace together, of a text of so many bytes. A field class that has no
/// name takes more text than that; named ones can be multiplied with each line of a hostile text, and each
/// takes some 400 bytes of memory.
pub(crate) const fn most_field_classes(text_bytes: usize) -> u64 {
    (1 << 17) + text_bytes as u64 / 2
}

/// The language of a metadata text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// CTF 1.8's.
    Tsdl,
    /// CTF 2's: a JSON text sequence.
    Json,
}

/// The trace class that a metadata stream of CTF 1.8 or CTF 2 describes; `metadata` is the whole stream,
/// plain or in packets.
///
/// ```
/// let metadata = b"\x1e{\"type\": \"preamble\", \"version\": 2}\x1e{\"type\": \"data-stream-class\"}";
/// let class = tracewing_ctf::metadata::parse(metadata)?;
/// assert_eq!(class.data_stream_classes.len(), 1);
/// # Ok::<(), tracewing_ctf::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::MetadataPacket`] for malformed packets, [`Error::Metadata`] for text of neither version.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, Error> {
    parse_with_warnings(metadata).map(|(class, _)| class)
}

/// As [`parse`], with a line for each thing in the metadata that is ignored, though it may mean something.
///
/// ```
/// let metadata = b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; color = red; };";
/// let (_, warnings) = tracewing_ctf::metadata::parse_with_warnings(metadata)?;
/// assert_eq!(warnings, ["metadata, line 1, column 62: unknown attribute `color` of `trace`; it is ignored"]);
/// # Ok::<(), tracewing_ctf::Error>(())
/// ```
///
/// # Errors
///
/// As [`parse`].
pub fn parse_with_warnings(metadata: &[u8]) -> Result<(TraceClass, Vec<String>), Error> {
    let text = text(metadata)?;
    let mut warnings = Warnings::default();
    if let Some(rest) = &text.rest {
        warnings.add(rest.clone());
    }
    let class = match text.language {
        Language::Tsdl => tsdl::parse_text(&text, &mut warnings)?,
        Language::Json => json::parse_text(&text.text)?,
    };
    Ok((class, warnings.lines()))
}

impl Error {
    /// Shows what is wrong in a trace class where the metadata declares it: the same error with line, column
    /// and the line. `metadata` is the whole stream from which the trace class was read. Other errors stay as
    /// they are.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tracewing_ctf::{decode::Decoder, metadata};
    ///
    /// let text = b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
    ///     event { name = e; fields := struct { string s[length]; }; };";
    /// let class = Arc::new(metadata::parse(text)?);
    /// let error = Decoder::new(class).unwrap_err().in_metadata(text).to_string();
    /// assert!(error.starts_with("metadata, line 2, column 51: event \"e\" (id 0), field `s`: its length `length`"));
    /// # Ok::<(), tracewing_ctf::Error>(())
    /// ```
    #[must_use]
    pub fn in_metadata(self, metadata: &[u8]) -> Error {
        let Error::TraceClass { place, fault, at } = &self else { return self };
        let (Some(at), Ok(Text { language, text, .. })) = (at.offset(), text(metadata)) else { return self };
        let fragment = match language {
            Language::Json => Some(json::fragment_at(&text, at)),
            Language::Tsdl => None,
        };
        let (place, fault) = (place.clone(), fault.clone());
        error_at(&text, at, MetadataFault::TraceClass { fragment, place, fault })
    }
}

/// A metadata stream's text, without packets.
pub(crate) struct Text<'m> {
    pub(crate) language: Language,
    pub(crate) text: Cow<'m, str>,
    /// The byte order of the packets, if the stream is cut into packets.
    pub(crate) packets: Option<ByteOrder>,
    /// What is to be said of the bytes after the last packet, if there are some.
    rest: Option<Error>,
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
    if bytes.first() == Some(&(json::RECORD_SEPARATOR as u8)) {
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
    /// Characters shown before and behind the place.
    const BEFORE: usize = 100;
    const BEHIND: usize = 60;
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    let behind = text[at..].lines().next().unwrap_or("");
    let skipped = before.chars().count().saturating_sub(BEFORE);
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    // Tabs and separators would move the caret.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    shown.extend(before.chars().skip(skipped).map(plain));
    let caret = shown.chars().count() as u32;
    shown.extend(behind.chars().take(BEHIND).map(plain));
    if behind.chars().nth(BEHIND).is_some() {
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
        assert_eq!(lines[0], "metadata, line 2, column 402: these bytes are no UTF-8");
        assert_eq!(lines[1], format!("  …{} X{}…", "é".repeat(99), "b".repeat(59)));
        assert_eq!(lines[2].chars().count(), 2 + 1 + 99 + 1 + 1);
        assert!(lines[2].ends_with(" ^"));
    }
}
