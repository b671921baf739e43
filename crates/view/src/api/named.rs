//! `named`: rows that the page does not have, by their numbers or by those of their threads, with their parts
//! and with what they belong to. Other answers name rows by number only.

use super::ask::{Refusal, parsed, refused};
use super::tracks::{Track, labels};
use crate::choice::Choice;
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use tracewing_index::RowKind;
use tracewing_units::Tid;

/// Most rows, and threads, of a question.
const MOST: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    rows: Vec<u32>,
    /// Numbers of threads, each of which several may have had.
    #[serde(default)]
    threads: Vec<i32>,
}

#[derive(Debug, Serialize)]
struct Answer {
    rows: Vec<Track>,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { rows, threads } = parsed(body)?;
    if rows.len() + threads.len() > MOST {
        return Err(refused("too many rows"));
    }
    let tids: HashSet<Tid> = threads.into_iter().map(Tid).collect();
    let has = |kind: &RowKind| matches!(kind, RowKind::Thread(tid) if tids.contains(tid));
    let threads = ready.index.rows().filter(|(_, row)| has(&row.kind)).map(|(id, _)| id);
    let rows = rows.into_iter().map(|number| ready.row_of(number));
    let choice = Choice::of(&ready.index, rows.chain(threads));
    Ok(Reply::json(&Answer { rows: labels(ready, choice.rows(&ready.index)) }))
}
