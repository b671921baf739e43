//! `statistics`: how long rows were in each state within a window, exactly: as `tracewing threads --from`
//! and `--to` say.

use super::ask::{ALL_CPUS, Refusal, is_read, parsed, refused, row};
use super::spans::{Named, named};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tracewing_index::{CLASSES, Class, Index, RowId, RowKind, StateId};
use tracewing_units::Duration;

/// Most rows of an answer: those that used CPUs the longest.
const MOST_ROWS: usize = 1000;
/// Most states of a row that are named.
const MOST_STATES: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    /// All rows with states if it is missing. A process, or the row of all CPUs, stands for its members.
    rows: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
struct Answer {
    rows: Vec<Sums>,
    left_out: usize,
    /// Rows whose states at the end of the window may still change.
    open: usize,
    states: BTreeMap<u32, Named>,
}

#[derive(Debug, Serialize)]
struct Sums {
    row: u32,
    /// Nanoseconds by class.
    classes: [Duration; CLASSES],
    /// Nanoseconds by state, the longest first.
    states: Vec<(u32, Duration)>,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    if asked.from > asked.to {
        return Err(refused("there is no such window"));
    }
    is_read(ready, asked.to)?;
    let index = &ready.index;
    let overlaps = |id: &RowId| {
        let row = index.row(*id);
        row.begin < asked.to && row.end > asked.from && !matches!(row.kind, RowKind::Process(_))
    };
    let ids: Vec<RowId> = match asked.rows {
        None => index.rows().map(|(id, _)| id).filter(overlaps).collect(),
        Some(rows) => chosen(ready, rows)?,
    };
    let mut rows = Vec::new();
    for id in ids {
        rows.extend(sums(index, id, asked.from, asked.to)?);
    }
    rows.sort_by_key(|sums| (std::cmp::Reverse(running(sums)), sums.row));
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let is_open = |sums: &&Sums| ready.grows.is_some() && index.row(RowId(sums.row)).certain < asked.to;
    let open = rows.iter().filter(is_open).count();
    let states = rows.iter().flat_map(|sums| &sums.states);
    let states = states.map(|(state, _)| (*state, named(index, StateId(*state)))).collect();
    Ok(Reply::json(&Answer { rows, left_out, open, states }))
}

/// The rows that are meant: a process, or the row of all CPUs, stands for its members.
pub(super) fn chosen(ready: &Ready, rows: Vec<u32>) -> Result<Vec<RowId>, Refusal> {
    let mut ids = BTreeSet::new();
    for number in rows {
        if number == ALL_CPUS {
            ids.extend(&ready.cpus);
            continue;
        }
        let id = row(&ready.index, number)?;
        match ready.index.row(id).kind {
            RowKind::Process(_) => ids.extend(ready.members(id)),
            _ => ids.extend([id]),
        }
    }
    Ok(ids.into_iter().collect())
}

fn running(sums: &Sums) -> Duration {
    let running = Class::ALL.iter().filter(|class| class.is_running());
    running.map(|class| sums.classes[*class as usize]).sum()
}

fn sums(index: &Index, id: RowId, from: Duration, to: Duration) -> Result<Option<Sums>, Refusal> {
    let mut classes = [Duration::ZERO; CLASSES];
    let all = index.statistics(id, from, to)?;
    let mut states = Vec::with_capacity(all.len());
    for (state, ns) in all {
        if let Some(known) = index.state(state) {
            classes[known.class as usize] += ns;
        }
        states.push((state.0, ns));
    }
    states.sort_by_key(|(state, ns)| (std::cmp::Reverse(*ns), *state));
    states.truncate(MOST_STATES);
    Ok((!states.is_empty()).then_some(Sums { row: id.0, classes, states }))
}
