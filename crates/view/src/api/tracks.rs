//! `tracks`: all rows, in the order of the index, with what a label needs. Of very many, those that used
//! CPUs the longest; `search` finds the others, and `named` those that other answers name.

use super::ask::{Refusal, parsed};
use crate::choice::Choice;
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_index::{Class, Row, RowId, RowKind};
use tracewing_units::Duration;

/// Most rows of an answer.
const MOST: usize = 20_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    most: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Tracks {
    rows: Vec<Track>,
    left_out: usize,
    /// States that are events, with their names: all events of a name have one colour.
    marks: Vec<(u32, String)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Track {
    id: u32,
    kind: &'static str,
    /// Of a CPU, process, thread or task; as a text, since tasks have 64 bits. Empty if it is unknown.
    number: String,
    name: String,
    parent: Option<u32>,
    /// Of a task, the row of the tasks of its name.
    group: Option<u32>,
    /// Of tasks of one name, or of all tasks of a process, how many there are.
    members: Option<usize>,
    begin: Duration,
    end: Duration,
    is_followed: bool,
    /// Time on CPUs; of a CPU, the time that it was busy.
    used: Duration,
    /// Of a counter.
    counter: Option<Counter>,
}

#[derive(Debug, Serialize)]
struct Counter {
    unit: String,
    least: u64,
    most: u64,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { most } = parsed(body)?;
    Ok(with_choice(ready, most, |choice| {
        let rows = labels(ready, choice.rows(&ready.index));
        Reply::json(&Tracks { rows, left_out: choice.left_out, marks: marks(ready) })
    }))
}

/// Answers with the rows that a page has that asked for at most so many.
pub(super) fn with_choice<R>(ready: &Ready, most: Option<usize>, answer: impl FnOnce(&Choice) -> R) -> R {
    let choose = |most| Choice::new(&ready.index, most, |_, _| true);
    match most.filter(|most| *most < MOST) {
        None => answer(ready.choice.get_or_init(|| choose(MOST))),
        Some(most) => answer(&choose(most)),
    }
}

fn marks(ready: &Ready) -> Vec<(u32, String)> {
    let states = ready.index.tail().states.iter().zip(0..);
    states
        .filter(|(state, _)| state.class == Class::Event)
        .map(|(state, id)| (id, state.name.clone()))
        .collect()
}

/// The labels of rows; below a process with tasks of several names, also that of all its tasks.
pub(super) fn labels(ready: &Ready, rows: Vec<RowId>) -> Vec<Track> {
    let each = |id| [track(ready, id)].into_iter().chain(all_tasks(ready, id));
    rows.into_iter().flat_map(each).collect()
}

/// That of all tasks of a process, if they have several names.
fn all_tasks(ready: &Ready, process: RowId) -> Option<Track> {
    let (number, names) = ready.all_tasks(process)?;
    let rows = || names.iter().map(|name| ready.index.row(*name));
    Some(Track {
        id: number,
        kind: "all",
        number: String::new(),
        name: String::new(),
        parent: Some(process.0),
        group: None,
        members: Some(names.iter().map(|name| ready.members(*name).len()).sum()),
        begin: rows().map(|row| row.begin).min()?,
        end: rows().map(|row| row.end).max()?,
        is_followed: rows().any(|row| row.is_followed),
        used: rows().map(|row| row.used).sum(),
        counter: None,
    })
}

/// The label of a row.
pub(super) fn track(ready: &Ready, id: RowId) -> Track {
    let row: &Row = ready.index.row(id);
    let (kind, number) = match row.kind {
        RowKind::Cpu(cpu) => ("cpu", cpu.to_string()),
        RowKind::Process(pid) => ("process", pid.map_or_else(String::new, |pid| pid.to_string())),
        RowKind::Thread(tid) => ("thread", tid.to_string()),
        RowKind::Task(task) => ("task", task.to_string()),
        RowKind::Tasks(RowKind::OTHERS) => ("tasks", "others".to_owned()),
        RowKind::Tasks(number) => ("tasks", number.to_string()),
        RowKind::Calls(depth) => ("functions", depth.to_string()),
        RowKind::Locks(number) => ("locks", number.to_string()),
        RowKind::Spans(depth) => ("spans", depth.to_string()),
        RowKind::Events(number) => ("events", number.to_string()),
        RowKind::Samples => ("samples", "0".to_owned()),
        RowKind::SystemCalls => ("system calls", "0".to_owned()),
        RowKind::Counter(number) => ("counter", number.to_string()),
    };
    let counter = row.counter.as_ref();
    Track {
        id: id.0,
        kind,
        number,
        name: row.name.clone(),
        parent: row.parent.map(|parent| parent.0),
        group: row.group.map(|group| group.0),
        members: matches!(row.kind, RowKind::Tasks(_)).then(|| ready.members(id).len()),
        begin: row.begin,
        end: row.end,
        is_followed: row.is_followed,
        used: row.used,
        counter: counter.map(|counter| Counter {
            unit: counter.unit.clone(),
            least: counter.range.0,
            most: counter.range.1,
        }),
    }
}
