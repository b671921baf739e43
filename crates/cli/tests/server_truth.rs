//! What each command reports of a tokio server (`crates/tokio/examples/server.rs`), against the server's own
//! log of waits, holds, polls and latencies. Its connections are plain `tokio::spawn` tasks, as axum's are,
//! or instrumented ones; or plain ones of a tokio with `tokio_unstable`, whose hooks alone know them.

mod harness;
mod recorded;
mod server_log;

use harness::{RunExt, json, traceable};
use server_log::*;

fn record(how: &str, options: &[&str]) -> Run {
    server_log::record(&server("server"), how, options)
}

#[test]
fn locks_are_those_that_the_server_took() {
    for how in ["plain", "spawned"] {
        compare_locks(&record(how, &["--no-kernel"]));
    }
}

/// The line of the desk with this text.
fn line_of(text: &str) -> u64 {
    let source = include_str!("../../tokio/examples/desk/mod.rs");
    let number = source.lines().position(|line| line.contains(text)).expect("the text");
    number as u64 + 1
}

#[test]
fn each_line_has_its_locks_and_a_lock_held_across_an_await_is_warned_of() {
    let run = record("plain", &["--no-kernel"]);
    let table = run.json(&["locks", "--by", "caller"]);
    let by_line = run.log.locks(|_, line| line);
    assert_eq!(by_line.len(), 5);
    for (line, logged) in by_line.iter().filter(|(_, logged)| logged.acquired > 0) {
        let at = format!("crates/tokio/examples/desk/mod.rs:{line}");
        let row = table["locks"].as_array().unwrap().iter().find(|row| row["at"] == *at);
        let row = row.unwrap_or_else(|| panic!("no {at} in {table}"));
        assert_eq!(number(row, "held"), logged.acquired, "{row}");
        assert!(logged.hold_ns.has(number(row, "hold_ns")), "{row} {logged:?}");
    }
    // By default, the line where a lock was held longest; and a warning of the one that `book` holds while it
    // awaits.
    let book = line_of("self.ledger.lock(), sleep(2000)");
    let address = run.log.of("lock").find(|line| line[1] == book).unwrap()[0];
    let default = run.json(&["locks"]);
    assert_eq!(locks(&default)[&address]["at"], format!("crates/tokio/examples/desk/mod.rs:{book}"));
    let (_, warned) = run.text(&["locks"]);
    let warning = warned.lines().find(|line| line.contains(&format!("{address:#x}")));
    let warning = warning.unwrap_or_else(|| panic!("no warning of {address:#x}: {warned}"));
    for part in [format!("mod.rs:{book},"), "across an .await".into()] {
        assert!(warning.contains(&part), "{part}: {warning}");
    }
    // A lock that is not held for long, or across no await, is well.
    let cache = run.log.of("cache").next().unwrap()[0];
    assert!(!warned.contains(&format!("{cache:#x}")), "{warned}");
}

#[test]
fn they_are_the_same_however_they_are_recorded() {
    for way in WAYS {
        for how in ["plain", "spawned"] {
            let run = record(how, way);
            compare_locks(&run);
            // Its line is recorded, too.
            let table = run.json(&["locks", "--by", "caller"]);
            let rows = table["locks"].as_array().unwrap();
            assert!(
                rows.iter().any(|row| row["at"].as_str().unwrap().contains("desk/mod.rs:")),
                "{way:?}: {table}"
            );
        }
    }
    if traceable() {
        compare_locks(&record("plain", &[]));
    }
}

/// Kinds of events that are left out, what then is not known, and of what the reason says so.
const LEFT_OUT: [(&str, &[&str], &str); 3] = [
    ("user_thread:wait", &["wait_ns", "wait_avg_ns", "wait_max_ns"], "lock:requested, user_thread:wait"),
    (
        "user_thread:released",
        &["held", "hold_ns", "hold_avg_ns", "hold_max_ns"],
        "lock:released, user_thread:released",
    ),
    ("user_thread:acquired", &[], "lock:acquired, user_thread:acquired"),
];

