//! `spans`: the states of rows one by one, and the values of counters, of rows that have few in a window.

use super::ask::{Refusal, parsed, refused, row};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tracewing_index::{Index, RowId, RowKind, StateId, Value};
use tracewing_units::Duration;

/// Most states of a row: of one that has more, none are given.
const MOST_SPANS: usize = 2048;
/// Most rows of an answer.
const MOST_ROWS: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    rows: Vec<u32>,
}

/// States of a row: number, beginning and end.
type Spans = Vec<(u32, Duration, Duration)>;

/// Values of a counter: each with its beginning and end.
type Values = Vec<(u64, Duration, Duration)>;

#[derive(Debug, Serialize, Default)]
struct Answer {
    /// By row; `null` of those that have too many.
    rows: BTreeMap<u32, Option<Spans>>,
    /// The same of counters.
    values: BTreeMap<u32, Option<Values>>,
    states: BTreeMap<u32, Named>,
}

/// A state for people.
#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub(super) class: u8,
    pub(super) name: String,
    pub(super) about: String,
    /// Of a CPU's state, the row of the thread that it runs.
    thread: Option<u32>,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    if asked.rows.len() > MOST_ROWS {
        return Err(refused("too many rows"));
    }
    let mut answer = Answer::default();
    for number in asked.rows.into_iter().filter(|number| !ready.is_gone(*number)) {
        if ready.names(number).is_some() {
            answer.rows.insert(number, Some(Spans::new()));
            continue;
        }
        let id = row(&ready.index, number)?;
        if let RowKind::Counter(_) = ready.index.row(id).kind {
            answer.values.insert(number, values(&ready.index, id, (asked.from, asked.to))?);
            continue;
        }
        let mut spans = Vec::new();
        ready.index.spans(id, asked.from, asked.to, |span| {
            spans.push((span.state.0, span.from, span.to));
            if spans.len() > MOST_SPANS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if spans.len() <= MOST_SPANS {
            for (state, ..) in &spans {
                answer.states.entry(*state).or_insert_with(|| named(&ready.index, StateId(*state)));
            }
        }
        answer.rows.insert(number, Some(spans).filter(|spans| spans.len() <= MOST_SPANS));
    }
    Ok(Reply::json(&answer))
}

/// The values of a counter; `None` if there are too many.
fn values(index: &Index, id: RowId, (from, to): (Duration, Duration)) -> Result<Option<Values>, Refusal> {
    let mut values = Vec::new();
    index.each_value(id, from, to, |Value { value, from, to }| {
        values.push((value, from, to));
        if values.len() > MOST_SPANS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(Some(values).filter(|values| values.len() <= MOST_SPANS))
}

/// What a state is called.
pub(super) fn named(index: &Index, state: StateId) -> Named {
    let Some(state) = index.state(state) else {
        return Named { class: 0, name: "unknown".to_owned(), about: String::new(), thread: None };
    };
    Named {
        class: state.class as u8,
        name: if state.name.is_empty() {
            format!("{:?}", state.class).to_lowercase()
        } else {
            state.name.clone()
        },
        about: state.about.clone(),
        thread: state.thread.map(|row| row.0),
    }
}
