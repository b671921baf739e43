//! Tables of commands: their numbers by row and column.

use super::Wrong;
use super::harness::{self, Json, Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tracewing_rules::Glob;

/// A table: the command, the member of its document with the rows, and what names a row there.
type Command = (&'static [&'static str], &'static str, &'static [&'static str]);

const COMMANDS: [Command; 14] = [
    (&["threads"], "threads", &["tid"]),
    (&["threads", "--by", "task"], "user_threads", &["process", "task"]),
    (&["sched", "latency"], "threads", &["tid"]),
    (&["sched", "timehist"], "", &["time_ns", "cpu", "tid"]),
    (&["tasks", "-n", "1000"], "tasks", &["process", "task"]),
    (&["locks"], "locks", &["process", "lock", "kind"]),
    (&["locks", "--by", "thread"], "locks", &["process", "tid"]),
    (&["locks", "--by", "task"], "locks", &["process", "task"]),
    (&["functions"], "functions", &["function"]),
    (&["breakdown"], "rows", &["process", "section", "activity"]),
    (&["profile"], "profile", &["process", "function", "object"]),
    (
        &["latency", "--begin", "clerks:request", "--end", "clerks:response", "--match", "id", "-n", "1000"],
        "worst",
        &["key"],
    ),
    (
        &["latency", "--begin", "server:request", "--end", "server:response", "--match", "id", "-n", "1000"],
        "worst",
        &["key"],
    ),
    (
        &[
            "latency",
            "--begin",
            "syscall_entry_read",
            "--end",
            "syscall_exit_read",
            "--by",
            "$tid",
            "-n",
            "1000",
        ],
        "worst",
        &["begin"],
    ),
];

/// Columns of events that are counted, of which some are gone; what is not known, which grows; and numbers
/// that are names.
const ALWAYS: [&str; 8] =
    ["user_events", "events", "unknown_ns", "unseen_ns", "process", "tid", "task", "user_thread"];

/// Rows for unknown parties: they contain what has a known one in the whole recording.
const UNKNOWN: [&str; 4] = [
    "activity \"unknown\"",
    "activity \"unseen\"",
    "process null",
    "section \"machine\" activity \"unknown\"",
];

/// Numbers that are others: the pattern of the events that are gone, of the command, and of the column.
const ALLOWED: [(&str, &str, &str); 21] = [
    // Without sched_waking a thread is ready from sched_wakeup on, which comes later; the commands say that
    // not all wake-ups are there.
    ("sched_waking", "sched timehist", "delay_ns"),
    ("sched_waking", "latency *", "*"),
    ("sched_waking", "breakdown", "ipc_via.*"),
    ("sched_waking", "threads*", "*"),
    // If interrupts are not recorded, their time is included in that of what they interrupted; the commands
    // say so.
    ("*irq*", "breakdown", "running_ns"),
    ("*irq*", "threads*", "user_ns"),
    ("*irq*", "threads*", "system_ns"),
    ("*irq*", "latency *", "*.user_ns"),
    ("*irq*", "latency *", "*.system_ns"),
    // It has what events show: `threads` lists unknown time separately.
    ("*", "sched latency", "running_ns"),
    ("syscall_exit_*", "tasks*", "running_ns"),
    // Slices are counted whose wait is known, as the column says.
    ("*", "sched latency", "switches"),
    ("*", "sched latency", "avg_delay_ns"),
    // Delays of first polls, as `tasks` says.
    ("user_thread:wake", "tasks*", "*delay*"),
    // A task says itself what it waits for; without its wakes that lasts until it is polled again.
    ("user_thread:wake", "*", "*blocked_on.*"),
    // Kinds of locks are in a line of a thread or a task as far as they are recorded; `kind` names them.
    ("contention_*", "locks --by t*", "*"),
    ("syscall_*", "locks --by t*", "*"),
    // Waits for a program's locks are waits for futexes where those are not recorded, and the other way.
    ("lock:*", "locks*", "*"),
    ("lock:*", "*", "*blocked_on.*"),
    ("syscall_exit_*", "locks*", "owner_*"),
    // The holder of a lock is then known by the place that requested it.
    ("user_thread:switch", "locks*", "owner_*"),
];

/// The numbers of a row, by column; `None` is unknown.
type Row = BTreeMap<String, Option<f64>>;

/// What a command prints of the whole recording.
pub struct Table {
    command: Command,
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
        Value::String(_) => {}
        value => drop(row.insert(name.to_owned(), value.as_f64())),
    }
}

/// The rows that a command prints of a recording, and the recording's length.
fn rows((command, member, keys): Command, trace: &Path) -> Option<(BTreeMap<String, Row>, Option<f64>)> {
    let output = harness::of(trace, &[command, &["--format", "json"]].concat()).ran();
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
            match document[member].take() {
                Value::Array(rows) => rows,
                other => panic!("{command:?}: {other}"),
            }
        }
    };
    let named = |row: Value| {
        let mut columns = Row::new();
        flatten(&row, "", &mut columns);
        let key = |key: &&str| {
            let of = key.split('.').fold(&row, |value, member| &value[member]);
            format!("{key} {of} ")
        };
        (keys.iter().map(key).collect(), columns)
    };
    Some((documents.into_iter().map(named).collect(), duration))
}

/// The tables that the commands print of a recording.
pub fn of(trace: &Path) -> Vec<Table> {
    let table = |command: Command| {
        let (rows, duration) = rows(command, trace)?;
        Some(Table { command, rows, duration })
    };
    COMMANDS.into_iter().filter_map(table).filter(|table| !table.rows.is_empty()).collect()
}

impl Table {
    /// What is wrong in the table of a part.
    pub fn compare(&self, kind: &[String], part: &Path) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let command = self.command.0.join(" ");
        let Some((rows, duration)) = rows(self.command, part) else { return wrong };
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
                let lacks = grows(&format!("{around}.unknown_ns"))
                    + grows(&format!("{around}.blocked_on.unknown"))
                    + shorter;
                let is_unknown = is <= was
                    && (is_elsewhere
                        || (is_part || column.ends_with("_ns"))
                            && was.unwrap_or(0.0) - is.unwrap_or(0.0) <= lacks);
                let is_allowed = ALLOWED.iter().any(|(events, of, allowed)| {
                    kind.iter().any(|kind| Glob::new(*events).matches(kind))
                        && Glob::new(*of).matches(&command)
                        && Glob::new(*allowed).matches(column)
                });
                let is_well = is.is_none() || is == was || is_unknown || is_allowed;
                if !is_well && !ALWAYS.contains(&name) && name != "unknown" {
                    let what = format!("without {kind:?}, {command}: {column}");
                    wrong.push((what, format!("{is:?} of {was:?}, {key}")));
                }
            }
        }
        wrong
    }
}
