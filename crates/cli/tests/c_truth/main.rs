//! What each command reports of a C program (`crates/capi/tests/programs/clerks.c`), against the program's
//! own log: locks, latencies, spans, user threads, functions, system calls, sleep. Each number lies between
//! what the program measured inside and outside.

#[path = "../harness/mod.rs"]
mod harness;
mod log;
#[path = "../recorded/mod.rs"]
mod recorded;

use harness::{Printed, RunExt, json, traceable};
use log::*;
use recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn locks_are_the_programs(trace: &Path, log: &Log) {
    let ((address, wait), (_, hold)) = (log.only("wait"), log.only("hold"));
    let locks = rows(trace, &["locks"]);
    let row = locks.iter().find(|row| row["lock"] == format!("{address:#x}")).unwrap();
    assert_eq!(["acquired", "refused", "held"].map(|field| number(row, field)), [wait.count, 0, hold.count]);
    assert!(hold.has(number(row, "hold_ns")), "{row}: {hold:?}");
    // Each wait is within its call, and every thread that a holder saw waiting was in such a call.
    let waits = Sums { least: log.only("others").1.least, ..wait };
    assert!(waits.has(number(row, "wait_ns")), "{row}: {waits:?}");
    // All locks together, by the threads that took them.
    let by_thread = rows(trace, &["locks", "--by", "thread"]);
    assert_eq!(by_thread.iter().map(|row| row["held"].as_u64().unwrap_or(0)).sum::<u64>(), hold.count);
}

/// Each request that is in the trace takes as long as the program says.
fn each_latency_is_the_programs(trace: &Path, log: &Log) -> Value {
    let (table, periods) = periods(trace, "clerks:request", "clerks:response", "id");
    let requests = log.of("request");
    for (id, ns) in &periods {
        assert!(requests[id].has(*ns), "request {id}: {ns} ns, {:?}", requests[id]);
    }
    table
}

fn latencies_are_the_programs(trace: &Path, log: &Log) {
    let table = each_latency_is_the_programs(trace, log);
    let counts = ["count", "unmatched_begins", "unmatched_ends"].map(|field| number(&table, field));
    assert_eq!(counts, [log.of("request").len() as u64, 0, 0], "{table}");
    let (table, _) = periods(trace, "clerks:sale_begin", "clerks:sale_end", "span");
    let sales = log.of("sale");
    let longest = Sums {
        count: 1,
        least: sales.values().map(|sale| sale.least).max().unwrap(),
        most: sales.values().map(|sale| sale.most).max().unwrap(),
    };
    assert_eq!(number(&table, "count"), sales.len() as u64, "{table}");
    assert!(longest.has(number(&table, "max_ns")), "{table}: {longest:?}");
}

fn functions_are_the_programs(trace: &Path, log: &Log) {
    let (_, calls) = log.only("look_up");
    let functions = rows(trace, &["functions"]);
    let row = functions.iter().find(|row| row["function"] == "look_up").unwrap();
    assert_eq!(number(row, "calls"), calls.count, "{row}");
    assert!(calls.has(number(row, "total_ns")), "{row}: {calls:?}");
}

fn tasks_are_the_programs(trace: &Path, log: &Log) {
    let tasks = rows(trace, &["tasks", "-n", "1000"]);
    let polls = log.of("poll");
    assert_eq!(tasks.len(), polls.len());
    for row in &tasks {
        let poll = &polls[&number(row, "task")];
        assert_eq!(number(row, "polls"), poll.count, "{row}");
        assert!(poll.has(number(row, "busy_ns")), "{row}: {poll:?}");
    }
}

