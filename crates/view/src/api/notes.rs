//! `notes`: the user's notes about the recording; `note` adds, changes and removes some.

use super::ask::{Refusal, parsed, ready, refused};
use crate::notes::{About, Note};
use crate::recording::Viewed;
use crate::reply::Reply;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use std::io::{BufReader, Read};
use std::path::Path;
use tracewing_files::Tree;
use tracewing_trace::uuid_text;

/// Most bytes of a description that are read.
const DESCRIPTION: u64 = 64 << 20;

/// What is read of a description.
#[derive(Deserialize)]
struct Description {
    clock: Clock,
}

#[derive(Deserialize)]
struct Clock {
    begin: Begin,
}

#[derive(Deserialize)]
struct Begin {
    realtime_ns: i64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Those that are no longer kept.
    #[serde(default)]
    remove: Vec<Note>,
    #[serde(default)]
    add: Vec<Note>,
}

#[derive(Debug, Serialize)]
struct Answer {
    notes: Vec<Note>,
}

/// What identifies the recording: when its recorder began, as the recording itself says; otherwise the UUID
/// of its first trace that has one, or the time of its first event.
pub(super) fn about(viewed: &Viewed) -> Result<About, Refusal> {
    let begin = ready(viewed)?.index.tail().begin;
    let recording = viewed.recording();
    let uuid = || recording.traces().iter().find_map(|trace| trace.class().uuid);
    let began = viewed.began.get_or_init(|| viewed.inputs().iter().filter_map(|input| began(input)).min());
    let key = match (began, uuid()) {
        (Some(began), _) => began.to_string(),
        (None, Some(uuid)) => uuid_text(&uuid),
        (None, None) => begin.as_ns().to_string(),
    };
    Ok(About { key, begin })
}

/// When the recorder began, in nanoseconds of real time, as the description of tracewing's own recordings
/// says.
fn began(input: &Path) -> Option<i64> {
    let file = Tree::open(input).ok()?.file(Path::new("tracewing.json")).ok()?;
    // The rest is skipped while it is read.
    let file = BufReader::new(file.take(DESCRIPTION));
    Some(serde_json::from_reader::<_, Description>(file).ok()?.clock.begin.realtime_ns)
}

pub(super) fn all(viewed: &Viewed) -> Result<Reply, Refusal> {
    let notes = viewed.notes.all(&about(viewed)?);
    let notes = notes.map_err(|why| Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why })?;
    Ok(Reply::json(&Answer { notes }))
}

pub(super) fn change(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { remove, add } = parsed(body)?;
    let about = about(viewed)?;
    if let Some(why) = add.iter().find_map(Note::fault) {
        return Err(refused(why));
    }
    let notes = viewed.notes.change(&about, |notes| {
        notes.retain(|note| !remove.contains(note));
        notes.extend(add);
    });
    let notes = notes.map_err(|why| Refusal { status: StatusCode::INSUFFICIENT_STORAGE, why })?;
    Ok(Reply::json(&Answer { notes }))
}
