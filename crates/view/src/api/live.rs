//! `live`: how far the index of a recording is that is being made, or read for the first time. A page asks
//! it several times a second, so the answer is small.

use super::ask::{ALL_CPUS, Refusal, parsed, ready, refused};
use super::filling::{Filling, filling, length};
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_index::{Changes, RowId};
use tracewing_units::Duration;

/// Most rows of which a question asks up to when they are certain.
const MOST_ROWS: usize = 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    rows: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    /// Whether the recording is still being made.
    is_live: bool,
    /// While the index of one that is not is filled.
    filling: Option<Filling>,
    /// Why it is not read any more, if that is not because it has ended.
    why: Option<&'a str>,
    /// Which of its indexes answers; another one has more.
    version: u64,
    /// Another number says that rows have other places: all that is known of them is out of date.
    passes: u64,
    /// Grows when states have changed that were certain.
    changed: u64,
    /// When it begins, on the recording's clock, as a text: 64 bits.
    begin_ns: String,
    length: Duration,
    events: u64,
    rows: usize,
    losses: usize,
    /// Of each row that was asked for: from this time on, its states may still change; `None` if none will.
    certain: Vec<Option<Duration>>,
}

pub(super) fn answer(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    if asked.rows.len() > MOST_ROWS {
        return Err(refused("too many rows"));
    }
    let ready = ready(viewed)?;
    let (version, Changes { passes, states }) = ready.grows.unwrap_or((u64::MAX >> 11, Changes::default()));
    let tail = ready.index.tail();
    Ok(Reply::json(&Answer {
        is_live: viewed.is_followed() && ready.grows.is_some() && viewed.failure().is_none(),
        filling: filling(viewed, &ready),
        why: viewed.failure(),
        version,
        passes,
        changed: states,
        begin_ns: tail.begin.as_ns().to_string(),
        length: length(viewed, &ready),
        events: tail.events,
        rows: tail.rows.len(),
        losses: tail.losses.len(),
        certain: asked.rows.iter().map(|row| certain(&ready, *row)).collect(),
    }))
}

/// From when on the states of a row may still change.
fn certain(ready: &Ready, number: u32) -> Option<Duration> {
    let of = |id: &RowId| ready.index.row(*id).certain;
    let id = RowId(number);
    let time = match (number, ready.names(number)) {
        (ALL_CPUS, _) => ready.cpus.iter().map(of).min().unwrap_or(Duration::MAX),
        (_, Some(names)) => names.iter().map(of).min().unwrap_or(Duration::MAX),
        _ if ready.index.has(id) => of(&id),
        _ => Duration::ZERO,
    };
    (time < Duration::MAX).then_some(time)
}
