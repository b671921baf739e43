//! What threads and tasks did from when to when, in critical paths, and in an exported file.

use super::Wrong;
use super::harness::{self, Json, Printed, RunExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// What one did from one time to another, in ns.
#[derive(Debug, Clone, PartialEq)]
struct Slice {
    from: i64,
    to: i64,
    actor: String,
    tid: Option<i64>,
    task: Option<i64>,
    what: String,
}

/// Slices that follow each other, by the line that they are in.
type Lines = BTreeMap<String, Vec<Slice>>;

/// What a command says of the whole recording.
pub struct Slices {
    command: Command,
    lines: Lines,
}

enum Command {
    Path(Vec<String>),
    /// From this time on, in seconds since the origin: times in the file count from there.
    Chrome(String),
}

/// Without `sched_waking` a thread is ready from `sched_wakeup` on, which comes later: slices that differ for
/// less than this, in ns, may lie between the two. The recordings are stored, so no machine is too slow for
/// that.
const DELAY: i64 = 100_000;

fn targets(trace: &Path) -> Vec<Command> {
    let all = |command: &[&str], member: &str| -> Vec<Value> {
        let mut document = harness::json(trace, command);
        document[member].as_array_mut().map(std::mem::take).unwrap_or_default()
    };
    let threads = all(&["threads", "-n", "1"], "threads").into_iter();
    let threads = threads.map(|thread| vec!["--tid".to_owned(), thread["tid"].to_string()]);
    let tasks = all(&["tasks", "-n", "1"], "tasks").into_iter();
    let tasks = tasks.map(|task| vec!["--task".to_owned(), format!("{}/{}", task["process"], task["task"])]);
    threads.chain(tasks).map(Command::Path).collect()
}

fn path(target: &[String], trace: &Path) -> Lines {
    let arguments: Vec<&str> = target.iter().map(String::as_str).collect();
    let output = harness::of(trace, &[&["critical-path", "--format", "json"], &arguments[..]].concat()).ran();
    let said = output.notes();
    if !output.status.success() {
        assert!(said.contains("does not appear in this time") || said.contains("is empty"), "{said}");
        return Lines::new();
    }
    let slice = |step: &Value| {
        let ns = |name: &str| step[name].as_i64().unwrap();
        let text = |name: &str| step[name].as_str().unwrap().to_owned();
        let number = |name: &str| step[name].as_i64();
        Slice {
            from: ns("begin_ns"),
            to: ns("end_ns"),
            actor: text("subject"),
            tid: number("tid"),
            task: number("task"),
            what: text("activity"),
        }
    };
    let steps = output.json()["steps"].as_array().unwrap().iter().map(slice).collect();
    Lines::from([("path".to_owned(), steps)])
}

/// States of threads and tasks, whose lines are not those of CPUs.
fn chrome(from: &str, trace: &Path) -> Lines {
    const CPUS: i64 = 4 << 20;
    let output =
        harness::of(trace, &["export", "--format", "chrome", "-o", "/dev/stdout", "--from", from]).ran();
    assert!(output.status.success(), "{}", output.notes());
    let mut lines = Lines::new();
    let document = output.json();
    let events = document["traceEvents"].as_array().unwrap();
    let line = |event: &Value| (event["pid"].as_i64(), event["tid"].as_i64());
    let named = events.iter().filter(|event| event["name"] == "thread_name");
    let labels: BTreeMap<_, _> =
        named.map(|event| (line(event), event["args"]["name"].as_str().unwrap())).collect();
    for event in events.iter().filter(|event| event["ph"] == "X" && event["pid"] != CPUS) {
        let ns = |name: &str| (event[name].as_f64().unwrap() * 1000.0).round() as i64;
        let label = labels[&line(event)];
        // Locks and functions are in tables, too, and may lie within each other.
        if ["functions", "locks", "more"].iter().any(|start| label.starts_with(start)) {
            continue;
        }
        // The end of a label is what is unique.
        let actor = label.rsplit(' ').next().unwrap().to_owned();
        let what = event["name"].as_str().unwrap().to_owned();
        let (from, to) = (ns("ts"), ns("ts") + ns("dur"));
        let slice = Slice { from, to, actor: actor.clone(), tid: None, task: None, what };
        lines.entry(actor).or_default().push(slice);
    }
    lines
}

/// The slices that commands print of a recording.
pub fn of(trace: &Path) -> Vec<Slices> {
    let begin = harness::json(trace, &["info"])["begin_ns"].as_i64().unwrap() + 5_000_000;
    let (s, ns) = (begin / 1_000_000_000, begin % 1_000_000_000);
    let commands = targets(trace).into_iter().chain([Command::Chrome(format!("{s}.{ns:09}"))]);
    commands.map(|command| Slices { lines: command.lines(trace), command }).collect()
}

/// Whether a slice contains no more than another one of the same time in the whole recording: it is that one,
/// or its thread or kind of activity is unknown, or a thread waits in it for unknown others.
fn says_no_more(slice: &Slice, of: &Slice) -> bool {
    let runs = |what: &str| {
        ["user", "running", "system call", "interrupt", "spinning"]
            .iter()
            .any(|start| what.starts_with(start))
    };
    let what = slice.what.as_str();
    let waits = ["ready", "waiting", "preempted", "blocked"].iter().any(|start| what.starts_with(start));
    let is_party = slice.actor == of.actor || slice.task.is_none() && slice.tid == of.tid;
    let is_known = is_party && (what == of.what || (what == "running" && runs(&of.what)));
    what == "unknown" || slice.actor.is_empty() || waits || is_known
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Path(target) => write!(f, "critical-path {}", target[0]),
            Command::Chrome(_) => f.write_str("export"),
        }
    }
}

impl Command {
    fn lines(&self, trace: &Path) -> Lines {
        match self {
            Command::Path(target) => path(target, trace),
            Command::Chrome(from) => chrome(from, trace),
        }
    }
}

impl Slices {
    /// What is wrong in the slices of a part.
    pub fn compare(&self, kind: &[String], part: &Path) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (line, slices) in self.command.lines(part) {
            let Some(all) = self.lines.get(&line) else { continue };
            for slice in &slices {
                let first = all.partition_point(|of| of.to <= slice.from);
                for of in all[first..].iter().take_while(|of| of.from < slice.to) {
                    let common = slice.to.min(of.to) - slice.from.max(of.from);
                    if common > DELAY && !says_no_more(slice, of) {
                        let what =
                            format!("without {kind:?}, {}: {} of {}", self.command, slice.what, of.what);
                        wrong.push((what, format!("{slice:?} of {of:?}")));
                    }
                }
            }
        }
        wrong
    }
}
