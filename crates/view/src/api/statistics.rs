//! `statistics`: how long rows were in each state within a window, exactly: as `tracewing threads --from`
//! and `--to` say.

use super::area::{Nothing, of_area};
use super::ask::Refusal;
use super::spans::{Named, named};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tracewing_index::{CLASSES, Class, Index, RowId, StateId};
use tracewing_units::Duration;

/// Most rows of an answer: those that used CPUs the longest.
const MOST_ROWS: usize = 1000;
/// Most states of a row that are named.
const MOST_STATES: usize = 100;

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
    let (area, Nothing {}) = of_area(ready, body)?;
    let index = &ready.index;
    let overlaps = |id: &RowId| {
        let row = index.row(*id);
        row.begin < area.to && row.end > area.from && !row.is_group()
    };
    let ids = match area.ids(ready)? {
        // All rows with states.
        None => index.rows().map(|(id, _)| id).filter(overlaps).collect(),
        Some(ids) => ids,
    };
    let all = index.statistics_of(&ids, area.from, area.to)?;
    let mut rows: Vec<Sums> = ids.iter().zip(all).filter_map(|(id, all)| sums(index, *id, all)).collect();
    rows.sort_by_key(|sums| (std::cmp::Reverse(running(sums)), sums.row));
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let is_open = |sums: &&Sums| ready.grows.is_some() && index.row(RowId(sums.row)).certain < area.to;
    let open = rows.iter().filter(is_open).count();
    let states: BTreeSet<u32> = rows.iter().flat_map(|sums| &sums.states).map(|(state, _)| *state).collect();
    let states = states.into_iter().map(|state| (state, named(index, StateId(state)))).collect();
    Ok(Reply::json(&Answer { rows, left_out, open, states }))
}

fn running(sums: &Sums) -> Duration {
    let running = Class::ALL.iter().filter(|class| class.is_running());
    running.map(|class| sums.classes[*class as usize]).sum()
}

fn sums(index: &Index, id: RowId, all: Vec<(StateId, Duration)>) -> Option<Sums> {
    let mut classes = [Duration::ZERO; CLASSES];
    let mut states = Vec::with_capacity(all.len());
    for (state, ns) in all {
        if let Some(known) = index.state(state) {
            classes[known.class as usize] += ns;
        }
        states.push((state.0, ns));
    }
    states.sort_by_key(|(state, ns)| (std::cmp::Reverse(*ns), *state));
    states.truncate(MOST_STATES);
    (!states.is_empty()).then_some(Sums { row: id.0, classes, states })
}
