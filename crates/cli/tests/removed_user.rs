//! Every kind of a program's events is taken away from a recording of a tokio server, one at a time, and so
//! are wakes and ends of interrupts: each number that an analysis prints then is that of the whole recording,
//! or unknown, or what is left of the events is listed here with its reason.

mod harness;
mod recorded;
mod server_log;

use harness::{Json, Printed, RunExt, traceable};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A table: the command, the member of its document, and what names a row.
type Table = (&'static [&'static str], &'static str, &'static [&'static str]);

const TABLES: [Table; 8] = [
    (&["threads"], "threads", &["tid"]),
    (&["threads", "--by", "task"], "user_threads", &["process", "task"]),
    (&["sched", "latency"], "threads", &["tid"]),
    (&["tasks", "-n", "1000"], "tasks", &["task"]),
    (&["locks"], "locks", &["lock", "kind"]),
    (&["functions"], "functions", &["function"]),
    (&["breakdown"], "rows", &["process", "section", "activity"]),
    (
        &["latency", "--begin", "server:request", "--end", "server:response", "--match", "id", "-n", "1000"],
        "worst",
        &["key"],
    ),
];

/// A row's numbers by the names of their columns, each with those of the objects around it; `None` is
/// unknown.
type Row = BTreeMap<String, Option<f64>>;

fn numbers(value: &Value, name: &str, row: &mut Row) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                numbers(value, &name, row);
            }
        }
        value => drop(row.insert(name.to_owned(), value.as_f64())),
    }
}

/// A table's rows, by their names.
fn rows(trace: &Path, table: Table) -> BTreeMap<String, Row> {
    let (command, member, keys) = table;
    let mut run = harness::tracewing();
    let output = run.args(command).arg(trace).args(["--format", "json"]).ran();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let mut document: Value = output.json();
    let Value::Array(rows) = document[member].take() else { panic!("{command:?}: {document}") };
    let named = |row: Value| {
        let mut columns = Row::new();
        numbers(&row, "", &mut columns);
        (keys.iter().map(|key| row[key].to_string() + " ").collect(), columns)
    };
    rows.into_iter().map(named).collect()
}

/// What is taken away, and columns that then have less than the whole, or only some of it: the rest is in
/// `unknown_ns`, or was never separate.
const REMOVED: [(&str, &[&str]); 22] = [
    // The holder of a lock is then known by the place that requested it, which may be that of several tasks.
    ("user_thread:switch", &["owner_wait_ns"]),
    ("user_thread:create", &[]),
    // Delays are of first polls, as the table says. What a task names, it is blocked on until its next poll.
    (
        "user_thread:wake",
        &["avg_delay_ns", "max_delay_ns", "max_delay_end_ns", "delays", "blocked_ns", "idle_ns"],
    ),
    ("user_thread:exit", &[]),
    ("user_thread:name", &[]),
    ("user_thread:origin", &[]),
    ("user_thread:wait", &[]),
    ("user_thread:acquired", &[]),
    ("user_thread:released", &[]),
    (
        "user_thread:given_up",
        &["wait_min_ns", "refused", "waited", "wait_ns", "wait_avg_ns", "wait_max_ns", "owner_wait_ns"],
    ),
    ("user_thread:worker", &[]),
    ("user_thread:park", &[]),
    ("user_thread:unpark", &[]),
    ("lock:acquired", &[]),
    ("lock:released", &[]),
    ("function:entry:*", &[]),
    ("function:exit:*", &[]),
    ("server:request", &[]),
    // What the LWPs were blocked for is unknown, or ends some microseconds later.
    // So is how often another thread interrupted the waiting one.
    ("sched_waking", &["blocked_ns", "ready_ns", "calls", "woken_ns"]),
    ("sched_wak*", &["blocked_ns", "ready_ns", "calls"]),
    // Without interrupts, theirs is in the time of what they interrupted.
    ("irq_softirq_exit", &["user_ns", "system_ns", "running_ns"]),
    ("sched_switch", &["blocked_ns", "ready_ns"]),
];

/// Counts of events, of which some are gone, and what is not known.
const ALWAYS: [&str; 4] = ["events", "user_events", "undetermined_ns", "unknown_ns"];

/// Up to the next event of a thread that runs, in the server: 8 and 11 µs were seen.
const NEXT_EVENT_NS: f64 = 50_000.0;

