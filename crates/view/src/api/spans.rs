//! `spans`: the states of rows one by one, of rows that have few in a window. `at`: one state, or the one
//! before or after it.

use super::ask::{Refusal, parsed, refused, row};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tracewing_index::{Index, Span, StateId};
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedAt {
    row: u32,
    time: Duration,
    /// The state that is then (0), the next one that begins then or later (1), the last one that ends before
    /// or then (-1).
    step: i8,
}

/// States of a row: number, beginning and end.
type Spans = Vec<(u32, Duration, Duration)>;

#[derive(Debug, Serialize, Default)]
struct Answer {
    /// By row; `null` of those that have too many.
    rows: BTreeMap<u32, Option<Spans>>,
    states: BTreeMap<u32, Named>,
}

/// A state for people.
#[derive(Debug, Serialize)]
pub(super) struct Named {
    class: u8,
    name: String,
    about: String,
    /// Of a CPU's state, the row of the thread that it runs.
    thread: Option<u32>,
}

#[derive(Debug, Serialize)]
struct AnswerAt {
    state: Named,
    from: Duration,
    to: Duration,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    if asked.rows.len() > MOST_ROWS {
        return Err(refused("too many rows"));
    }
    let mut answer = Answer::default();
    for number in asked.rows {
        let id = row(&ready.index, number)?;
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

pub(super) fn at(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedAt { row: number, time, step } = parsed(body)?;
    let (index, id) = (&ready.index, row(&ready.index, number)?);
    let found: Option<Span> = match step {
        0 => index.at(id, time)?,
        1 => index.after(id, time, Duration::MAX)?,
        -1 => index.before(id, time)?,
        _ => return Err(refused("a step is -1, 0 or 1")),
    };
    let answer = found.map(|span| AnswerAt { state: named(index, span.state), from: span.from, to: span.to });
    Ok(Reply::json(&answer))
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
