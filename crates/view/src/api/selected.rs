//! `at`: one state of a row with all that is known about it, or the one before or after it, or the one of its
//! kind before or after it.

use super::ask::{Refusal, is_read, parsed, refused, row};
use super::spans::{Named, named};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use tracewing_index::{Class, Index, RowId, RowKind, Span, StateId, Waker};
use tracewing_units::Duration;

/// Most holders of a lock.
const HOLDERS: usize = 20;
/// Most states before one that are looked at for what caused it.
const STATES: usize = 100;
/// Most states of a row of locks that are looked at for a release.
const HOLDS: usize = 100_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    row: u32,
    time: Duration,
    /// The state that is then (0), the next one that begins then or later (1), the last one that ends before
    /// or then (-1).
    step: i8,
    /// Only this state: the next one that begins then or later, or the last one that begins before.
    kind: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    state: Neighbour,
    /// What woke the thread at the end of a block, or at the start of its wait for a CPU; `null` if no event
    /// reports it.
    waker: Option<Woken>,
    /// Of a poll, or of a thread's time on a CPU: the wake that it follows.
    cause: Option<Woken>,
    /// Of a wait for a lock that was acquired: the thread or task that released it last, and when.
    released: Option<Woken>,
    /// The CPU's row that runs the thread at the start.
    ran_on: Option<u32>,
    /// Of a wait for a lock, the threads and tasks that have it when it begins.
    holders: Option<Vec<u32>>,
    before: Option<Neighbour>,
    after: Option<Neighbour>,
    /// Whether it may last longer, or be another one: what follows has not been read.
    is_open: bool,
}

#[derive(Debug, Serialize)]
struct Neighbour {
    number: u32,
    state: Named,
    from: Duration,
    to: Duration,
}

#[derive(Debug, Serialize)]
struct Woken {
    at: Duration,
    /// The row of the thread or task that woke it.
    row: Option<u32>,
    /// What did if it is none.
    text: String,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { row: number, time, step, kind } = parsed(body)?;
    let (index, id) = (&ready.index, row(&ready.index, number)?);
    let found = match (step, kind.map(StateId)) {
        (0, None) => index.at(id, time)?,
        (1, None) => index.after(id, time, Duration::MAX)?,
        (-1, None) => index.before(id, time)?,
        (1, Some(state)) => index.next_of(id, state, time)?,
        (-1, Some(state)) => index.last_of(id, state, time)?,
        _ => return Err(refused("a step is -1, 0 or 1, and of a kind -1 or 1")),
    };
    if found.is_none() && step >= 0 {
        // What is there has not been read; after the last state that was, there may be another one.
        is_read(ready, if step == 0 { time + Duration::from_ns(1) } else { Duration::MAX })?;
    }
    Ok(Reply::json(&found.map(|span| about(ready, id, span)).transpose()?))
}

/// All that is known about a state.
fn about(ready: &Ready, id: RowId, span: Span) -> Result<Answer, Refusal> {
    let index = &ready.index;
    let neighbour = |span: Span| neighbour(index, span);
    Ok(Answer {
        state: neighbour(span),
        waker: waker(index, id, span)?,
        cause: cause(index, id, span)?,
        released: released(index, id, span)?,
        ran_on: ran_on(ready, id, span)?,
        holders: holders(index, id, span)?,
        before: index.before(id, span.from)?.map(neighbour),
        after: index.after(id, span.to, Duration::MAX)?.map(neighbour),
        is_open: ready.grows.is_some() && span.to > index.row(id).certain,
    })
}

fn neighbour(index: &Index, span: Span) -> Neighbour {
    Neighbour { number: span.state.0, state: named(index, span.state), from: span.from, to: span.to }
}

fn waker(index: &Index, id: RowId, span: Span) -> Result<Option<Woken>, Refusal> {
    match index.state(span.state).map(|state| state.class) {
        Some(Class::Blocked) => woken(index, id, span.to),
        Some(Class::Ready) => woken(index, id, span.from),
        _ => Ok(None),
    }
}

fn woken(index: &Index, id: RowId, at: Duration) -> Result<Option<Woken>, Refusal> {
    let woken = index.woken(id, at)?.map(|waker| match waker {
        Waker::Unknown => Woken { at, row: None, text: "unknown".to_owned() },
        Waker::Interrupt(name) => {
            // These are names of kinds: no event says which one it was.
            let is_kind = ["interrupt", "softirq"].contains(&name.as_str());
            let text = if is_kind { name.clone() } else { format!("interrupt {name}").trim_end().to_owned() };
            Woken { at, row: None, text }
        }
        Waker::Row(row) => Woken { at, row: Some(row.0), text: String::new() },
    });
    Ok(woken)
}

