//! The super-trace's states of user threads, compared with a program that logs its own time stamps around
//! every transition (`crates/tracewing/tests/programs/truth.rs`). Needs root.
//!
//! Nothing is compared with elapsed time, and nothing has to be fast. An event's stamp has to lie between the
//! program's two around it, which are some hundred cycles apart: that is the truth to far less than a
//! microsecond. Where they are more than a microsecond apart, something else had the processor between them.
//! The log itself is the evidence of that; the event still has to lie between the two.
#![cfg(target_arch = "x86_64")]

mod harness;
mod idle;
mod kernel_common;
mod recorded;

use harness::{Printed, RunExt, traceable};
use recorded::program;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the program noted.
#[derive(Debug, Clone)]
struct Entry {
    tid: u64,
    cpu: u64,
    name: String,
    numbers: [u64; 2],
    before: u64,
    after: u64,
}

fn entry(line: &str) -> Entry {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |index: usize| words[index].parse().unwrap();
    Entry {
        tid: number(0),
        cpu: number(1),
        name: words[2].to_owned(),
        numbers: [number(3), number(4)],
        before: number(5),
        after: number(6),
    }
}

impl Entry {
    fn is_event(&self) -> bool {
        ["create", "wake", "exit", "switch"].contains(&self.name.as_str())
    }

    /// The user thread that it begins or stops to run.
    fn begins(&self) -> Option<u64> {
        (self.name == "switch" && self.numbers[1] != 0).then_some(self.numbers[1])
    }

    fn stops(&self) -> Option<u64> {
        (self.name == "switch" && self.numbers[0] != 0).then_some(self.numbers[0])
    }
}

/// A line of `list --super`.
struct Line(Value);

impl Line {
    fn number(&self, field: &str) -> u64 {
        self.0[field].as_u64().unwrap_or_else(|| panic!("no {field}: {}", self.0))
    }

    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    fn parameter(&self, field: &str) -> u64 {
        self.0["params"][field].as_u64().unwrap_or(0)
    }
}

fn tracewing(arguments: &[&str]) -> String {
    harness::tracewing().args(arguments).succeeds().text()
}

/// What is to be compared.
struct Run {
    log: Vec<Entry>,
    lines: Vec<Line>,
    /// `threads --by task`, by the tasks' numbers.
    tasks: BTreeMap<u64, Value>,
}

fn run() -> Option<Run> {
    if !traceable() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (trace, file) = (folder.path().join("t"), folder.path().join("log"));
    let mut record = harness::tracewing();
    record.args(["record", "--clock", "tsc", "--sub-buffers", "64", "-k", "sched_*", "-o"]).arg(&trace);
    let output = record.arg("--").arg(program("truth")).arg(&file).ran();
    let said = output.notes();
    if !output.status.success() && said.contains("clock") {
        tracewing_testing::skip(tracewing_testing::Cause::Tsc, format_args!("{said}"));
        return None;
    }
    assert!(output.status.success(), "{said}");
    let trace = trace.to_str().unwrap();
    let lines = tracewing(&[
        "list",
        "--super",
        "--format",
        "json",
        "-e",
        "user_thread:*",
        "-e",
        "sched_switch",
        trace,
    ]);
    let table = tracewing(&["threads", "--by", "task", "--format", "json", trace]);
    let table: Value = serde_json::from_str(&table).unwrap();
    let tasks = table["user_threads"].as_array().unwrap();
    Some(Run {
        log: std::fs::read_to_string(file).unwrap().lines().map(entry).collect(),
        lines: lines.lines().map(|line| Line(serde_json::from_str(line).unwrap())).collect(),
        tasks: tasks.iter().map(|task| (task["task"].as_u64().unwrap(), task.clone())).collect(),
    })
}

/// Every transition of the log, with its line: all there, in order, and no others.
fn transitions(run: &Run) -> Vec<(&Entry, &Line)> {
    let tids: BTreeSet<u64> = run.log.iter().map(|entry| entry.tid).collect();
    let of = |tid: u64| {
        let reported: Vec<&Entry> =
            run.log.iter().filter(|entry| entry.tid == tid && entry.is_event()).collect();
        let seen: Vec<&Line> = run
            .lines
            .iter()
            .filter(|line| line.name().starts_with("user_thread:") && line.number("tid") == tid)
            .filter(|line| line.name() != "user_thread:origin")
            .collect();
        assert_eq!(reported.len(), seen.len(), "events of thread {tid}");
        reported.into_iter().zip(seen)
    };
    tids.into_iter().flat_map(of).collect()
}

#[test]
fn every_transition_is_where_the_program_saw_it() {
    let Some(run) = run() else { return };
    let transitions = transitions(&run);
    assert!(transitions.len() > 80, "{}", transitions.len());
    let ends = [transitions.first(), transitions.last()].map(|end| end.unwrap().1);
    let [cycles, ns] =
        ["cycles", "ns"].map(|field| ends[1].number(field).abs_diff(ends[0].number(field)) as f64);
    let microsecond = (cycles / ns * 1000.0) as u64;
    let mut evident = 0;
    for (entry, line) in &transitions {
        let numbers = match entry.name.as_str() {
            "switch" => ["prev", "next"].map(|field| line.parameter(field)),
            _ => [line.parameter("thread"), 0],
        };
        let seen = (line.name(), numbers, line.number("cpu"));
        assert_eq!(seen, (format!("user_thread:{}", entry.name).as_str(), entry.numbers, entry.cpu));
        let stamp = line.number("cycles");
        assert!(entry.before <= stamp && stamp <= entry.after, "{stamp}: {entry:?}");
        evident += usize::from(entry.after - entry.before > microsecond);
        // What it belongs to is what ran before.
        if let Some(stopped) = entry.stops() {
            assert_eq!(line.number("thr"), stopped);
        }
    }
    eprintln!("{} transitions; {evident} of them with something else in between", transitions.len());
}

