//! Tables of commands: their numbers by row and column.

use super::Wrong;
use super::commands::{ALLOWED, ALWAYS, COMMANDS, Command, UNKNOWN, WHOLE};
use super::harness::{self, Json, Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracewing_rules::Glob;

/// The numbers of a row, by column; `None` is unknown.
type Row = BTreeMap<String, Option<f64>>;

/// What a command prints of the whole recording.
pub struct Table {
    command: &'static Command,
    whole: PathBuf,
    rows: BTreeMap<String, Row>,
    /// How long the recording is: less, without its first events or its last ones.
    duration: Option<f64>,
}

/// What names a part of a row's column: a cause, and no number.
const PARTS: [&str; 4] = ["on", "by", "via", "over"];

fn flatten(value: &Value, name: &str, row: &mut Row) {
    let below = |of: &str| if name.is_empty() { of.to_owned() } else { format!("{name}.{of}") };
    match value {
        Value::Object(members) => members.iter().for_each(|(of, value)| flatten(value, &below(of), row)),
        Value::Array(parts) => {
            for part in parts {
                if let Some(of) = PARTS.iter().find_map(|member| part.get(member)) {
                    flatten(&part["ns"], &below(of.as_str().unwrap_or("unknown")), row);
                }
            }
        }
        Value::String(text) if TEXTS.contains(&name) => drop(row.insert(name.to_owned(), Some(hash(text)))),
        Value::String(_) => {}
        value => drop(row.insert(name.to_owned(), value.as_f64())),
    }
}

/// Texts that are answers, by their columns: each is a number here.
const TEXTS: [&str; 2] = ["mode", "call"];

fn hash(text: &str) -> f64 {
    f64::from(text.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into())))
}

/// What a command prints of a recording.
struct Printout {
    rows: BTreeMap<String, Row>,
    /// The recording's length, where it is printed.
    duration: Option<f64>,
    said: String,
}

fn rows(&(command, member, keys): &Command, trace: &Path, whole: &Path) -> Option<Printout> {
    let whole = whole.to_str().unwrap();
    let command: Vec<&str> = command.iter().map(|word| if *word == WHOLE { whole } else { word }).collect();
    let output = harness::of(trace, &[&command[..], &["--format", "json"]].concat()).ran();
    let said = output.notes();
    assert!(!said.contains("panicked"), "{command:?}: {said}");
    if !output.status.success() {
        return None;
    }
    let mut duration = None;
    let documents: Vec<Value> = match member {
        "" => output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        _ => {
            let mut document = output.json();
            duration = document["duration_ns"].as_f64();
            let found = if member == "." { Value::Array(vec![document]) } else { document[member].take() };
            match found {
                Value::Array(rows) => rows,
                other => panic!("{command:?}: {other}"),
            }
        }
    };
    // What stands above a row of a tree.
    let mut above: Vec<String> = Vec::new();
    let named = |row: Value| {
        let mut columns = Row::new();
        flatten(&row, "", &mut columns);
        let key = |key: &&str| {
            let of = key.split('.').fold(&row, |value, member| &value[member]);
            format!("{key} {of} ")
        };
        let mut name: String = keys.iter().map(key).collect();
        if let Some(depth) = row["depth"].as_u64() {
            above.truncate(depth as usize);
            above.push(name);
            name = above.concat();
        }
        (name, columns)
    };
    Some(Printout { rows: documents.into_iter().map(named).collect(), duration, said })
}

/// The tables that the commands print of a recording.
pub fn of(trace: &Path) -> Vec<Table> {
    let table = |command: &'static Command| {
        let Printout { rows, duration, .. } = rows(command, trace, trace)?;
        Some(Table { command, whole: trace.to_owned(), rows, duration })
    };
    COMMANDS.iter().filter_map(table).filter(|table| !table.rows.is_empty()).collect()
}

impl Table {
    /// What is wrong in the table of a part.
    pub fn compare(&self, kind: &[String], part: &Path) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let command = self.command.0.join(" ");
        let Some(Printout { rows, duration, said }) = rows(self.command, part, &self.whole) else {
            return wrong;
        };
        let allows = |column: &str| {
            ALLOWED.iter().any(|(events, of, allowed, says)| {
                kind.iter().any(|kind| Glob::new(*events).matches(kind))
                    && Glob::new(*of).matches(&command)
                    && Glob::new(*allowed).matches(column)
                    && said.contains(says)
            })
        };
        let shorter = self.duration.zip(duration).map_or(0.0, |(was, is)| was - is);
        // Threads are called by the function that they begin with, if that is there.
        let is_renamed = kind.iter().any(|kind| kind.starts_with("function:"));
        let is_left_out = |key: &str| {
            let is_of_thread = key.contains("section \"threads\"");
            UNKNOWN.iter().any(|row| key.contains(row)) || is_renamed && is_of_thread
        };
        for (key, row) in rows.into_iter().filter(|(key, _)| !is_left_out(key)) {
            let Some(all) = self.rows.get(&key) else {
                // Some have another name if an event with a better one is missing.
                if !key.contains("section \"outside\"")
                    && !key.contains("section \"threads\"")
                    && command != "locks"
                    && !allows("ROW")
                {
                    wrong.push((format!("without {kind:?}, {command}: a row that the whole has not"), key));
                }
                continue;
            };
            // The rest is in the rows of what is unknown.
            let is_elsewhere = command == "breakdown";
            for (column, &is) in &row {
                let was = all.get(column).copied().flatten();
                let (around, name) = column.rsplit_once('.').unwrap_or(("", column));
                let is_part = around.ends_with("blocked_on") || around.ends_with("interrupted_by");
                let around =
                    if is_part { around.rsplit_once('.').map_or("", |(around, _)| around) } else { around };
                let grows = |column: &str| {
                    let column = column.trim_start_matches('.');
                    let ns = |row: &Row| row.get(column).copied().flatten().unwrap_or(0.0);
                    ns(&row) - ns(all)
                };
                // Of time in polls, what is in none of its parts.
                let parts = ["running_ns", "preempted_ns", "slept_ns"].map(grows).iter().sum::<f64>();
                let in_polls = if command.starts_with("tasks") { grows("busy_ns") - parts } else { 0.0 };
                let lacks = in_polls
                    + grows(&format!("{around}.unknown_ns"))
                    + grows(&format!("{around}.blocked_on.unknown"))
                    + shorter;
                let is_unknown = is <= was
                    && (is_elsewhere
                        || (is_part || column.ends_with("_ns"))
                            && was.unwrap_or(0.0) - is.unwrap_or(0.0) <= lacks);
                let is_well = is.is_none() || is == was || is_unknown || allows(column);
                if !is_well && !ALWAYS.contains(&name) && name != "unknown" {
                    let what = format!("without {kind:?}, {command}: {column}");
                    wrong.push((what, format!("{is:?} of {was:?}, {key}")));
                }
            }
        }
        wrong
    }
}
