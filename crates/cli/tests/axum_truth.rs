//! What each command reports of a web server (`crates/tokio/examples/axum_server.rs`), against its own log
//! and its clients': plain `axum::serve`, whose tasks are not instrumented, or known by tokio's hooks alone
//! (`tokio_unstable`), with spans and events of `tracing`.

mod harness;
mod recorded;
mod server_log;

use harness::{RunExt, json, traceable};
use serde_json::Value;
use server_log::*;
use std::collections::BTreeMap;
use std::path::Path;

fn record(options: &[&str]) -> Run {
    server_log::record(&server("axum_server"), "plain", options)
}

/// How long each period lasted, by what `by` is in its first event; and the table.
fn periods(trace: &Path, begin: &str, end: &str, by: &str) -> (Value, Vec<(u64, u64)>) {
    let table = json(trace, &["latency", "--begin", begin, "--end", end, "--match", by, "-n", "1000"]);
    let key = |row: &Value| row["key"][0][1].as_str().unwrap().parse().unwrap();
    let all =
        table["worst"].as_array().unwrap().iter().map(|row| (key(row), number(row, "duration_ns"))).collect();
    (table, all)
}

/// Each of the spans that are there has its request's, and lasts as long.
fn each_span_is_the_servers(trace: &Path, run: &Run) -> Value {
    let requests: BTreeMap<u64, u64> = recorded::list(trace)
        .iter()
        .filter(|event| event.name == "desk:order_new")
        .map(|event| (event.number("span"), event.number("id")))
        .collect();
    let logged: BTreeMap<u64, &[u64]> = run.log.of("span").map(|line| (line[0], line)).collect();
    let (table, spans) = periods(trace, "desk:order_new", "desk:order_close", "span");
    for (span, ns) in spans {
        let &[_, makes, made, closes, closed] = logged[&requests[&span]] else { panic!("five numbers") };
        assert!(
            (closes - made..=closed - makes).contains(&ns),
            "{span:#x}: {ns} ns of {:?}",
            requests[&span]
        );
    }
    table
}

/// Each of the clients' calls that are there lasts as long as they say.
fn each_call_is_the_clients(trace: &Path, run: &Run) -> Value {
    let logged: BTreeMap<u64, &[u64]> = run.log.of("call").map(|line| (line[0], line)).collect();
    let (table, calls) = periods(trace, "client:call", "client:answer", "id");
    for (id, ns) in calls {
        let &[_, begin, asks, answered, end] = logged[&id] else { panic!("five numbers") };
        assert!((answered - asks..=end - begin).contains(&ns), "{id}: {ns} ns of {:?}", logged[&id]);
    }
    table
}

fn is_whole(table: &Value, run: &Run) {
    let counts = ["count", "unmatched_begins", "unmatched_ends"].map(|field| number(table, field));
    assert_eq!(counts, [run.log.of("request").count() as u64, 0, 0], "{table}");
}

/// All that is known of the program without its tasks and without the kernel.
fn all_of_the_program_is_as_logged(trace: &Path, run: &Run) {
    compare_locks_of(trace, run);
    compare_cache_and_search(trace, run);
    compare_latency(trace, run);
    is_whole(&each_span_is_the_servers(trace, run), run);
    is_whole(&each_call_is_the_clients(trace, run), run);
    // A span is entered for each poll, and once more by `tracing`, to drop what was in it.
    let polls: u64 = run.log.of("polls").map(|line| line[1] + 1).sum();
    let (table, _) = periods(trace, "desk:order_enter", "desk:order_exit", "span");
    assert_eq!(number(&table, "count"), polls, "{table}");
}

