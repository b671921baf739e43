//! `search`: rows by name or number.

use super::ask::{Refusal, parsed, refused};
use super::tracks::{Track, track};
use crate::filters::Parsed;
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_index::{Row, RowId, RowKind};
use tracewing_rules::ProcessPattern;
use tracewing_trace::Filter;

/// Most rows of an answer.
const MOST: usize = 1000;
/// Longest text.
const LONGEST: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    text: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    rows: Vec<Track>,
    left_out: usize,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { text } = parsed(body)?;
    if text.len() > LONGEST {
        return Err(refused("the text is too long"));
    }
    let parsed = Parsed::of(&text).map_err(|why| refused(&why))?;
    let text = parsed.words.join(" ");
    let is_it = |(_, row): &(RowId, &Row)| is_chosen(ready, row, &parsed.filter) && fits(row, &text);
    let mut found: Vec<_> = ready.index.rows().filter(is_it).map(|(id, _)| id).collect();
    let left_out = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    Ok(Reply::json(&Answer { rows: found.into_iter().map(|id| track(ready, id)).collect(), left_out }))
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
        _ => !chooses_threads && cpus.is_empty(),
    }
}

/// Whether a row's name contains a text, or its number is it.
fn fits(row: &Row, text: &str) -> bool {
    let number = match row.kind {
        RowKind::Cpu(cpu) => cpu.to_string(),
        RowKind::Process(pid) => pid.map_or_else(String::new, |pid| pid.to_string()),
        RowKind::Thread(tid) => tid.to_string(),
        RowKind::Task(task) => task.to_string(),
        RowKind::Events(_) | RowKind::Tasks(_) => String::new(),
        _ => return false,
    };
    number == text || row.name.to_lowercase().contains(text)
}
