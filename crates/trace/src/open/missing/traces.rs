//! Finds traces that the description lists and that are gone.

use crate::open::description::{self, Listed, known, streams};
use crate::open::gone::{GoneStream, GoneTrace};
use crate::stream::losses::Losses;
use serde_json::Value;
use std::path::Path;

/// The folders of the traces that a recording may have.
pub(super) const TRACES: [&str; 3] = ["kernel", "user", "profile"];

/// The traces that the description lists and that are not in `folder`.
pub(super) fn of_recording(folder: &Path, described: &Value) -> Vec<GoneTrace> {
    let is_gone = |name: &&str| {
        let streams = streams(described, name);
        streams.values().any(|stream| stream.bytes > 0) && !folder.join(name).join("metadata").exists()
    };
    TRACES.into_iter().filter(is_gone).map(|name| gone(folder, name, described, false)).collect()
}

/// The traces that were gone already when `folder` was made of another recording: how many of their events
/// would be in it is unknown.
pub(super) fn of_copy(folder: &Path, described: &Value) -> Vec<GoneTrace> {
    let names = described[description::GONE].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = names.filter(|name| TRACES.contains(name));
    names.map(|name| gone(folder, name, described, true)).collect()
}

fn gone(folder: &Path, name: &str, described: &Value, is_copy: bool) -> GoneTrace {
    let host = described.pointer("/host/name").and_then(Value::as_str);
    let stream = |(id, listed): (usize, Listed)| {
        let events = known(listed.events.saturating_add(listed.lost));
        let lost =
            if is_copy { Losses::of_events(None) } else { Losses::of_events(events).and(listed.more()) };
        GoneStream { class: 0, id: id as u64, lost }
    };
    GoneTrace {
        name: host.map_or_else(|| name.to_owned(), |host| format!("{host}/{name}")),
        folder: folder.join(name),
        streams: streams(described, name).into_values().enumerate().map(stream).collect(),
    }
}

/// How many events a trace that is gone held.
pub(super) fn events(gone: &GoneTrace, described: &Value) -> u64 {
    let streams = streams(described, &gone.folder_name());
    streams.values().fold(0_u64, |sum, stream| sum.saturating_add(stream.events))
}