#[test]
fn without_the_kernel() {
    for way in [&["--no-kernel"][..], &["--no-kernel", "--buffers", "process"]] {
        let run = record(way);
        all_of_the_program_is_as_logged(&run.trace(), &run);
        // Nothing is known of its tasks, and nothing of CPUs.
        assert_eq!(run.json(&["tasks"])["tasks"].as_array().unwrap().len(), 0);
        let threads = run.json(&["threads"]);
        for line in run.log.of("client") {
            let row = threads["threads"].as_array().unwrap().iter().find(|row| row["tid"] == line[0]);
            let row = row.unwrap_or_else(|| panic!("{} in {threads}", line[0]));
            for column in ["running_ns", "ready_ns", "blocked_ns"] {
                assert_eq!(row[column].as_u64().unwrap_or(0), 0, "{column} of {row}");
            }
        }
    }
}

#[test]
fn with_the_kernel() {
    if !traceable() {
        return;
    }
    let run = record(&["--sub-buffers", "32"]);
    all_of_the_program_is_as_logged(&run.trace(), &run);
    let threads = compare_cpu_time(&run);
    let rows = threads["threads"].as_array().unwrap();
    let clients: BTreeMap<u64, u64> = run.log.of("by").map(|line| (line[0], line[1])).collect();
    for line in run.log.of("client") {
        let &[tid, computed, begin, end] = line else { panic!("{line:?}") };
        let row = rows.iter().find(|row| row["tid"] == tid).unwrap();
        assert!(is_cpu_time(row, thread_time(computed, run.stolen)), "{row}: {computed}");
        let whole = ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"].map(|field| number(row, field));
        assert!(whole.iter().sum::<u64>() >= end - begin, "{row}: {}", end - begin);
        // Of its calls, it is in the kernel to wait for the answers, without a CPU, or computes; it may wait
        // for the memory of its process wherever it touches a page.
        let blocked = row["blocked_on"].as_array().unwrap();
        let on = |is: fn(&Value) -> bool| -> u64 {
            blocked.iter().filter(|on| is(&on["on"])).map(|on| number(on, "ns")).sum()
        };
        let (read, untold) = (on(|on| on == "recvfrom"), on(Value::is_null));
        let of_it = |call: &&[u64]| clients[&call[0]] == tid;
        let asked: u64 = run.log.of("call").filter(of_it).map(|call| call[3] - call[2]).sum();
        assert!(read <= asked, "{row}: {asked}");
        let rest = ["running_ns", "ready_ns", "unknown_ns"].map(|field| number(row, field));
        let rest = rest.iter().sum::<u64>() + row["interrupted_ns"].as_u64().unwrap_or(0) + untold;
        assert!(read + rest >= asked, "{row}: {asked}");
        let path = path_without_gaps(&run.trace(), &["--tid", &tid.to_string()]);
        assert!(path >= end - begin, "{tid}: {path} ns of {}", end - begin);
    }
}

/// By tokio's hooks each connection is a task, and so is the one that accepts them.
#[test]
fn with_tasks_that_only_hooks_know() {
    for options in [&["--no-kernel"][..], &["--sub-buffers", "32"]] {
        let has_kernel = options[0] != "--no-kernel";
        if has_kernel && !traceable() {
            continue;
        }
        let run = server_log::record(&hooked("axum_server"), "plain", options);
        all_of_the_program_is_as_logged(&run.trace(), &run);
        let table = run.json(&["tasks", "-n", "1000"]);
        let rows = table["tasks"].as_array().unwrap();
        let clients = run.log.of("client").count();
        assert_eq!(rows.len(), clients + 1, "{table}");
        let (mut polls, mut computed): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = Default::default();
        for line in run.log.of("polls") {
            let &[_, polled, cpu, task, ..] = line else { panic!("{line:?}") };
            *polls.entry(task).or_default() += polled;
            *computed.entry(task).or_default() += cpu;
        }
        assert_eq!(polls.len(), clients);
        let &[_, all] = run.log.of("process").next().unwrap() else { panic!("two numbers") };
        for (task, polls) in &polls {
            let row =
                rows.iter().find(|row| row["task"] == *task).unwrap_or_else(|| panic!("{task}: {table}"));
            // The file of axum that spawns them.
            assert!(row["name"].as_str().unwrap().starts_with("mod.rs:"), "{row}");
            // It also reads requests, and writes answers.
            assert!(number(row, "polls") >= *polls, "{row} {polls}");
            assert!(number(row, "busy_ns") + 1_000_000 >= computed[task], "{row} {computed:?}");
            if has_kernel {
                let running = number(row, "running_ns") + row["interrupted_ns"].as_u64().unwrap_or(0);
                assert!(running + 1_000_000 >= computed[task], "{row} {computed:?}");
            }
        }
        let running: u64 = rows.iter().map(|row| row["running_ns"].as_u64().unwrap_or(0)).sum();
        let is_there = running <= all + run.stolen && (running > 0) == has_kernel;
        assert!(is_there, "{running} ns of {all}: {table}");
        // All waits for the mutex are parts of requests.
        let periods = compare_latency(&run.trace(), &run);
        compare_waits(&run, &periods);
        for task in polls.keys() {
            let of_it = || run.log.of("polls").filter(|line| line[3] == *task);
            let served =
                of_it().map(|line| line[5]).max().unwrap() - of_it().map(|line| line[4]).min().unwrap();
            let path = path_without_gaps(&run.trace(), &["--task", &task.to_string()]);
            assert!(path >= served, "{task}: {path} ns of {served}");
        }
    }
}

