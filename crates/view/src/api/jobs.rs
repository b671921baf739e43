//! `job` says how far an analysis is, and its result; `end` ends it.

use super::ask::{Refusal, parsed};
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
pub(super) struct Started {
    pub(super) job: u64,
}

#[derive(Debug, Serialize)]
struct State<'j> {
    done: u64,
    total: u64,
    failure: Option<&'j str>,
    result: Option<&'j Value>,
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