#[test]
fn every_count_and_time_is_the_programs() {
    let Some(run) = run().filter(|_| idle::is_reported()) else { return };
    let transitions = transitions(&run);
    let per_cycle = {
        let [first, last] = [transitions.first(), transitions.last()].map(|end| end.unwrap().1);
        let [cycles, ns] =
            ["cycles", "ns"].map(|field| last.number(field) as f64 - first.number(field) as f64);
        ns / cycles
    };
    let tasks: BTreeSet<u64> = run.log.iter().filter_map(Entry::begins).collect();
    assert_eq!(tasks.len(), 8);
    for task in tasks {
        let table = &run.tasks[&task];
        let begins: Vec<&Entry> = run.log.iter().filter(|entry| entry.begins() == Some(task)).collect();
        let woken = run.log.iter().filter(|entry| entry.name == "wake" && entry.numbers[0] == task);
        let counts = [begins.len(), woken.count()].map(|count| count as u64);
        let seen = ["polls", "wakeups"].map(|field| table[field].as_u64().unwrap());
        assert_eq!(seen, counts, "{table}");

        // Where it was, in time: at each begin, and after each forced move inside.
        let mut places: Vec<(u64, u64, u64)> = Vec::new();
        let mut sums = [0.0, 0.0, 0.0];
        for begin in &begins {
            let end = run
                .log
                .iter()
                .filter(|entry| entry.stops() == Some(task) && entry.before >= begin.after)
                .min_by_key(|entry| entry.before)
                .unwrap();
            places.push((begin.before, begin.tid, begin.cpu));
            let inside = |entry: &&Entry| {
                entry.name == "moved"
                    && (begin.after..end.before).contains(&entry.before)
                    && entry.tid == begin.tid
            };
            places.extend(run.log.iter().filter(inside).map(|entry| (entry.before, entry.tid, entry.cpu)));
            sums[0] += (end.before - begin.after) as f64 * per_cycle;
            sums[1] += (end.after - begin.before) as f64 * per_cycle;
            sums[2] += off_cpu(&run.lines, begin.tid, begin.after, end.before);
        }
        places.sort_unstable();
        let moves = |place: fn(&(u64, u64, u64)) -> u64| {
            places.windows(2).filter(|pair| place(&pair[0]) != place(&pair[1])).count() as u64
        };
        let moves = [moves(|place| place.1), moves(|place| place.2)];
        let seen = ["lwp_migrations", "cpu_migrations"].map(|field| table[field].as_u64().unwrap());
        assert_eq!(seen, moves, "{table}: {places:?}");

        // On a CPU: what the program says of its polls, less what the kernel took of them. A nanosecond for
        // each rounded stamp.
        let [least, most, off] = sums;
        let running = table["running_ns"].as_f64().unwrap();
        let rounded = 4.0 * begins.len() as f64 + 1000.0 * f64::from(u8::from(off > 0.0));
        assert!(
            least - rounded <= running + off && running + off <= most + rounded,
            "{table}: polls of {least} to {most} ns, {off} ns of them on no CPU"
        );
        assert_eq!(table["unknown_ns"], 0, "{table}");
    }
}

#[test]
fn a_competitor_takes_the_cpu_when_it_says() {
    let Some(run) = run() else { return };
    let competed: Vec<&Entry> = run.log.iter().filter(|entry| entry.name == "competed").collect();
    assert_eq!(competed.len(), 3);
    for competitor in competed {
        let gap = run.log.iter().find(|entry| {
            entry.name == "interrupted"
                && entry.before <= competitor.before
                && entry.after >= competitor.after
        });
        let Some(gap) = gap else {
            // On a busy machine another thread may have had the CPU already: then the competitor took it from
            // that one.
            let mut to_it = run.lines.iter().filter(|line| {
                line.name() == "sched_switch"
                    && line.parameter("next_tid") == competitor.tid
                    && line.number("cycles") <= competitor.before
            });
            let from = to_it.next_back().expect("it got the CPU").parameter("prev_tid");
            assert!(
                run.log.iter().all(|entry| entry.tid != from),
                "{from} was interrupted by {competitor:?}"
            );
            continue;
        };
        let between = |line: &&Line, from: u64, to: u64| (from..=to).contains(&line.number("cycles"));
        let switches = || run.lines.iter().filter(|line| line.name() == "sched_switch");
        let out = switches().find(|line| {
            line.parameter("prev_tid") == gap.tid && between(line, gap.before, competitor.before)
        });
        let back = switches()
            .find(|line| line.parameter("next_tid") == gap.tid && between(line, competitor.after, gap.after));
        let (out, back) = (out.expect("it lost the CPU"), back.expect("it got the CPU back"));
        assert_eq!([out.number("cpu"), back.number("cpu")], [gap.cpu; 2]);
        assert_eq!(out.number("thr"), gap.numbers[0], "the thread that lost the CPU: {}", out.0);
    }
}

/// ns in which a thread had no CPU between two stamps, as the kernel says.
fn off_cpu(lines: &[Line], tid: u64, from: u64, to: u64) -> f64 {
    let mut out = None;
    let mut sum = 0.0;
    for line in lines.iter().filter(|line| line.name() == "sched_switch") {
        if !(from..=to).contains(&line.number("cycles")) {
            continue;
        }
        if line.parameter("prev_tid") == tid {
            out = Some(line.number("ns"));
        } else if line.parameter("next_tid") == tid
            && let Some(out) = out.take()
        {
            sum += (line.number("ns") - out) as f64;
        }
    }
    sum
}
