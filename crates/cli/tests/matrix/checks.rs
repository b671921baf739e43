//! What commands report, against a program's account.

use super::account::Account;
use super::exports;
use super::harness::{self, Json, Printed, RunExt, json};
use super::hidden::{Hidden, HiddenTimes};
use super::server_log::{Range, number, sum_of};
use serde_json::Value;
use std::path::Path;

/// A recording, how it was made, and which commands report all of it.
pub struct Checks<'a> {
    pub how: &'a str,
    pub trace: &'a Path,
    pub account: &'a Account,
    pub whole: &'a [&'a str],
    pub hidden: HiddenTimes,
}

/// Where events were lost that should not, a slow machine has less of everything.
pub fn has_losses(trace: &Path) -> bool {
    let streams = json(trace, &["stats"])["streams"].take();
    streams.as_array().unwrap().iter().any(|stream| stream["lost_events"] != 0)
}

/// Checks all commands and exports, in all formats or in one. Commands of `whole` report all that the account
/// has.
pub fn check(how: &str, trace: &Path, account: &Account, whole: &[&str], all_formats: bool) {
    let whole = if has_losses(trace) { &[] } else { whole };
    let checks = Checks { how, trace, account, whole, hidden: HiddenTimes::of(trace) };
    checks.counts();
    checks.events();
    checks.samples();
    checks.threads();
    checks.slices();
    checks.breakdown();
    checks.tasks();
    checks.locks();
    checks.functions();
    checks.latency();
    checks.paths();
    exports::check(&checks, all_formats);
}

