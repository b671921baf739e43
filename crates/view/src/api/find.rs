//! `find` starts a search among events; `found` says how far it is and where matches are; `match` gives one
//! of them; `forget` ends it.

use super::ask::{Refusal, busy, parsed, ready, refused};
use crate::filters::Parsed;
use crate::passes::Pass;
use crate::recording::Viewed;
use crate::reply::Reply;
use crate::search::{Found, Search, Text};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tracewing_units::Duration;

/// Longest text.
const LONGEST: usize = 400;
/// Most buckets of an answer.
const MOST: usize = 8192;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedFound {
    search: u64,
    from: Duration,
    to: Duration,
    /// Into how many equal parts the time is divided.
    count: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedMatch {
    search: u64,
    /// The match of this number, from 0.
    number: Option<usize>,
    /// The first one at this time or later (1), or the last one at it or earlier (-1).
    time: Option<Duration>,
    #[serde(default)]
    step: i8,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedEnd {
    search: u64,
}

#[derive(Debug, Serialize)]
struct Started {
    search: u64,
}

#[derive(Debug, Serialize)]
struct State {
    is_done: bool,
    failure: Option<String>,
    /// Up to when all matches are found.
    until: Duration,
    /// All matches so far, and of how many the time is kept.
    count: u64,
    marked: usize,
    /// How many are in the time that was asked for.
    within: usize,
    /// Of each part that has any: its number and how many.
    parts: Vec<(usize, usize)>,
}

#[derive(Debug, Serialize)]
struct Match {
    number: usize,
    at: Duration,
}

pub(super) fn find(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { text } = parsed(body)?;
    if text.len() > LONGEST || text.trim().is_empty() {
        return Err(refused("the text is empty or too long"));
    }
    let begin = ready(viewed)?.index.tail().begin;
    let Parsed { filter, words } = Parsed::of(&text).map_err(|why| refused(&why))?;
    let text = Text { words, filter };
    let search = viewed.searches.search(&viewed.recording(), begin, text).map_err(busy)?;
    Ok(Reply::json(&Started { search }))
}

fn search(viewed: &Viewed, number: u64) -> Result<Arc<Pass<Search>>, Refusal> {
    let gone = || Refusal { status: StatusCode::GONE, why: "this search is not kept".to_owned() };
    viewed.searches.get(number).ok_or_else(gone)
}

/// How far a search is, and where matches are.
pub(super) fn found(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedFound { search: number, from, to, count } = parsed(body)?;
    if from >= to || count == 0 || count > MOST {
        return Err(refused("there is no such window"));
    }
    let search = search(viewed, number)?;
    Ok(Reply::json(&search.with(|found| state(found, from, to, count))))
}

fn state(found: &Found, from: Duration, to: Duration, count: usize) -> State {
    let place = |time: Duration| found.times.partition_point(|at| *at < time);
    let end = |part: usize| {
        let after = u128::from((to - from).as_ns()) * (part as u128 + 1) / count as u128;
        from + Duration::from_ns(u64::try_from(after).unwrap_or(u64::MAX))
    };
    let (first, last) = (place(from), place(to));
    let mut parts = Vec::new();
    let mut at = first;
    let mut part = 0;
    while at < last && part < count {
        let next = place(end(part)).clamp(at, last);
        if next > at {
            parts.push((part, next - at));
        }
        (at, part) = (next, part + 1);
    }
    State {
        is_done: found.is_done,
        failure: found.failure.clone(),
        until: found.until,
        count: found.count,
        marked: found.times.len(),
        within: last - first,
        parts,
    }
}

/// One of the matches; `null` if there is none.
pub(super) fn one(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedMatch { search: of, number, time, step } = parsed(body)?;
    let search = search(viewed, of)?;
    let number = match (number, time, step) {
        (Some(number), None, 0) => Some(number),
        (None, Some(time), 1) => Some(search.with(|found| found.times.partition_point(|at| *at < time))),
        (None, Some(time), -1) => {
            search.with(|found| found.times.partition_point(|at| *at <= time)).checked_sub(1)
        }
        _ => return Err(refused("a match is asked by its number, or by a time and a step")),
    };
    let found = number.and_then(|number| {
        search.with(|found| found.times.get(number).copied()).map(|at| Match { number, at })
    });
    Ok(Reply::json(&found))
}

pub(super) fn forget(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedEnd { search } = parsed(body)?;
    viewed.searches.end(search);
    Ok(Reply::json(&()))
}