/// The path to the end of a user thread begins with its first poll and has no gaps.
fn critical_paths_are_as_long_as_the_programs(trace: &Path, log: &Log) {
    for task in log.of("poll").keys().take(5) {
        let of = log.0.iter().filter(|(operation, of, _)| operation == "poll" && of == task);
        let [first, last] = of.map(|(.., stamps)| *stamps).collect::<Vec<_>>()[..] else {
            panic!("two polls")
        };
        let path = json(trace, &["critical-path", "--task", &task.to_string()]);
        let (from, to) = (number(&path, "begin_ns"), number(&path, "end_ns"));
        // It begins when it is made, which is some instructions before; another thread may have had the CPU
        // between these.
        let earliest = log.0.iter().map(|(.., stamps)| stamps[0]).min().unwrap();
        let length = Sums { count: 1, least: last[2] - first[1], most: last[3] - earliest };
        assert!(length.has(to - from), "{task}: {from} to {to}, {length:?}");
        let steps = path["steps"].as_array().unwrap();
        assert_eq!(steps.iter().map(|step| number(step, "duration_ns")).sum::<u64>(), to - from, "{task}");
        let gaps = steps.windows(2).filter(|pair| pair[0]["end_ns"] != pair[1]["begin_ns"]).count();
        assert_eq!(gaps, 0, "{task}: {path}");
        let own = steps
            .iter()
            .filter(|step| step["task"] == *task)
            .map(|step| number(step, "duration_ns"))
            .sum::<u64>();
        let polls = &log.of("poll")[task];
        assert!(own <= polls.most, "{task}: {own} ns of its own, {polls:?}");
    }
}

/// What is on no CPU is not recorded without the kernel.
fn nothing_is_known_of_cpus(trace: &Path, log: &Log) {
    let threads = rows(trace, &["threads"]);
    for tid in log.of("thread").keys() {
        let row =
            threads.iter().find(|row| row["tid"] == *tid).unwrap_or_else(|| panic!("{tid} in {threads:?}"));
        for column in ["running_ns", "ready_ns", "blocked_ns"] {
            assert_eq!(row[column].as_u64().unwrap_or(0), 0, "{column} of {row}");
        }
        assert!(row["system_calls"].is_null(), "{row}");
    }
}

/// What each clerk computes at least: a call for each request.
const COMPUTED_NS: u64 = 20 * 150_000;

fn threads_are_the_programs(run: &Run) {
    let Run { log, stolen, .. } = run;
    let threads = rows(&run.trace(), &["threads"]);
    let [cpu, sleep, life] = ["cpu", "sleep", "thread"].map(|operation| log.of(operation));
    for (tid, computed) in &cpu {
        let row = threads.iter().find(|row| row["tid"] == *tid).unwrap();
        // The kernel stamps a switch and charges the time up to it some instructions apart; a thread is made
        // and ends without its clock, and what the host took is none of what that counts.
        let [running, unknown, switches] = ["running_ns", "unknown_ns", "switches"].map(|of| number(row, of));
        let apart = computed.most / 50 + 300_000;
        let charged = tracewing_testing::charged_before(switches).as_nanos() as u64;
        let fits = running + unknown + charged + apart >= computed.least
            && running <= computed.most + apart + 4_000_000 + stolen;
        assert!(fits, "{row}: {computed:?}");
        let on = |what: &str| {
            let all = row["blocked_on"].as_array().unwrap();
            all.iter().find(|on| on["on"] == what).map_or(0, |on| number(on, "ns"))
        };
        // A sleep may end before the thread has left the CPU, which it does not then; and before it has one
        // again. It computes at other times.
        let awake = running + number(row, "ready_ns") - COMPUTED_NS;
        let slept =
            Sums { least: sleep[tid].least.saturating_sub(awake), ..sleep[tid] }.has(on("clock_nanosleep"));
        assert!(slept, "{row}: {:?}", sleep[tid]);
        let whole = ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"].map(|field| number(row, field));
        assert!(whole.iter().sum::<u64>() >= life[tid].least, "{row}: {:?}", life[tid]);
    }
}

