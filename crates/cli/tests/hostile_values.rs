//! Recordings that are well-formed but nonsensical: every analysis and every export ends, with a result or an
//! error, in bounded memory and time, and no number that an analysis gives is absurd.

#[path = "hostile_values/absurd.rs"]
mod absurd;
mod forms;
mod harness;
#[path = "../../trace/tests/common/hostile.rs"]
mod hostile;
#[path = "hostile_values/moments.rs"]
mod moments;

use absurd::Whole;
use harness::{Json, Printed, RunExt};
use serde_json::Value;
use std::ops::Range;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Output;

/// Bytes of addresses that a command may use, most of them its own code, and seconds of processors.
const LIMITS: [(libc::__rlimit_resource_t, u64); 2] = [(libc::RLIMIT_AS, 2 << 30), (libc::RLIMIT_CPU, 60)];

/// Everything that makes something of values; `OUT` stands for a place to write to, `TRACE` for the
/// recording, which is the last argument of each.
const COMMANDS: &[&str] = &[
    "list",
    "list --super",
    "list --super --format json",
    "list --format csv",
    "list --context --format json",
    "list --context --format csv",
    "list --details",
    "list --details=compact",
    "list --pretty --clock-date --fields all",
    "list --clock-cycles --no-delta --names all",
    "list --clock-seconds",
    "info",
    "info --show streams",
    "info --show classes --format csv",
    "stats",
    "threads",
    "threads --active-time",
    "threads --by task --format json",
    "threads --by process --format csv",
    "threads --from +100ns --to +20000ns",
    "breakdown",
    "breakdown --format json",
    "sched timehist",
    "sched latency",
    "sched timehist --format json",
    "tasks",
    "tasks --format json --long-poll 1ns --blocking-poll 1ns",
    "tasks --by name",
    "latency --begin sched_waking --end sched_switch --match tid=next_tid",
    "latency --begin lock:requested --end lock:acquired --match lock --by kind --worst 5 --nested queue",
    "latency --begin shop:work_begin --end shop:work_end --match span --format json --nested latest",
    "latency --begin * --end * --show figures,groups,histogram,worst --by $tid --nested first",
    "critical-path --tid 1",
    "critical-path --tid 0 --format json",
    "critical-path --task 1",
    "locks",
    "locks --by thread",
    "locks --by task --format csv",
    "locks --by caller --format json",
    "locks --by chain",
    "locks --graph",
    "locks --graph=dot",
    "locks --histogram",
    "locks --histogram=linear --svg OUT",
    "functions",
    "functions --graph",
    "functions --replay",
    "functions --diff TRACE",
    "functions --flame-graph OUT",
    "profile",
    "profile --by object",
    "profile --by thread --format json",
    "profile --tree --least 0",
    "profile --tree=callers",
    "profile --counters",
    "profile --no-inline",
    "profile --flame-graph OUT",
    "export --format paje -o OUT",
    "export --format perfetto -o OUT",
    "export --format chrome -o OUT",
    "convert --format ctf1 -o OUT",
    "convert --format ctf2 -o OUT",
    "convert --format json -o OUT",
    "convert --format csv -o OUT",
    "extract --from +100ns --to +20000ns -o OUT",
    "index --index OUT",
];

