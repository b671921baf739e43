//! The list of a session's starts, and what can be read of one that has mistakes: a broken disk, or an
//! editor, can have torn it.

use super::start::Start;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Value};
use std::collections::BTreeMap;

/// What was removed of a channel's earlier recorders since the session was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub count: u64,
    pub events: u64,
    pub bytes: u64,
    /// Whether it has had more events: those of recorders that were killed are not counted.
    pub has_more: bool,
}

/// The file of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The oldest first.
    pub starts: Vec<Start>,
    pub removed: BTreeMap<String, Removed>,
    /// Whether more was removed since the session was started: the list had mistakes.
    #[serde(default)]
    pub has_removed_more: bool,
}

impl Record {
    /// # Errors
    /// The text has mistakes: what can be read nevertheless.
    pub fn read(text: &[u8]) -> Result<Self, Self> {
        serde_json::from_slice(text).map_err(|_| Self::partial(text))
    }

    fn partial(text: &[u8]) -> Self {
        let starts = match serde_json::from_slice::<Value>(text) {
            Ok(mut whole) => match whole.get_mut("starts").map(Value::take) {
                Some(Value::Array(starts)) => starts,
                _ => Vec::new(),
            },
            Err(_) => before_mistake(text),
        };
        let starts = starts.into_iter().filter_map(|start| serde_json::from_value(start).ok()).collect();
        Self { starts, removed: BTreeMap::new(), has_removed_more: true }
    }
}

/// The elements of the list before the place where it is torn.
fn before_mistake(text: &[u8]) -> Vec<Value> {
    const BEGIN: &[u8] = br#"{"starts":["#;
    let mut starts = Vec::new();
    let mut rest = text.strip_prefix(BEGIN).unwrap_or_default();
    loop {
        let mut values = Deserializer::from_slice(rest).into_iter();
        let Some(Ok(start)) = values.next() else { return starts };
        starts.push(start);
        rest = &rest[values.byte_offset()..];
        match rest.strip_prefix(b",") {
            Some(next) => rest = next,
            None => return starts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn folders(record: &Record) -> Vec<&Path> {
        record.starts.iter().map(|start| start.folder.as_path()).collect()
    }

    #[test]
    fn what_is_whole_of_a_torn_list_is_read() {
        let start = |name: &str| Start {
            folder: format!("/t/{name}").into(),
            inode: 7,
            device: Some(8),
            size: 9,
            parts: BTreeMap::new(),
        };
        let removed = [("main".to_owned(), Removed { count: 1, ..Removed::default() })].into();
        let starts = ["a", "b", "c"].map(start).into();
        let text = serde_json::to_vec(&Record { starts, removed, has_removed_more: false }).unwrap();
        let whole = Record::read(&text).unwrap();
        assert_eq!((whole.starts.len(), whole.removed["main"].count, whole.has_removed_more), (3, 1, false));
        for end in 0..text.len() {
            let torn = Record::read(&text[..end]).unwrap_err();
            assert!(folders(&whole).starts_with(&folders(&torn)), "{end}: {torn:?}");
            assert!(torn.removed.is_empty() && torn.has_removed_more);
        }
        let torn = |end: &str| {
            let end =
                text.windows(end.len()).position(|window| window == end.as_bytes()).unwrap() + end.len();
            folders(&Record::read(&text[..end]).unwrap_err()).len()
        };
        assert_eq!((torn("/t/a"), torn("/t/b"), torn("/t/c"), torn("removed")), (0, 1, 2, 3));
        // One with a mistake among others, and bytes that are no text.
        let text = String::from_utf8(text).unwrap();
        let other = Record::read(text.replacen("\"inode\":7", "\"inode\":\"x\"", 1).as_bytes()).unwrap_err();
        assert_eq!(folders(&other), [Path::new("/t/b"), Path::new("/t/c")]);
        let mut bytes = text.clone().into_bytes();
        let last = text.rfind("/t/c").unwrap();
        bytes[last + 1] = 0xff;
        assert_eq!(folders(&Record::read(&bytes).unwrap_err()), [Path::new("/t/a"), Path::new("/t/b")]);
        for text in ["", "[]", "{}", "nonsense", r#"{"starts":7,"removed":{}}"#, r#"{"starts":[1,2"#] {
            assert!(Record::read(text.as_bytes()).unwrap_err().starts.is_empty(), "{text}");
        }
    }
}
