//! Reads metadata streams of either version.

use crate::metadata_text::{Language, Text, Warnings, error_at, text};
use crate::model::TraceClass;
use crate::{Error, MetadataFault, json, tsdl};

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
    /// Adds the declaration's place in the metadata to an error about a trace class: line, column and the
    /// line's text. `metadata` is the whole stream that the trace class was read from. Other errors are
    /// returned unchanged.
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
