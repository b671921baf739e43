//! What is asked: read, and refused where it would cost too much or makes no sense.

use crate::recording::{Ready, Viewed};
use hyper::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tracewing_index::{Index, RowId};
use tracewing_units::Duration;

pub(super) use crate::recording::ALL_CPUS;

/// What is said of a time that has not been read yet.
const UNREAD: &str = "Not all of this time has been read yet. The answer comes when it has.";

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

/// What is asked makes no sense.
pub(super) fn refused(why: &str) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, why: why.to_owned() }
}

/// What is asked cannot be done now.
pub(super) fn busy(why: String) -> Refusal {
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, why }
}

impl From<tracewing_index::Error> for Refusal {
    fn from(error: tracewing_index::Error) -> Self {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why: error.to_string() }
    }
}

impl From<tracewing_trace::Error> for Refusal {
    fn from(error: tracewing_trace::Error) -> Self {
        Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why: error.to_string() }
    }
}

/// The index, if it is made.
pub(super) fn ready(viewed: &Viewed) -> Result<Arc<Ready>, Refusal> {
    match viewed.ready() {
        Some(Ok(ready)) => Ok(ready),
        Some(Err(why)) => Err(Refusal { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.to_owned() }),
        None => Err(Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            why: "the index is being made".to_owned(),
        }),
    }
}

/// A window that ends at this time can be answered about: all of it has been read.
pub(super) fn is_read(ready: &Ready, to: Duration) -> Result<(), Refusal> {
    match ready.is_filling && to > ready.index.tail().length {
        true => Err(Refusal { status: StatusCode::TOO_EARLY, why: UNREAD.to_owned() }),
        false => Ok(()),
    }
}

/// What a body asks.
pub(super) fn parsed<A: DeserializeOwned>(body: &[u8]) -> Result<A, Refusal> {
    serde_json::from_slice(body).map_err(|error| refused(&error.to_string()))
}

/// What a part of a body asks.
pub(super) fn read<A: DeserializeOwned>(part: Value) -> Result<A, Refusal> {
    serde_json::from_value(part).map_err(|error| refused(&error.to_string()))
}

/// The row of a number, if it exists.
pub(super) fn row(index: &Index, number: u32) -> Result<RowId, Refusal> {
    match index.has(RowId(number)) {
        true => Ok(RowId(number)),
        false => Err(refused("there is no such row")),
    }
}