impl Checks<'_> {
    pub fn rows(&self, command: &[&str], member: &str) -> Vec<Value> {
        let Value::Array(rows) = json(self.trace, command)[member].take() else { panic!("{command:?}") };
        rows
    }

    /// What a column has is at most this, and not less where the command reports all.
    pub fn holds(&self, command: &str, row: &Value, column: &str, range: Range) {
        let value = row[column].as_u64();
        let is_whole = self.whole.contains(&command.split(' ').next().unwrap());
        let holds = match value {
            Some(value) => value <= range.most && (!is_whole || value >= range.least),
            None => !is_whole,
        };
        assert!(holds, "{}, {command}: {column} of {row}, not in {range:?}", self.how);
    }

    fn all_are_there(&self, command: &str, there: usize, all: usize) {
        let is_whole = self.whole.contains(&command);
        assert!(there <= all && (!is_whole || there == all), "{}, {command}: {there} of {all}", self.how);
    }

    /// Time on CPUs, of which interrupts are a part; with time that the kernel's switches do not show.
    fn has_cpu_time(&self, command: &str, row: &Value, range: Range, hidden: Hidden) {
        self.holds(command, row, "running_ns", Range { least: 0, ..range });
        let is_whole = self.whole.contains(&command.split(' ').next().unwrap());
        let holds = !is_whole || hidden.most_of(row) >= range.least;
        assert!(holds, "{}, {command}: {row}, not in {range:?}, {hidden:?}", self.how);
    }

    fn threads(&self) {
        let rows = self.rows(&["threads", "-n", "1000"], "threads");
        let mut there = 0;
        for row in &rows {
            let of_process = self.account.process.is_some_and(|(pid, _)| row["process"] == pid);
            let Some(range) = row["tid"].as_u64().and_then(|tid| self.account.threads.get(&tid)) else {
                // Others of the process live no longer than the recording.
                if of_process {
                    self.lives(row);
                }
                continue;
            };
            there += 1;
            self.has_cpu_time("threads", row, *range, self.hidden.of_thread(row));
            self.lives(row);
        }
        self.all_are_there("threads", there, self.account.threads.len());
        if let Some((pid, range)) = self.account.process {
            for row in self.rows(&["threads", "--by", "process"], "processes") {
                if row["process"] == pid {
                    self.has_cpu_time("threads --by process", &row, range, self.hidden.of_all());
                }
            }
        }
        for row in self.rows(&["threads", "--by", "task", "-n", "1000"], "user_threads") {
            if let Some(task) = self.account.tasks.get(&number(&row, "task")) {
                // It may also be preempted during a poll, which is part of it.
                self.holds("", &row, "running_ns", task.busy_ns);
            }
        }
    }

    /// All times of a thread are within the recording; interrupts are a part of the others.
    fn lives(&self, row: &Value) {
        let times = ["running_ns", "ready_ns", "blocked_ns", "nested_ns", "unknown_ns"];
        let sum: u64 = times.iter().map(|column| row[column].as_u64().unwrap_or(0)).sum();
        assert!(sum <= self.account.took, "{}: {row} in {}", self.how, self.account.took);
    }

    /// `sched`, by thread and slice by slice.
    fn slices(&self) {
        for row in self.rows(&["sched", "latency", "-n", "1000"], "threads") {
            if let Some(range) = row["tid"].as_u64().and_then(|tid| self.account.threads.get(&tid)) {
                self.has_cpu_time("threads", &row, *range, self.hidden.of_thread(&row));
            }
        }
        let output = harness::of(self.trace, &["sched", "timehist", "--format", "json"]).succeeds().text();
        let slices: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (tid, range) in &self.account.threads {
            let of_it = slices.iter().filter(|slice| slice["tid"] == *tid);
            let sum = sum_of(of_it, [("run_ns", "running_ns"), ("delay_ns", "delay_ns")]);
            self.holds("", &sum, "running_ns", *range);
            self.holds("", &sum, "delay_ns", Range { least: 0, most: self.account.took });
        }
    }

    fn breakdown(&self) {
        let Some((pid, range)) = self.account.process else { return };
        let rows = self.rows(&["breakdown"], "rows");
        let of_it = rows.iter().filter(|row| row["process"] == pid && row["section"] == "inside");
        // Here, interrupts are not a part of the others.
        let columns = ["running_ns", "interrupted_ns", "unknown_ns"].map(|column| (column, column));
        let mut sum = sum_of(of_it, columns);
        sum["running_ns"] = (number(&sum, "running_ns") + number(&sum, "interrupted_ns")).into();
        self.has_cpu_time("breakdown", &sum, range, self.hidden.of_all());
    }

    fn tasks(&self) {
        let rows = self.rows(&["tasks", "-n", "1000"], "tasks");
        let rows = rows.iter().filter_map(|row| Some((row, self.account.tasks.get(&number(row, "task"))?)));
        let mut there = 0;
        for (row, task) in rows {
            there += 1;
            self.holds("tasks", row, "polls", Range { least: task.polls, most: task.polls });
            self.holds("tasks", row, "busy_ns", task.busy_ns);
            self.holds("", row, "running_ns", task.busy_ns);
        }
        self.all_are_there("tasks", there, self.account.tasks.len());
    }

    fn locks(&self) {
        let rows = self.rows(&["locks"], "locks");
        let mut there = 0;
        for (address, lock) in &self.account.locks {
            // Waits for futexes are a part of waits for locks.
            let rows = rows.iter().filter(|row| row["lock"] == format!("{address:#x}"));
            for row in rows {
                let is_lock = row["kind"] != "futex";
                there += usize::from(is_lock);
                let command = if is_lock { "locks" } else { "" };
                let acquired = Range { least: lock.acquired, most: lock.acquired };
                self.holds(command, row, "acquired", acquired);
                // Not all waits have a least length.
                self.holds(command, row, "wait_ns", Range { least: 0, ..lock.wait_ns });
                self.holds(command, row, "held", acquired);
                self.holds(command, row, "hold_ns", lock.hold_ns);
            }
        }
        self.all_are_there("locks", there, self.account.locks.len());
    }

    fn functions(&self) {
        let (name, calls, total) = self.account.function;
        let rows = self.rows(&["functions"], "functions");
        let is_it = |row: &&Value| row["function"].as_str().is_some_and(|function| function.ends_with(name));
        let rows: Vec<&Value> = rows.iter().filter(is_it).collect();
        for row in &rows {
            self.holds("functions", row, "calls", Range { least: calls, most: calls });
            self.holds("functions", row, "total_ns", total);
        }
        self.all_are_there("functions", rows.len(), 1);
        let graph = harness::of(self.trace, &["functions", "--graph", "--format", "json"]).ran();
        // Without ends there is none.
        assert!(graph.status.success() || !self.whole.contains(&"functions"), "{}", graph.notes());
        if graph.status.success() {
            let graph = graph.json();
            let of_it = graph["functions"].as_array().unwrap().iter().filter(is_it);
            let sum = sum_of(of_it, [("calls", "calls"), ("total_ns", "total_ns")]);
            self.holds("functions --graph", &sum, "calls", Range { least: calls, most: calls });
            self.holds("functions --graph", &sum, "total_ns", total);
        }
    }

    fn latency(&self) {
        let ([begin, end, field], requests) = &self.account.requests;
        let command = ["latency", "--begin", begin, "--end", end, "--match", field, "-n", "1000"];
        let output = harness::of(self.trace, &[&command[..], &["--format", "json"]].concat()).ran();
        if !output.status.success() {
            // Neither event is in the recording.
            assert!(!self.whole.contains(&"latency"), "{}: {}", self.how, output.notes());
            return;
        }
        let table = output.json();
        let rows = table["worst"].as_array().unwrap();
        for row in rows {
            let id = row["key"][0][1].as_str().unwrap().parse().unwrap();
            let Range { least, most } = requests[&id].ns;
            self.holds("latency", row, "duration_ns", Range { least, most });
            assert!(number(row, "duration_ns") >= least, "{}: {row}", self.how);
        }
        assert_eq!(number(&table, "count"), rows.len() as u64, "{}: {table}", self.how);
        self.all_are_there("latency", rows.len(), requests.len());
    }

    /// The path to the end of a thread and of a task has no gaps and no more than there was.
    fn paths(&self) {
        let thread = self.account.threads.keys().next().map(|tid| ["--tid".to_owned(), tid.to_string()]);
        let task = self.account.tasks.keys().next().map(|task| ["--task".to_owned(), task.to_string()]);
        for target in thread.into_iter().chain(task) {
            let mut command = harness::of(self.trace, &["critical-path", "--format", "json"]);
            let output = command.args(&target).ran();
            if !output.status.success() {
                let said = output.notes();
                let ways = ["does not appear in this time", "is empty", "has no events"];
                let is_absent = ways.iter().any(|way| said.contains(way));
                assert!(is_absent, "{}: {said}", self.how);
                continue;
            }
            let path = output.json();
            let steps = path["steps"].as_array().unwrap();
            let length = number(&path, "end_ns") - number(&path, "begin_ns");
            let sum: u64 = steps.iter().map(|step| number(step, "duration_ns")).sum();
            assert!(sum == length && length <= self.account.took, "{}, {target:?}: {path}", self.how);
            for (task, known) in &self.account.tasks {
                let own = steps.iter().filter(|step| step["task"] == *task && step["activity"] == "running");
                let own: u64 = own.map(|step| number(step, "duration_ns")).sum();
                assert!(own <= known.busy_ns.most, "{}, {target:?}: {own} ns of {known:?}: {path}", self.how);
            }
        }
    }
}
