//! Analyses are started by what they find; `job` says how far one is, and its result; `end` ends it.

use super::ask::{Refusal, busy, parsed};
use crate::jobs::{Analysis, Job};
use crate::recording::Viewed;
use crate::reply::Reply;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    job: u64,
}

#[derive(Debug, Serialize)]
struct Started {
    job: u64,
}

#[derive(Debug, Serialize)]
struct State<'j> {
    done: u64,
    total: u64,
    failure: Option<&'j str>,
    result: Option<&'j Value>,
}

/// Starts an analysis.
pub(super) fn start<A: Serialize>(
    viewed: &Viewed,
    find: impl FnOnce(&Job) -> Result<A, String> + Send + 'static,
) -> Result<Reply, Refusal> {
    let work = |job: &Job| serde_json::to_value(find(job)?).map_err(|error| error.to_string());
    Ok(Reply::json(&Started { job: viewed.jobs.start(Analysis::default(), work).map_err(busy)? }))
}

pub(super) fn job(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { job } = parsed(body)?;
    let gone = || Refusal { status: StatusCode::GONE, why: "this analysis is not kept".to_owned() };
    let job = viewed.jobs.get(job).ok_or_else(gone)?;
    let (done, total) = job.progress();
    let (failure, result) = match job.result() {
        None => (None, None),
        Some(Err(why)) => (Some(why.as_str()), None),
        Some(Ok(result)) => (None, Some(result)),
    };
    Ok(Reply::json(&State { done, total, failure, result }))
}

pub(super) fn end(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { job } = parsed(body)?;
    viewed.jobs.end(job);
    Ok(Reply::json(&()))
}
