//! `series` starts to read a numeric field of all events of a name; `valued` says how far it is, and the
//! values of a time one by one; `values` gives the least, the greatest and the last one in each bucket of a
//! window, in the form of `rows`; `unseries` ends it.

use super::ask::{Refusal, busy, parsed, ready, refused};
use super::classes::LONGEST;
use super::picture;
use crate::passes::Pass;
use crate::recording::Viewed;
use crate::reply::Reply;
use crate::series::{Field, Series};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use tracewing_ctf::model::Scope;
use tracewing_units::Duration;

/// Most values in a window: of more, none are given.
const MOST: usize = 2048;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    event: String,
    /// As in the fields of an event: `payload.bytes`.
    field: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedValued {
    series: u64,
    from: Duration,
    to: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedValues {
    series: u64,
    shift: u32,
    first: u64,
    count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedEnd {
    series: u64,
}

#[derive(Debug, Serialize)]
struct Started {
    series: u64,
}

#[derive(Debug, Serialize)]
struct Answer {
    is_done: bool,
    failure: Option<String>,
    /// Up to when all are found.
    until: Duration,
    count: u64,
    least: f64,
    most: f64,
    /// Each with its beginning and end; `null` if there are too many.
    values: Option<Vec<(f64, Duration, Duration)>>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { event, field } = parsed(body)?;
    if event.len() > LONGEST || field.len() > LONGEST {
        return Err(refused("the name is too long"));
    }
    let (scope, name) = field.split_once('.').unwrap_or_default();
    let scope = match scope {
        "payload" => Scope::Payload,
        "specific_context" => Scope::SpecificContext,
        "common_context" => Scope::CommonContext,
        "packet_context" => Scope::PacketContext,
        _ => return Err(refused("there is no such field")),
    };
    let ready = ready(viewed)?;
    let field = Field { event, scope, name: name.to_owned() };
    let series = viewed.series.read(&viewed.recording(), &ready.index, field).map_err(busy)?;
    Ok(Reply::json(&Started { series }))
}

fn series(viewed: &Viewed, number: u64) -> Result<Arc<Pass<Series>>, Refusal> {
    let gone = || Refusal { status: StatusCode::GONE, why: "this counter is not kept".to_owned() };
    viewed.series.get(number).ok_or_else(gone)
}

pub(super) fn valued(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedValued { series: number, from, to } = parsed(body)?;
    let series = series(viewed, number)?;
    let mut values = Vec::new();
    let mut is_cut = !series.with(|found| found.is_whole());
    if !is_cut {
        series.each((from, to), |point, end| {
            is_cut = values.len() == MOST;
            values.push((point.last, point.from, end));
            if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    let values = Some(values).filter(|_| !is_cut);
    Ok(Reply::json(&series.with(|found| {
        let (least, most) = found.range().unwrap_or_default();
        let (is_done, failure) = (found.is_done, found.failure.clone());
        Answer { is_done, failure, until: found.until, count: found.count, least, most, values }
    })))
}

pub(super) fn values(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedValues { series: number, shift, first, count } = parsed(body)?;
    let series = series(viewed, number)?;
    let window = picture::window(shift, first, count)?;
    let values = series.buckets(window).into_iter();
    let runs =
        picture::counter(values.map(|(at, values, begun)| (at, values.map(|one| one as f32), begun)), window);
    // The page knows which row it asks for.
    Ok(Reply::bytes(picture::record(0, &runs)))
}

pub(super) fn end(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedEnd { series } = parsed(body)?;
    viewed.series.end(series);
    Ok(Reply::json(&()))
}
