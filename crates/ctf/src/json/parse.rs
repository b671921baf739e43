//! Parses CTF 2 metadata into a trace class: fragments, one after the other.

use std::collections::{HashMap, HashSet};

use super::parser::Parser;
use super::value::{Source, Value};
use crate::magic::RECORD_SEPARATOR;
use crate::metadata_text::{self, Language, Text};
use crate::model::{TraceClass, Version};
use crate::{Error, JsonFault, MetadataFault};

/// The trace class that a CTF 2 metadata stream describes; `metadata` is the whole stream, plain or in
/// packets.
///
/// # Errors
///
/// [`Error::MetadataPacket`] for malformed packets, [`Error::Metadata`] for text that is not CTF 2.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, Error> {
    let Text { language, text, .. } = metadata_text::text(metadata)?;
    match language {
        Language::Json => parse_text(&text),
        Language::Tsdl => Err(metadata_text::error_at(&text, 0, MetadataFault::IsCtf1)),
    }
}

/// As [`parse`], of the text without packets.
pub(crate) fn parse_text(text: &str) -> Result<TraceClass, Error> {
    let mut parser = Parser {
        trace: TraceClass { version: Version::V2, ..TraceClass::new() },
        aliases: HashMap::new(),
        has_trace_class: false,
        streams: HashMap::new(),
        event_ids: HashSet::new(),
        budget: metadata_text::most_field_classes(text.len()),
    };
    let mut parts = text.split(RECORD_SEPARATOR);
    let first = parts.next().unwrap_or_default();
    if !first.trim().is_empty() {
        return Err(metadata_text::error_at(text, 0, MetadataFault::NoSeparator));
    }
    let mut count = 0;
    for (index, part) in parts.filter(|part| is_fragment(part)).enumerate() {
        count = index + 1;
        let fragment = Value::parse(Source { text, fragment: count }, part)?;
        parser.fragment(fragment, index == 0)?;
    }
    let end = Source { text, fragment: count };
    if count == 0 {
        return Err(metadata_text::error_at(text, 0, MetadataFault::NoFragment));
    }
    if parser.trace.data_stream_classes.is_empty() {
        return Err(end.error_at(text.len(), JsonFault::NoStreams));
    }
    Ok(parser.trace)
}

/// Separators with nothing between them separate nothing (RFC 7464, section 2.1).
fn is_fragment(part: &str) -> bool {
    !part.trim().is_empty()
}

/// The number, from 1, of the fragment at a byte offset of the text.
pub(crate) fn fragment_at(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let whole = before.rfind(RECORD_SEPARATOR).map_or("", |begin| &before[..begin]);
    1 + whole.split(RECORD_SEPARATOR).skip(1).filter(|part| is_fragment(part)).count()
}
