//! `search`: rows by name or number.

use super::ask::{Refusal, parsed, refused};
use super::tracks::{Track, track};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_index::{Row, RowKind};

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
    let text = text.to_lowercase();
    let mut found: Vec<_> =
        ready.index.rows().filter(|(_, row)| fits(row, &text)).map(|(id, _)| id).collect();
    let left_out = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    Ok(Reply::json(&Answer { rows: found.into_iter().map(|id| track(ready, id)).collect(), left_out }))
}

/// Whether a row's name contains a text, or its number is it.
fn fits(row: &Row, text: &str) -> bool {
    let number = match row.kind {
        RowKind::Cpu(cpu) => cpu.to_string(),
        RowKind::Process(pid) => pid.map_or_else(String::new, |pid| pid.to_string()),
        RowKind::Thread(tid) => tid.to_string(),
        RowKind::Task(task) => task.to_string(),
        RowKind::Events(_) => String::new(),
        _ => return false,
    };
    number == text || row.name.to_lowercase().contains(text)
}
