//! How much of a recording has been read while its index is filled, and where the rest lies.

use crate::recording::{Ready, Viewed};
use serde::Serialize;
use tracewing_units::Duration;

/// What is said of an index that is not whole.
#[derive(Debug, Serialize)]
pub(super) struct Filling {
    /// Up to this time, all is known; after it, nothing is.
    known: Duration,
    /// Bytes of the recording that were read, and all of them.
    done: u64,
    total: u64,
    /// Whether `state` has the outline.
    has_outline: bool,
}

/// Where the recording has how much.
#[derive(Debug, Serialize)]
pub(super) struct Outline<'v> {
    /// In nanoseconds since the first event, which comes after the begin of its packet.
    from: i64,
    to: i64,
    /// Bytes in equal parts of this time.
    parts: &'v [u64],
}

pub(super) fn filling(viewed: &Viewed, ready: &Ready) -> Option<Filling> {
    let (done, total) = viewed.progress();
    let (known, has_outline) = (ready.index.tail().length, viewed.outline().is_some());
    ready.is_filling.then_some(Filling { known, done, total, has_outline })
}

pub(super) fn outline<'v>(viewed: &'v Viewed, ready: &Ready) -> Option<Outline<'v>> {
    let outline = viewed.outline().filter(|_| ready.is_filling)?;
    let [from, to] = [outline.begin, outline.end]
        .map(|time| time.as_ns().saturating_sub(ready.index.tail().begin.as_ns()));
    Some(Outline { from, to, parts: &outline.parts })
}

/// How long the recording is, of which not all may have been read.
pub(super) fn length(viewed: &Viewed, ready: &Ready) -> Duration {
    let tail = ready.index.tail();
    let whole = viewed.outline().filter(|_| ready.is_filling).map(|outline| outline.end - tail.begin);
    whole.map_or(tail.length, |whole| whole.max(tail.length))
}
