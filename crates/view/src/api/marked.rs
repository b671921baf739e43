//! `names` gives the names of all events; `mark` starts to look for those of some names; `marked` says how
//! many there are and where; `unmark` ends it.

use super::ask::{ALL_CPUS, Refusal, busy, parsed, ready, refused};
use super::classes::LONGEST;
use crate::marks::{Events, Found, Mark};
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tracewing_index::RowId;
use tracewing_units::Duration;

/// Most names of a choice.
const MOST_NAMES: usize = 6;
/// Most rows, and parts of the time, of an answer.
const MOST_ROWS: usize = 256;
const MOST: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedMarked {
    marks: u64,
    from: Duration,
    to: Duration,
    /// Into how many equal parts the time is divided.
    count: usize,
    rows: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedEnd {
    marks: u64,
}

#[derive(Debug, Serialize)]
struct Names {
    names: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
struct Started {
    marks: u64,
}

#[derive(Debug, Serialize)]
struct Answer {
    is_done: bool,
    failure: Option<String>,
    /// Up to when all are found.
    until: Duration,
    names: Vec<Counted>,
    /// By row: of each name that it has, the number of the name, and runs of parts that have any: the first
    /// one, and how many.
    rows: BTreeMap<u32, Vec<(usize, Runs)>>,
}

type Runs = Vec<(usize, usize)>;

#[derive(Debug, Serialize)]
struct Counted {
    /// All events so far, of how many the place is kept, and of how many in the time that was asked for.
    count: u64,
    marked: usize,
    within: usize,
}

pub(super) fn names(viewed: &Viewed) -> Result<Reply, Refusal> {
    let recording = viewed.recording();
    let streams = recording.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
    let names =
        streams.flat_map(|stream| &stream.event_record_classes).filter_map(|class| class.name.clone());
    Ok(Reply::json(&Names { names: names.filter(|name| name.len() <= LONGEST).collect() }))
}

pub(super) fn mark(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { names } = parsed(body)?;
    let is_wrong = names.is_empty() || names.len() > MOST_NAMES;
    if is_wrong || names.iter().any(|name| name.len() > LONGEST) {
        return Err(refused("one to six names can be chosen"));
    }
    let ready = ready(viewed)?;
    let marks = viewed.marks.mark(&viewed.recording(), &ready.index, names).map_err(busy)?;
    Ok(Reply::json(&Started { marks }))
}

pub(super) fn marked(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedMarked { marks, from, to, count, rows } = parsed(body)?;
    if from >= to || count == 0 || count > MOST || rows.len() > MOST_ROWS {
        return Err(refused("there is no such window"));
    }
    let gone = || Refusal { status: StatusCode::GONE, why: "these marks are not kept".to_owned() };
    let choice = viewed.marks.get(marks).ok_or_else(gone)?;
    let ready = ready(viewed)?;
    // What is at the very end is seen with it.
    let to = if to == ready.index.tail().length { to + Duration::from_ns(1) } else { to };
    let shown = shown(&ready, &rows);
    Ok(Reply::json(&choice.with(|found| answer(found, (from, to), count, &shown))))
}

/// The rows that show an event of a row: itself, its process, all CPUs.
fn shown(ready: &Ready, rows: &[u32]) -> HashMap<RowId, Vec<u32>> {
    let mut shown = HashMap::<_, Vec<_>>::new();
    for number in rows.iter().copied().collect::<BTreeSet<_>>() {
        let id = RowId(number);
        let members: &[RowId] = match number {
            ALL_CPUS => &ready.cpus,
            _ if !ready.index.has(id) => &[],
            _ if ready.index.row(id).is_group() => ready.members(id),
            _ => &[id],
        };
        members.iter().for_each(|member| shown.entry(*member).or_default().push(number));
    }
    shown
}

fn answer(
    found: &Found,
    (from, to): (Duration, Duration),
    count: usize,
    shown: &HashMap<RowId, Vec<u32>>,
) -> Answer {
    let mut rows = BTreeMap::<u32, Vec<_>>::new();
    let mut names = Vec::new();
    for (name, Events { count: all, marks }) in found.names.iter().enumerate() {
        let place = |time: Duration| marks.partition_point(|mark| mark.at < time);
        let some = &marks[place(from)..place(to)];
        names.push(Counted { count: *all, marked: marks.len(), within: some.len() });
        let part = |mark: &Mark| {
            // While they are looked for, some may be in a wrong order.
            let part = u128::from((mark.at.clamp(from, to) - from).as_ns()) * count as u128;
            ((part / u128::from((to - from).as_ns())) as usize).min(count - 1)
        };
        let mut runs = BTreeMap::<u32, Runs>::new();
        for mark in some {
            let of = [mark.thread, mark.cpu].into_iter().filter_map(|row| shown.get(&row));
            for row in of.flatten() {
                extend(runs.entry(*row).or_default(), part(mark));
            }
        }
        runs.into_iter().for_each(|(row, runs)| rows.entry(row).or_default().push((name, runs)));
    }
    let Found { until, is_done, ref failure, .. } = *found;
    Answer { is_done, failure: failure.clone(), until, names, rows }
}

/// Adds a part that is not before the last one.
fn extend(runs: &mut Runs, part: usize) {
    match runs.last_mut() {
        Some((first, length)) if part < *first + *length => {}
        Some((first, length)) if part == *first + *length => *length += 1,
        _ => runs.push((part, 1)),
    }
}

pub(super) fn unmark(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let AskedEnd { marks } = parsed(body)?;
    viewed.marks.end(marks);
    Ok(Reply::json(&()))
}

#[cfg(test)]
mod tests {
    use super::extend;

    #[test]
    fn parts_next_to_each_other_are_one_run() {
        let mut runs = Vec::new();
        for part in [0, 0, 1, 2, 2, 4, 7, 8] {
            extend(&mut runs, part);
        }
        assert_eq!(runs, [(0, 3), (4, 1), (7, 2)]);
    }
}
