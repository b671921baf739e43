//! `search`: rows by name or number that a page does not have, and how many rows do not match.

use super::ask::{Refusal, parsed, refused};
use super::tracks::{Track, labels, with_choice};
use crate::choice::{ByRow, Choice, shown, unit};
use crate::filters::Parsed;
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_index::{Row, RowKind};
use tracewing_rules::ProcessPattern;
use tracewing_trace::Filter;

/// Most rows of an answer.
const MOST: usize = 2000;
/// Longest text.
const LONGEST: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: String,
    /// How many rows the page asked for; these are not in the answer.
    most: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Answer {
    rows: Vec<Track>,
    /// CPUs, processes, threads and tasks that match, or have a part that does, and that are neither here nor
    /// in the page.
    left_out: usize,
    /// Of all CPUs, processes, threads and tasks, how many neither match nor have anything that does.
    hidden: usize,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { text, most } = parsed(body)?;
    if text.len() > LONGEST {
        return Err(refused("the text is too long"));
    }
    let parsed = Parsed::of(&text).map_err(|why| refused(&why))?;
    let found = Found::new(ready, &parsed.filter, &parsed.words.join(" "));
    Ok(with_choice(ready, most, |known| Reply::json(&found.answer(ready, known))))
}

/// What a text has found.
struct Found {
    /// Whether a row matches itself, or its thread or process does by name.
    matches: ByRow<bool>,
    /// Whether anything that belongs to it matches.
    holds: ByRow<bool>,
}

impl Found {
    fn new(ready: &Ready, filter: &Filter, text: &str) -> Self {
        let index = &ready.index;
        // Whether the options choose it, and whether the text is in its name, or in that of one above it.
        let (mut chosen, mut named) = (ByRow::<bool>::of(index), ByRow::<bool>::of(index));
        let rows = || shown(index).filter(|(id, row)| unit(*id, row) == *id);
        // Processes may come after their threads, and tasks by name after these.
        for is_turn in [is_process, is_tasks, is_single] {
            for (id, row) in rows().filter(|(_, row)| is_turn(row)) {
                let above = [row.parent, row.group].into_iter().flatten().any(|above| named.get(above));
                *named.at(id) = above || fits(row, text);
                *chosen.at(id) = is_chosen(ready, row, filter);
            }
        }
        let mut found = Found { matches: ByRow::of(index), holds: ByRow::of(index) };
        for (id, row) in shown(index) {
            let unit = unit(id, row);
            if chosen.get(unit) && (named.get(unit) || (row.is_part() && fits(row, text))) {
                *found.matches.at(id) = true;
                let of = index.row(unit);
                for above in [Some(unit), of.parent, of.group].into_iter().flatten() {
                    *found.holds.at(above) = true;
                }
            }
        }
        found
    }

    fn answer(&self, ready: &Ready, known: &Choice) -> Answer {
        let index = &ready.index;
        let is_new = |id, row: &Row| self.matches.get(id) && !known.has(id, row);
        let choice = Choice::new(index, MOST, is_new);
        let (mut rows, mut left_out, mut hidden) = (Vec::new(), 0, 0);
        for (id, row) in shown(index) {
            let (is_known, is_found) = (known.has(id, row), choice.has(id, row));
            if is_found && !is_known {
                rows.extend(labels(ready, vec![id]));
            }
            if !row.is_part() && !is_tasks(row) {
                let holds = self.holds.get(id);
                hidden += usize::from(!holds);
                left_out += usize::from(holds && !is_found && !is_known);
            }
        }
        Answer { rows, left_out, hidden }
    }
}

fn is_process(row: &Row) -> bool {
    matches!(row.kind, RowKind::Process(_))
}

fn is_tasks(row: &Row) -> bool {
    matches!(row.kind, RowKind::Tasks(_))
}

fn is_single(row: &Row) -> bool {
    !row.is_group()
}

/// Whether a filter chooses a row: CPUs by their number, threads and tasks by what they are and by their
/// process.
fn is_chosen(ready: &Ready, row: &Row, filter: &Filter) -> bool {
    let Filter { cpus, tids, threads, processes, .. } = filter;
    let chooses_threads = !(tids.is_empty() && threads.is_empty() && processes.is_empty());
    let process = || {
        let name = row.parent.map(|parent| ready.index.row(parent).name.as_str());
        let fits = |pattern: &ProcessPattern| row.process.is_some_and(|pid| pattern.fits(pid, name));
        (cpus.is_empty() || chooses_threads) && (processes.is_empty() || processes.iter().any(fits))
    };
    match row.kind {
        RowKind::Cpu(_) if cpus.is_empty() => !chooses_threads,
        RowKind::Cpu(cpu) => cpus.iter().any(|some| some.contains(&cpu)),
        RowKind::Thread(tid) => {
            process() && if tids.is_empty() { threads.is_empty() } else { tids.contains(&tid) }
        }
        RowKind::Task(_) if threads.is_empty() => process() && tids.is_empty(),
        RowKind::Task(task) => {
            process() && threads.iter().any(|pattern| pattern.matches(row.process, task, &row.name))
        }
        // The tasks of a name, without their numbers.
        RowKind::Tasks(_) => process() && tids.is_empty() && threads.is_empty(),
        RowKind::Process(Some(pid)) => {
            let fits = |pattern: &ProcessPattern| pattern.fits(pid, Some(&row.name));
            let is_whole = tids.is_empty() && threads.is_empty() && (cpus.is_empty() || chooses_threads);
            is_whole && (processes.is_empty() || processes.iter().any(fits))
        }
        // A counter of no CPU: options choose none.
        _ => !chooses_threads && cpus.is_empty(),
    }
}

/// Whether a row's name contains a text, or its number is it: the name and the number that its track has.
fn fits(row: &Row, text: &str) -> bool {
    let or = |other: &str| if row.name.is_empty() { other.to_owned() } else { row.name.clone() };
    let deeper = |number: u32| if number == 0 { String::new() } else { (u64::from(number) + 1).to_string() };
    let (name, number) = match row.kind {
        RowKind::Cpu(cpu) => (format!("CPU {cpu}"), String::new()),
        RowKind::Process(None) => ("process unknown".to_owned(), String::new()),
        RowKind::Process(Some(pid)) => (or("process"), pid.to_string()),
        RowKind::Thread(tid) => (or("thread"), tid.to_string()),
        RowKind::Task(task) => (or("task"), task.to_string()),
        RowKind::Tasks(RowKind::OTHERS) => ("other names".to_owned(), String::new()),
        RowKind::Tasks(_) => (or("unnamed"), String::new()),
        RowKind::Calls(depth) => ("functions".to_owned(), deeper(depth)),
        RowKind::Locks(number) => ("locks".to_owned(), deeper(number)),
        RowKind::Spans(depth) => ("spans".to_owned(), deeper(depth)),
        RowKind::Events(_) => (row.name.clone(), "events".to_owned()),
        RowKind::Samples => ("samples".to_owned(), String::new()),
        RowKind::SystemCalls => ("system calls".to_owned(), String::new()),
        RowKind::Counter(_) => (row.name.clone(), String::new()),
    };
    number == text || name.to_lowercase().contains(text)
}