#[test]
fn with_few_events() {
    for way in WAYS {
        compare_locks(&record(way));
    }
    let run = record(&["--no-kernel", "-e", "desk:*", "-e", "client:*"]);
    is_whole(&each_span_is_the_servers(&run.trace(), &run), &run);
    is_whole(&each_call_is_the_clients(&run.trace(), &run), &run);
    for (command, rows) in [("tasks", "tasks"), ("locks", "locks"), ("functions", "functions")] {
        assert_eq!(run.json(&[command])[rows].as_array().unwrap().len(), 0, "{command}");
    }
    let run = record(&["--no-kernel", "--exclude", "user_thread:*"]);
    compare_cache_and_search(&run.trace(), &run);
    compare_latency(&run.trace(), &run);
}

/// What is there is the program's, and nothing is more than it.
fn nothing_is_made_up(trace: &Path, run: &Run) {
    each_span_is_the_servers(trace, run);
    each_call_is_the_clients(trace, run);
    compare_what_is_left(trace, run);
    let calls = run.log.of("cache").count() as u64;
    let longest = run.log.of("cache").map(|line| line[5] - line[4]).sum::<u64>();
    for row in json(trace, &["functions"])["functions"].as_array().unwrap() {
        assert!(number(row, "calls") <= calls && number(row, "total_ns") <= longest, "{row}: {longest}");
    }
}

#[test]
fn with_losses() {
    for more in [&[][..], &["--on-full", "overwrite"]] {
        let run = record(&[&["--no-kernel"], &SMALL[..], more].concat());
        nothing_is_made_up(&run.trace(), &run);
    }
}

#[test]
fn in_a_flight_recorder() {
    let options = ["--no-kernel", "--flight-recorder", "--snapshot-on", "exit"];
    let run = record(&options);
    all_of_the_program_is_as_logged(&run.trace().join("snapshot-1"), &run);
    let run = record(&[&options[..], &SMALL].concat());
    nothing_is_made_up(&run.trace().join("snapshot-1"), &run);
}

#[test]
fn in_extracts() {
    let run = record(if traceable() { &[] } else { &["--no-kernel"] });
    let parts: [&[&str]; 5] = [
        &["--from", "+30ms"],
        &["--to", "+60ms"],
        &["--from", "+20ms", "--to", "+60ms"],
        &["--exclude", "user_thread:*"],
        &["--user"],
    ];
    for (number, part) in parts.into_iter().enumerate() {
        let extract = run.folder.path().join(format!("extract-{number}"));
        let mut command = harness::tracewing();
        command.arg("extract").arg(run.trace()).args(part).arg("-o").arg(&extract).succeeds();
        nothing_is_made_up(&extract, &run);
        if part == ["--user"] {
            all_of_the_program_is_as_logged(&extract, &run);
        }
    }
}
