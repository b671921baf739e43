//! `longest`: the states of which a number in the statistics is the sum, the longest first.

use super::area::{Area, of_area};
use super::ask::{Refusal, refused};
use super::spans::{Named, named};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use tracewing_index::{CLASSES, StateId};
use tracewing_units::Duration;

/// Most states of an answer.
const MOST: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Numbers of the classes that count.
    classes: Vec<usize>,
    state: Option<u32>,
    most: usize,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// How many there are, and their time together.
    count: u64,
    sum: Duration,
    /// Row, state, beginning and end within the window.
    spans: Vec<(u32, u32, Duration, Duration)>,
    states: BTreeMap<u32, Named>,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let (area, Asked { classes, state, most }) = of_area(ready, body)?;
    if most > MOST || classes.iter().any(|class| *class >= CLASSES) {
        return Err(refused("there is no such class"));
    }
    let ids = area.ids(ready)?.ok_or_else(|| refused("there are no rows"))?;
    let Area { from, to, .. } = area;
    let (mut count, mut sum) = (0, Duration::ZERO);
    let mut longest = BinaryHeap::new();
    for id in ids {
        ready.index.spans(id, from, to, |span| {
            let class = ready.index.state(span.state).map(|state| state.class as usize);
            let counts = state.is_none_or(|state| state == span.state.0);
            if counts && class.is_some_and(|class| classes.contains(&class)) {
                let (begin, end) = (span.from.max(from), span.to.min(to));
                (count, sum) = (count + 1, sum + (end - begin));
                // The least of them is the first to go: the shortest, then the latest.
                longest.push(Reverse((end - begin, Reverse((begin, id.0, span.state.0)))));
                if longest.len() > most {
                    longest.pop();
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    let span = |Reverse((length, Reverse((begin, row, state))))| (row, state, begin, begin + length);
    let spans: Vec<_> = longest.into_sorted_vec().into_iter().map(span).collect();
    let states = spans.iter().map(|(_, state, ..)| (*state, named(&ready.index, StateId(*state)))).collect();
    Ok(Reply::json(&Answer { count, sum, spans, states }))
}
