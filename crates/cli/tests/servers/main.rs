//! Servers under load that are recorded, left alone, and recorded again, twenty times, while they run: no
//! request fails. The servers were not built or started for it, but for `quotes`, which links tracewing.
//!
//! `TRACEWING_SOAK_SECONDS` sets how long each server is tried, as `cargo xtask soak --only attach` does.

#[path = "../harness/mod.rs"]
mod harness;
mod nginx;
mod postgresql;
#[path = "../recorded/mod.rs"]
mod recorded;

use harness::{Printed, RunExt, tracewing};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a server is recorded.
const ROUNDS: u32 = 20;
/// How long it is tried, unless asked otherwise: all three together a minute.
const SECONDS: u64 = 20;
/// Longest time of one recording.
const LONGEST: Duration = Duration::from_secs(10);

/// Time that reading and a slow machine may add, for a server that knows when it ends.
const LATE: Duration = Duration::from_secs(60);

/// How long a server is tried.
fn length() -> Duration {
    let seconds = std::env::var("TRACEWING_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(SECONDS))
}

/// What was recorded of a server, all rounds together.
#[derive(Default)]
struct Sum {
    rounds: u32,
    events: u64,
    lost: u64,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recorded {} times, {} events, {} lost", self.rounds, self.events, self.lost)
    }
}

/// What a server's recordings show. A short one may lack what sleeps meanwhile, so all of them together.
#[derive(Debug, Default)]
struct Seen {
    /// Processes with threads that ran.
    processes: BTreeSet<u64>,
    samples: u64,
    /// Hits of the probe.
    hits: u64,
    /// Waits for requests, which `breakdown` has found.
    waits: u64,
}

impl Seen {
    /// Looks at a recording, made in this way, of a server whose probe's events have this name.
    fn look(&mut self, trace: &Path, way: &[&str], probe: &str) {
        if way.contains(&"--profile") {
            self.samples += harness::json(trace, &["profile"])["samples"].as_u64().unwrap();
        }
        if way.iter().any(|option| ["--probe", "--usdt"].contains(option)) {
            let hits = harness::of(trace, &["list", "--format", "csv", "-e", probe]).succeeds().text();
            self.hits += hits.lines().count().saturating_sub(1) as u64;
        }
        if !way.contains(&"--no-kernel") {
            let found = harness::json(trace, &["breakdown"]);
            let rows = found["rows"].as_array().unwrap().iter();
            let waits = rows.filter(|row| row["activity"] == "epoll_wait");
            self.waits += waits.map(|row| row["calls"].as_u64().unwrap()).sum::<u64>();
            let rows = harness::json(trace, &["threads"]);
            let ran = rows["threads"].as_array().unwrap().iter().filter(|row| row["running_ns"] != 0);
            self.processes.extend(ran.map(|row| row["process"].as_u64().unwrap()));
        }
    }

    /// Whether there is all of it, and so many processes.
    fn is_complete(&self, processes: usize) -> bool {
        self.samples > 0 && self.hits > 0 && self.waits > 0 && self.processes.len() >= processes
    }
}

/// Records processes again and again, with pauses, in all ways in turn: kernel events, samples too, samples
/// alone, and this probe; not after `until`. `processes` are asked for anew each time. `look` looks at one
/// recording of each way, and at further ones until it has seen what it looks for.
fn record(
    folder: &Path,
    until: Option<Instant>,
    probe: &[&str],
    processes: impl Fn() -> Vec<u32>,
    mut look: impl FnMut(&Path, &[u32], &[&str]) -> bool,
) -> Sum {
    let ways = [&[], &["--profile"][..], &["--no-kernel", "--profile"], probe];
    let time = (length() / ROUNDS).mul_f64(0.6).min(LONGEST);
    let pause = (length() / ROUNDS).saturating_sub(time).min(LONGEST / 4);
    let seconds = time.as_secs_f64().to_string();
    let mut sum = Sum::default();
    let mut has_seen = false;
    let begin = Instant::now();
    let has_time = || until.is_none_or(|until| Instant::now() + time < until);
    while has_time() && (sum.rounds < ROUNDS || begin.elapsed() + time + pause < length()) {
        let way = ways[sum.rounds as usize % ways.len()];
        let trace = folder.join("t");
        let pids = processes();
        let text = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let output = tracewing()
            .args(["record", "--format", "json", "--for", &seconds, "--pid", &text, "-o"])
            .arg(&trace)
            .args(way)
            .ran();
        assert!(output.status.success(), "{way:?}: {}", output.notes());
        let notes = output.notes();
        let summary: Value = serde_json::from_str(notes.lines().next_back().unwrap()).unwrap();
        let number = |key: &str| summary[key].as_u64().unwrap();
        (sum.events, sum.lost) = (sum.events + number("events"), sum.lost + number("lost_events"));
        // Others than the first process may have ended meanwhile.
        let attached = summary["attached"].as_array().unwrap().iter();
        assert!(attached.into_iter().any(|process| process["pid"] == pids[0]), "{notes}");
        // Not always: reading takes longer than recording.
        if sum.rounds < ways.len() as u32 || !has_seen {
            has_seen = look(&trace, &pids, way);
        }
        std::fs::remove_dir_all(&trace).unwrap();
        sum.rounds += 1;
        std::thread::sleep(pause);
    }
    sum
}

/// The processes of a server: the first one, and those that it has started.
fn family(first: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    [first].into_iter().chain(children).collect()
}

/// A port on which nothing listens.
fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Whether these programs are installed; says so if not.
fn installed(programs: &[&'static str]) -> bool {
    programs.iter().all(|program| {
        let is_there = Command::new(program)
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !is_there {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program(program),
                format_args!("{program} is not installed"),
            );
        }
        is_there
    })
}

#[test]
fn a_tokio_server_loses_no_request() {
    let quotes = recorded::build(&["-p", "quotes"]).join("quotes");
    let folder = tempfile::tempdir().unwrap();
    let lifetime = length() + length().min(LATE) + Duration::from_secs(20);
    // A recording begins no later than this, since there is to be an end to it.
    let until = Instant::now() + lifetime - Duration::from_secs(2);
    let mut server = Command::new(quotes);
    let server = server.args(["--seconds", &lifetime.as_secs().to_string()]).stdout(Stdio::piped());
    let server = server.spawn().unwrap();
    // It has joined, with the tasks of before the recording: its connections last as long as it does.
    let (mut named, mut seen) = (0, Seen::default());
    let look = |trace: &Path, pids: &[u32], way: &[&str]| {
        let table = harness::json(trace, &["tasks", "-n", "1000"]);
        let rows = table["tasks"].as_array().unwrap().iter();
        let rows =
            rows.filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("connection/")));
        named += rows.inspect(|row| assert_eq!(row["process"], pids[0], "{row}")).count();
        seen.look(trace, way, "libc.so.6:epoll_wait");
        named > 0 && seen.is_complete(1)
    };
    let sum =
        record(folder.path(), Some(until), &["--probe", "libc.so.6:epoll_wait"], || vec![server.id()], look);
    assert!(sum.rounds > 1, "{sum}");
    assert!(named > 0, "no recording has tasks of before it with their names: {sum}");
    assert!(seen.is_complete(1), "{sum}: {seen:?}");
    // It fails if a request does.
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    println!("quotes: {sum}; {}", output.text());
}