#[test]
fn what_events_are_missing_for_is_unknown_and_not_wrong() {
    for (left_out, unknown, reason) in LEFT_OUT {
        let of_locks = left_out.replace("user_thread:wait", "lock:requested").replace("user_thread", "lock");
        let run = record("plain", &["--no-kernel", "--exclude", left_out, "--exclude", &of_locks]);
        let table = run.json(&["locks"]);
        let rows = locks(&table);
        for (address, logged) in run.log.locks(|address, _| address) {
            let Some(row) = rows.get(&address) else { continue };
            for column in unknown {
                assert!(row[column].is_null(), "{left_out}, {column}: {row}");
            }
            if left_out != "user_thread:acquired" {
                assert_eq!(number(row, "acquired"), logged.acquired, "{left_out}: {row}");
            }
            if left_out == "user_thread:released" {
                assert_eq!(number(row, "waited"), logged.waited, "{left_out}: {row}");
            }
        }
        let (text, _) = run.text(&["locks"]);
        assert!(text.contains(reason), "{left_out}: {text}");
    }
}

#[test]
fn a_wait_that_no_event_ends_is_not_taken_for_one_that_lasts() {
    let run = record("plain", &["--no-kernel", "--exclude", "user_thread:given_up"]);
    let table = run.json(&["locks"]);
    let rows = locks(&table);
    for (address, logged) in run.log.locks(|address, _| address) {
        let row = rows[&address];
        assert!(row["wait_ns"].is_null(), "{row} {logged:?}");
        assert_eq!(number(row, "acquired"), logged.acquired, "{row}");
    }
}

/// An extract has the locks of its time, with their lines.
#[test]
fn extracts_have_no_wrong_times() {
    let run = record("plain", &["--no-kernel"]);
    let extract = run.folder.path().join("extract");
    let from = run.log.of("request").map(|line| line[1]).max().unwrap();
    let whole = run.json(&["locks"]);
    let mut command = harness::tracewing();
    command.args(["extract", "-o"]).arg(&extract).arg(run.trace()).args(["--from", "+5ms"]);
    command.succeeds();
    let table = json(&extract, &["locks"]);
    let (all, some) = (locks(&whole), locks(&table));
    for (address, row) in &some {
        let Some(whole) = all.get(address) else { panic!("{address:#x} in {whole}") };
        for column in ["acquired", "wait_ns", "hold_ns"] {
            assert!(row[column].as_u64().unwrap_or(0) <= number(whole, column), "{column}: {row} {whole}");
        }
        if row["kind"] != "mutex" || number(row, "acquired") > 0 {
            assert_eq!(
                row["at"].as_str().unwrap().is_empty(),
                whole["at"].as_str().unwrap().is_empty(),
                "{row}"
            );
        }
    }
    assert!(from > 0 && !some.is_empty(), "{table}");
}

#[test]
fn small_buffers_lose_events_but_make_up_no_times() {
    let run = record("plain", &[&["--no-kernel"], &SMALL[..]].concat());
    compare_what_is_left(&run.trace(), &run);
}

/// A snapshot at the end has all that the server did, where there is room for it.
#[test]
fn snapshots_have_no_wrong_times() {
    let flight = ["--no-kernel", "--flight-recorder", "--snapshot-on", "exit"];
    for how in ["plain", "spawned"] {
        let run = record(how, &flight);
        compare_locks_of(&run.trace().join("snapshot-1"), &run);
        compare_latency(&run.trace().join("snapshot-1"), &run);
    }
}

#[test]
fn requests_take_as_long_as_the_server_says() {
    for how in ["plain", "spawned"] {
        let run = record(how, &["--no-kernel"]);
        compare_latency(&run.trace(), &run);
    }
}

#[test]
fn a_lock_of_threads_and_a_function_are_those_that_the_server_used() {
    let flight = ["--no-kernel", "--flight-recorder", "--snapshot-on", "exit"];
    for how in ["plain", "spawned"] {
        let run = record(how, &["--no-kernel"]);
        compare_cache_and_search(&run.trace(), &run);
        let run = record(how, &flight);
        compare_cache_and_search(&run.trace().join("snapshot-1"), &run);
    }
}