/// How often the program slept, and how long; the latter only if all system calls were recorded, since else
/// the program may have been in another one.
fn system_calls_are_the_programs(trace: &Path, log: &Log, has_all: bool) {
    let table = json(trace, &["breakdown"]);
    let mut rows = table["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["activity"] == "clock_nanosleep" && row["name"] == "clerks").unwrap();
    let sleep = log.of("sleep");
    let slept = sleep.values().fold(Sums::default(), |all, one| Sums {
        count: all.count + one.count,
        least: all.least + one.least,
        most: all.most + one.most,
    });
    assert_eq!(number(row, "calls"), slept.count, "{row}");
    if !has_all {
        for column in ["running_ns", "blocked_ns", "ready_ns", "ipc_ns"] {
            assert!(row[column].is_null(), "{column}: {row}");
        }
        return;
    }
    let times =
        ["running_ns", "blocked_ns", "ready_ns", "ipc_ns", "interrupted_ns"].map(|of| number(row, of));
    assert!(slept.has(times.iter().sum()), "{row}: {slept:?}");
}

fn all_of_programs_is_as_logged(trace: &Path, log: &Log) {
    locks_are_the_programs(trace, log);
    latencies_are_the_programs(trace, log);
    functions_are_the_programs(trace, log);
    tasks_are_the_programs(trace, log);
    critical_paths_are_as_long_as_the_programs(trace, log);
}

#[test]
fn without_the_kernel() {
    for buffers in ["user", "process"] {
        let Some(run) = record(&["--no-kernel", "--buffers", buffers]) else { return };
        all_of_programs_is_as_logged(&run.trace(), &run.log);
        nothing_is_known_of_cpus(&run.trace(), &run.log);
        // The pre-loaded library has an agent of its own; the program is one all the same.
        let description = fs::read_to_string(run.trace().join("tracewing.json")).unwrap();
        let description: Value = serde_json::from_str(&description).unwrap();
        assert_eq!(description["processes"].as_array().unwrap().len(), 1, "{description}");
    }
}

#[test]
fn with_addresses() {
    let Some(run) = record(&["--no-kernel", "--context", "ip"]) else { return };
    all_of_programs_is_as_logged(&run.trace(), &run.log);
}

/// The macros of the header pass the address of the code that uses them: each class has one for each of its
/// two places, in that line, and no other class has it.
#[test]
fn addresses_are_those_of_the_places() {
    for optimisation in ["-O0", "-O2"] {
        addresses_are_those_of_the_places_with(optimisation);
    }
}

fn addresses_are_those_of_the_places_with(optimisation: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = [optimisation, "-gdwarf-4", "-no-pie"];
    let Some(program) = program_of(folder.path(), "places", &options) else { return };
    let trace = folder.path().join("t");
    let mut record = harness::tracewing();
    record.args(["record", "--no-kernel", "-q", "--context", "ip", "-o"]).arg(&trace);
    record.arg("--").arg(&program).succeeds();
    let listed = harness::of(&trace, &["list", "--format", "json", "-e", "places:*"]).ran().text();
    let mut places: BTreeMap<u64, BTreeMap<String, usize>> = BTreeMap::new();
    for line in listed.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let of_place = places.entry(number(&event["specific_context"], "ip")).or_default();
        *of_place.entry(event["event"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(!places.contains_key(&0) && places.len() == 6, "{places:x?}");
    assert!(places.values().all(|classes| classes.values().eq([&3])), "{places:x?}");
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/tests/programs/places.c"));
    let source = source.unwrap();
    for (place, classes) in &places {
        let mut addr2line = Command::new("addr2line");
        let found = addr2line.arg("-e").arg(&program).arg(format!("{place:#x}")).ran().text();
        let line = found.trim_end().rsplit(':').next().unwrap();
        let line = line.split(' ').next().unwrap().parse::<usize>().unwrap();
        let text = source.lines().nth(line - 1).unwrap();
        let class = classes.keys().next().unwrap().trim_start_matches("places:");
        assert!(text.contains(&format!("TRACEWING_EMIT({class}")), "{optimisation}: {found} is {text}");
    }
}

#[test]
fn with_the_kernel() {
    let Some(run) = traceable().then(|| record(&["--sub-buffers", "32"])).flatten() else { return };
    all_of_programs_is_as_logged(&run.trace(), &run.log);
    threads_are_the_programs(&run);
    system_calls_are_the_programs(&run.trace(), &run.log, true);
}

#[test]
fn without_tasks() {
    let Some(run) = record(&["--no-kernel", "--exclude", "user_thread:*"]) else { return };
    locks_are_the_programs(&run.trace(), &run.log);
    latencies_are_the_programs(&run.trace(), &run.log);
    functions_are_the_programs(&run.trace(), &run.log);
    assert!(rows(&run.trace(), &["tasks"]).is_empty());
}

#[test]
fn with_few_events() {
    let Some(run) = record(&["--no-kernel", "-e", "clerks:re*"]) else { return };
    let table = each_latency_is_the_programs(&run.trace(), &run.log);
    assert_eq!(number(&table, "count"), run.log.of("request").len() as u64);
    // Asked for by options of their own.
    locks_are_the_programs(&run.trace(), &run.log);
    functions_are_the_programs(&run.trace(), &run.log);
    assert!(rows(&run.trace(), &["tasks"]).is_empty());
    if traceable() {
        // The kernel's sleeps and switches alone.
        let run = record(&["-e", "clerks:re*", "-k", "sched_*", "-k", "*clock_nanosleep"]).unwrap();
        each_latency_is_the_programs(&run.trace(), &run.log);
        threads_are_the_programs(&run);
        system_calls_are_the_programs(&run.trace(), &run.log, false);
    }
}

/// What is there is the program's, and nothing is more than it.
fn nothing_is_made_up(trace: &Path, log: &Log) {
    let table = each_latency_is_the_programs(trace, log);
    assert!(number(&table, "count") <= log.of("request").len() as u64);
    let ((address, wait), (_, hold)) = (log.only("wait"), log.only("hold"));
    let at_most = |row: &Value, column: &str, most: u64| {
        assert!(row[column].as_u64().unwrap_or(0) <= most, "{column}: {row}, {most}");
    };
    for row in rows(trace, &["locks"]).iter().filter(|row| row["lock"] == format!("{address:#x}")) {
        at_most(row, "acquired", wait.count);
        at_most(row, "wait_ns", wait.most);
        at_most(row, "held", hold.count);
        at_most(row, "hold_ns", hold.most);
    }
    let (_, calls) = log.only("look_up");
    for row in rows(trace, &["functions"]).iter().filter(|row| row["function"] == "look_up") {
        at_most(row, "calls", calls.count);
        at_most(row, "total_ns", calls.most);
    }
    let polls = log.of("poll");
    for row in rows(trace, &["tasks", "-n", "1000"]) {
        let poll = &polls[&number(&row, "task")];
        at_most(&row, "polls", poll.count);
        at_most(&row, "busy_ns", poll.most);
    }
}

const SMALL: [&str; 4] = ["--sub-buffers", "2", "--sub-buffer-size", "4K"];

#[test]
fn with_losses() {
    let Some(run) = record(&[&["--no-kernel"], &SMALL[..]].concat()) else { return };
    nothing_is_made_up(&run.trace(), &run.log);
    let run = record(&[&["--no-kernel", "--on-full", "overwrite"], &SMALL[..]].concat()).unwrap();
    nothing_is_made_up(&run.trace(), &run.log);
}

#[test]
fn in_a_flight_recorder() {
    let options = ["--no-kernel", "--flight-recorder", "--snapshot-on", "exit"];
    let Some(run) = record(&options) else { return };
    all_of_programs_is_as_logged(&run.trace().join("snapshot-1"), &run.log);
    // The newest events only.
    let run = record(&[&options[..], &SMALL].concat()).unwrap();
    nothing_is_made_up(&run.trace().join("snapshot-1"), &run.log);
    let (_, warning) = harness::print(&run.trace().join("snapshot-1"), &["locks"]);
    // Of a program that runs on one CPU only, there is one buffer, which begins when the snapshot does.
    let description = std::fs::read_to_string(run.trace().join("snapshot-1/tracewing.json")).unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    let later = description["overwritten"].as_array().is_some_and(|ranges| !ranges.is_empty());
    assert_eq!(
        warning.contains("older events were overwritten in some buffers"),
        later,
        "{warning}: {description}"
    );
}

#[test]
fn in_extracts() {
    let Some(run) = record(if traceable() { &[] } else { &["--no-kernel"] }) else { return };
    for (number, part) in [
        &["--from", "+20ms"][..],
        &["--to", "+30ms"],
        &["--from", "+10ms", "--to", "+40ms"],
        &["--cpu", "0"],
        &["--user"],
    ]
    .into_iter()
    .enumerate()
    {
        let extract = run.folder.path().join(format!("extract-{number}"));
        let mut command = harness::tracewing();
        command.arg("extract").arg(run.trace()).args(part).arg("-o").arg(&extract).succeeds();
        nothing_is_made_up(&extract, &run.log);
        if part[0] == "--cpu" {
            for row in rows(&extract, &["locks"]).iter().chain(&rows(&run.trace(), &["locks", "--cpu", "0"]))
            {
                assert!(row["wait_ns"].is_null() && row["hold_ns"].is_null(), "{row}");
            }
            let whole = ["functions", "--cpu", "0"];
            for row in rows(&extract, &["functions"]).iter().chain(&rows(&run.trace(), &whole)) {
                assert!(row["total_ns"].is_null() && row["calls"].is_u64(), "{row}");
            }
        }
        if part == ["--user"] {
            all_of_programs_is_as_logged(&extract, &run.log);
        }
    }
}