fn tracewing(arguments: &str, trace: &Path, out: &Path) -> Output {
    let mut command = harness::tracewing();
    for word in arguments.split(' ') {
        match word {
            "OUT" => command.arg(out),
            "TRACE" => command.arg(trace),
            _ => command.arg(word),
        };
    }
    command.arg(trace).env("RUST_BACKTRACE", "0");
    let limit = || {
        for (resource, most) in LIMITS {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
            // SAFETY: the limit outlives the call.
            if unsafe { libc::setrlimit(resource, &raw const limit) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: `setrlimit` may be called between `fork` and `exec`; nothing is allocated.
    unsafe { command.pre_exec(limit) };
    command.ran()
}

/// What is wrong with how a command ended: it may fail with an error, or end early by itself.
fn fault(output: &Output) -> Option<String> {
    let said = output.notes();
    let usage = output.status.code() == Some(2) && said.contains("For more: ");
    (output.status.signal().is_some() || said.contains("panicked") || usage)
        .then(|| format!("{}: {said}", output.status))
}

/// Of the recordings that are made.
fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (number("TRACEWING_SEED").unwrap_or(0), number("TRACEWING_CASES").unwrap_or(6));
    first..first + count
}

#[test]
fn no_value_brings_an_analysis_or_an_export_down() {
    let mut faults = Vec::new();
    for seed in seeds() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        hostile::write_recording(&trace, seed);
        for (at, command) in COMMANDS.iter().enumerate() {
            let out = folder.path().join(at.to_string());
            if let Some(fault) = fault(&tracewing(command, &trace, &out)) {
                faults.push(format!("seed {seed}, tracewing {command}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Commands that print numbers, as JSON.
const TABLES: &[&str] = &[
    "threads",
    "threads --by process",
    "threads --by task",
    "breakdown",
    "sched timehist",
    "sched latency",
    "tasks --long-poll 1ns --blocking-poll 1ns",
    "tasks --by name",
    "latency --begin sched_waking --end sched_switch --match tid=next_tid",
    "latency --begin lock:requested --end lock:acquired --match lock --by kind --worst 5 --nested queue",
    "latency --begin * --end * --show figures,groups,histogram,worst --by $tid --nested first",
    "critical-path --tid 1",
    "critical-path --tid 0",
    "critical-path --task 1",
    "locks",
    "locks --by thread",
    "locks --by task",
    "locks --by caller",
    "locks --by chain",
    "locks --graph",
    "functions",
    "functions --graph",
    "functions --replay",
    "profile",
    "profile --by thread",
    "profile --tree --least 0",
];

/// What a recording has.
fn whole(trace: &Path) -> Whole {
    // A stamp that no number of nanoseconds holds ends them with an error, after what was before.
    let [info, stats] =
        ["info", "stats"].map(|command| harness::of(trace, &[command, "--format", "json"]).ran().json());
    let time = |name: &str| info[name].as_i64().unwrap_or_else(|| panic!("{name} of {info}"));
    let streams = stats["streams"].as_array().unwrap().iter();
    let events = streams.map(|stream| stream["events"].as_u64().unwrap()).sum();
    Whole { begin: time("begin_ns"), end: time("end_ns"), events }
}

/// The documents that a command prints: one, or one a line.
fn documents(output: &Output) -> Vec<Value> {
    match serde_json::from_str(&output.text()) {
        Ok(document) => vec![document],
        Err(_) => output.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

#[test]
fn no_number_is_absurd() {
    let mut faults = Vec::new();
    for seed in seeds() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        hostile::write_recording(&trace, seed);
        let whole = whole(&trace);
        for command in TABLES {
            let output = tracewing(&format!("{command} --format json"), &trace, folder.path());
            for document in documents(&output) {
                for fault in whole.absurd(&document) {
                    faults.push(format!("seed {seed}, tracewing {command}: {fault} of {whole:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn exports_have_nothing_outside_of_the_recording() {
    let mut faults = Vec::new();
    for seed in seeds() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        hostile::write_recording(&trace, seed);
        let whole = whole(&trace);
        let length = i128::from(whole.end.abs_diff(whole.begin));
        for format in ["chrome", "paje", "perfetto"] {
            let out = folder.path().join(format);
            let output = tracewing(&format!("export --format {format} -o OUT"), &trace, &out);
            if !out.exists() {
                assert!(!output.status.success(), "{}", output.notes());
                continue;
            }
            // Numbers of JSON have 53 bits for a beginning and a length in microseconds.
            let most = length + (length >> 50);
            let outside =
                moments::moments(format, &out).into_iter().filter(|(at, _)| !(0..=most).contains(at));
            faults.extend(
                outside.map(|(at, what)| format!("seed {seed}, {format}: {at} ns of {length}: {what}")),
            );
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn everything_that_reads_recordings_is_run() {
    let lines = COMMANDS.iter().map(|line| line.split(' ').collect());
    let mut missing = forms::missing(lines);
    // One ends when the recorder does, and there is none; the other serves until it is interrupted, and has
    // hostile values in its own tests.
    missing.retain(|form| form != "list --follow" && form.split(' ').next() != Some("view"));
    assert!(missing.is_empty(), "not run on hostile values: {missing:#?}");
}