/// Each connection's task waited for what the server says, and its path is as long as its life.
fn compare_paths(run: &Run) {
    for line in run.log.of("polls") {
        let &[_, _, _, task, begin, end] = line else { panic!("{line:?}") };
        let length = path_without_gaps(&run.trace(), &["--task", &task.to_string()]);
        // It waits for its first turn, and for its end to be noticed, as long as a busy machine takes.
        assert!((end - begin..=run.took).contains(&length), "{length} ns of {}: {task}", end - begin);
    }
}

#[test]
fn critical_paths_are_as_long_as_their_tasks_lived() {
    compare_paths(&record("spawned", &["--no-kernel"]));
    if traceable() {
        compare_paths(&record("spawned", &[]));
    }
}

#[test]
fn threads_and_system_calls_take_what_the_process_took() {
    if !traceable() {
        return;
    }
    for how in ["plain", "spawned"] {
        compare_cpu_time(&record(how, &[]));
    }
}

/// Tasks that no line of the program instruments.
#[test]
fn tasks_that_only_hooks_know_are_those_that_the_server_counted() {
    for options in [&["--no-kernel"][..], &[]] {
        if options.is_empty() && !traceable() {
            continue;
        }
        let run = server_log::record(&hooked("server"), "plain", options);
        compare_locks(&run);
        let table = run.json(&["tasks", "-n", "1000"]);
        let rows = table["tasks"].as_array().unwrap();
        // Connections, and those that send to them.
        assert_eq!(rows.len(), 16, "{table}");
        for line in run.log.of("polls") {
            let &[_, polls, computed, task, ..] = line else { panic!("{line:?}") };
            let row =
                rows.iter().find(|row| row["task"] == task).unwrap_or_else(|| panic!("{task}: {table}"));
            assert!(row["name"].as_str().unwrap().starts_with("main.rs:"), "{row}");
            assert_eq!(number(row, "polls"), polls, "{row}");
            assert!(number(row, "busy_ns") + 1_000_000 >= computed, "{row} {computed}");
        }
        // Hooks report no wakes.
        let threads = run.json(&["threads", "--by", "task"]);
        let has_no_wakes = |row: &serde_json::Value| row["wakeups"].is_null() && row["ready_ns"].is_null();
        assert!(threads["user_threads"].as_array().unwrap().iter().all(has_no_wakes), "{threads}");
        hooks_are_why_wakes_are_missing(&run);
        // All waits for the mutex are parts of requests.
        let periods = compare_latency(&run.trace(), &run);
        compare_waits(&run, &periods);
        compare_paths(&run);
    }
}

/// There is no event `user_thread:wake`, and no option records any.
fn hooks_are_why_wakes_are_missing(run: &Run) {
    let of_requests = "latency --begin server:request --end server:response --match id -n 3";
    for command in ["threads --by task", "tasks", of_requests] {
        let (text, _) = run.text(&command.split(' ').collect::<Vec<_>>());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(text.matches("as tokio's hooks report none").count(), 1, "{command}: {text}");
        assert!(!text.contains("user_thread:wake"), "{command}: {text}");
        assert!(text.contains("though it may have been ready earlier"), "{command}: {text}");
    }
}

#[test]
fn polls_are_those_that_the_server_counted() {
    let options = if traceable() { &[][..] } else { &["--no-kernel"] };
    let run = record("spawned", options);
    let table = run.json(&["tasks"]);
    let rows = table["tasks"].as_array().unwrap();
    for line in run.log.of("polls") {
        let &[connection, polls, computed, ..] = line else { panic!("{line:?}") };
        let row = rows.iter().find(|row| row["name"] == format!("connection/{connection}")).unwrap();
        assert_eq!(number(row, "polls"), polls, "{row}");
        // The clock of the thread's CPU time leaves out what the machine's host took.
        assert!(number(row, "busy_ns") + 1_000_000 >= computed, "{row} {computed}");
        if run.trace().join("kernel").exists() {
            assert!(is_cpu_time(row, thread_time(computed, run.stolen)), "{row} {computed}");
        } else {
            assert!(row["running_ns"].is_null(), "{row}");
        }
    }
    // Tasks that are not instrumented are in no table.
    let plain = record("plain", &["--no-kernel"]);
    assert_eq!(plain.json(&["tasks"])["tasks"].as_array().unwrap().len(), 0);
}