/// The wake that led to a time on a CPU, or to a poll: of the states before it, one after the other, the last
/// that a wake began or ended.
fn cause(index: &Index, id: RowId, span: Span) -> Result<Option<Woken>, Refusal> {
    let class = |span: Span| index.state(span.state).map(|state| state.class);
    let is_on = |class: Class| class.is_running() || matches!(class, Class::Nested | Class::Preempted);
    let can_be_woken = matches!(index.row(id).kind, RowKind::Thread(_) | RowKind::Task(_));
    if !can_be_woken || !class(span).is_some_and(|class| class.is_running()) {
        return Ok(None);
    }
    let mut at = span;
    for _ in 0..STATES {
        let Some(before) = index.before(id, at.from)?.filter(|before| before.to == at.from) else { break };
        match class(before) {
            Some(Class::Ready) => return woken(index, id, before.from),
            Some(Class::Blocked) => return woken(index, id, before.to),
            Some(class) if is_on(class) => at = before,
            _ => break,
        }
    }
    Ok(None)
}

/// The thread or task that released a lock for the selected wait: the last one during the wait. `None` if the
/// wait ended without the lock, or if no event reports the release.
fn released(index: &Index, id: RowId, span: Span) -> Result<Option<Woken>, Refusal> {
    let class = |state: StateId| index.state(state).map(|state| (state.class, &state.about));
    let Some((Class::Waits, about)) = class(span.state) else { return Ok(None) };
    let holds = |state: StateId| class(state) == Some((Class::Holds, about));
    let row = index.row(id);
    let (mut last, mut is_acquired) = (None, false);
    let others = index.rows().filter(|(_, other)| {
        matches!(other.kind, RowKind::Locks(_))
            && other.process == row.process
            && other.begin <= span.to
            && other.end > span.from
    });
    for (other, about) in others {
        if about.parent == row.parent {
            is_acquired |=
                index.at(other, span.to)?.is_some_and(|next| next.from == span.to && holds(next.state));
            continue;
        }
        let mut looked = 0;
        index.spans(other, span.from, span.to, |held| {
            if holds(held.state) && held.to > span.from && held.to <= span.to {
                last = last.max(Some((held.to, about.parent.unwrap_or(other))));
            }
            looked += 1;
            if looked < HOLDS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    let released = last.filter(|_| is_acquired);
    Ok(released.map(|(at, row)| Woken { at, row: Some(row.0), text: String::new() }))
}

/// The threads and tasks that have a lock when a wait for it begins; most of an answer: [`HOLDERS`].
fn holders(index: &Index, id: RowId, span: Span) -> Result<Option<Vec<u32>>, Refusal> {
    let waits = |state: StateId| index.state(state).filter(|state| state.class == Class::Waits);
    let Some(wait) = waits(span.state) else { return Ok(None) };
    let process = index.row(id).process;
    let mut found = Vec::new();
    let others = index.rows().filter(|(other, row)| {
        matches!(row.kind, RowKind::Locks(_)) && row.process == process && *other != id
    });
    for (other, row) in others {
        let has = |state: StateId| {
            index.state(state).is_some_and(|state| state.class == Class::Holds && state.about == wait.about)
        };
        if index.at(other, span.from)?.is_some_and(|span| has(span.state)) {
            found.extend(row.parent.map(|row| row.0));
        }
    }
    found.dedup();
    found.truncate(HOLDERS);
    Ok(Some(found))
}

/// The CPU's row that runs a thread at the start of a state.
fn ran_on(ready: &Ready, id: RowId, span: Span) -> Result<Option<u32>, Refusal> {
    let index = &ready.index;
    let is_running = index.state(span.state).is_some_and(|state| state.class.is_running());
    if !is_running || !matches!(index.row(id).kind, RowKind::Thread(_)) {
        return Ok(None);
    }
    for cpu in &ready.cpus {
        let ran = index.at(*cpu, span.from)?.and_then(|on| index.state(on.state)?.thread);
        if ran == Some(id) {
            return Ok(Some(cpu.0));
        }
    }
    Ok(None)
}