#[test]
fn numbers_are_those_of_the_whole_or_unknown() {
    if !traceable() {
        return;
    }
    let run = server_log::record(&server_log::server("server"), "spawned", &["--sub-buffers", "32"]);
    let whole: Vec<_> = TABLES.iter().map(|table| rows(&run.trace(), *table)).collect();
    let mut wrong = Vec::new();
    for (name, less) in REMOVED {
        let part = run.folder.path().join("part");
        let mut extract = harness::tracewing();
        let output = extract.args(["extract", "--exclude", name]).arg(run.trace()).arg(&part).ran();
        if !output.status.success() {
            tracewing_testing::skip(
                tracewing_testing::Cause::Listed("event class"),
                format_args!("{name}: {}", output.notes()),
            );
            continue;
        }
        for (table, whole) in TABLES.iter().zip(&whole) {
            // `removed.rs` has the others.
            if name == "sched_switch" && table.0 == ["breakdown"] {
                continue;
            }
            for (key, row) in rows(&part, *table) {
                let Some(all) = whole.get(&key) else { continue };
                for (column, &is) in &row {
                    let was = all.get(column).copied().flatten();
                    let (around, own_name) = column.rsplit_once('.').unwrap_or(("", column));
                    let is_less = less.contains(&own_name);
                    // A thread that comes from an idle CPU runs from its first event on, where the kernel
                    // reports no switch.
                    let unknown_ns = format!("{around}.unknown_ns");
                    let unknown_ns = unknown_ns.trim_start_matches('.');
                    let unknown = |row: &Row| row.get(unknown_ns).copied().flatten().unwrap_or(0.0);
                    let is_unknown = column.ends_with("_ns")
                        && is <= was
                        && was.unwrap_or(0.0) - is.unwrap_or(0.0) <= unknown(&row) - unknown(all);
                    // That first event may be its own wake of another thread, which is taken away: it then
                    // seems blocked for as much longer as it takes to its next one.
                    let is_later = name.starts_with("sched_wak")
                        && ["running_ns", "user_ns", "system_ns"].contains(&own_name)
                        && is <= was
                        && was.unwrap_or(0.0) - is.unwrap_or(0.0) <= NEXT_EVENT_NS;
                    let is_well = is.is_none()
                        || is == was
                        || is_less
                        || is_unknown
                        || is_later
                        || ALWAYS.contains(&own_name);
                    if !is_well {
                        wrong.push(format!(
                            "without {name}, {:?}: {column} is {is:?} of {was:?}, {key}",
                            table.0[0]
                        ));
                    }
                }
            }
        }
        std::fs::remove_dir_all(&part).unwrap();
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of them: {:#?}", wrong.len(), &wrong[..wrong.len().min(40)]);
}

/// A condition on the CPU leaves out what begins or ends on another one, as `--cpu` does.
#[test]
fn conditions_on_the_cpu_are_filters_of_it() {
    let run = server_log::record(&server_log::server("server"), "plain", &["--no-kernel"]);
    for filter in [["--cpu", "0-1023"], ["--where", "$cpu < 1024"], ["--where", "$cpu_id < 1024 && $tid > 0"]]
    {
        let rows = run.json(&[&["locks"], &filter[..]].concat());
        let rows = rows["locks"].as_array().unwrap();
        assert!(!rows.is_empty(), "{filter:?}");
        assert!(
            rows.iter().all(|row| row["wait_ns"].is_null() && row["hold_ns"].is_null()),
            "{filter:?}: {rows:?}"
        );
    }
}

/// A filter that leaves out functions leaves their time in those that called them.
#[test]
fn times_of_functions_without_others_are_unknown_where_a_filter_leaves_out_some() {
    let recording = recorded::record(&["-e", "function:*"], &[recorded::program("calls")]);
    let trace = recording.trace();
    let functions = |options: &[&str]| {
        let mut run = harness::tracewing();
        let output = run.arg("functions").args(options).arg(&trace).args(["--format", "json"]).ran();
        assert!(output.status.success(), "{options:?}: {output:?}");
        let mut document: Value = output.json();
        let Value::Array(rows) = document["functions"].take() else { panic!("{document}") };
        rows.into_iter()
            .map(|row| (row["function"].as_str().unwrap().to_owned(), row))
            .collect::<BTreeMap<_, _>>()
    };
    let all = functions(&[]);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["calls::inner", "calls::outer"]);
    assert!(all.values().all(|row| row["self_ns"].is_u64()), "{all:?}");
    let part = ["-e", "function:*:calls::outer"];
    for options in [
        &part[..],
        &[&part[..], &["--graph"]].concat(),
        &[&part[..], &["--diff", trace.to_str().unwrap()]].concat(),
    ] {
        let some = functions(options);
        let row = &some["calls::outer"];
        let whole = &all["calls::outer"];
        assert_eq!((&row["total_ns"], &row["calls"]), (&whole["total_ns"], &whole["calls"]), "{options:?}");
        assert!(some.len() == 1 && row["self_ns"].is_null(), "{options:?}: {some:?}");
    }
}
