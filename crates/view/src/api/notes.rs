//! `notes`: the user's notes about the recording; `note` adds, changes and removes some.

use super::ask::{Refusal, parsed, ready, refused};
use crate::notes::Note;
use crate::recording::Viewed;
use crate::reply::Reply;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};

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

pub(super) fn all(viewed: &Viewed) -> Result<Reply, Refusal> {
    let begin = ready(viewed)?.index.tail().begin;
    let notes = viewed.notes.all(begin);
    let notes = notes.map_err(|why| Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why })?;
    Ok(Reply::json(&Answer { notes }))
}

pub(super) fn change(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { remove, add } = parsed(body)?;
    let begin = ready(viewed)?.index.tail().begin;
    if let Some(why) = add.iter().find_map(Note::fault) {
        return Err(refused(why));
    }
    let notes = viewed.notes.change(begin, |notes| {
        notes.retain(|note| !remove.contains(note));
        notes.extend(add);
    });
    let notes = notes.map_err(|why| Refusal { status: StatusCode::INSUFFICIENT_STORAGE, why })?;
    Ok(Reply::json(&Answer { notes }))
}
