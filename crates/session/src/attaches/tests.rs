//! How an attempt ends, and what it costs.

use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tracewing_testing::{Cause, am_root, skip};

/// The process or its files do not answer, or another process is its debugger.
#[test]
fn an_attempt_without_an_answer_is_given_up() {
    let silent = |server: tracewing_helper::Server| while server.next().is_some() {};
    let helper = Helper::start(c"tracewing-test", CapabilitySet::empty(), silent).unwrap();
    let attaches = Attaches(Some(Arc::new(helper)));
    let (pid, patience, limit) = (Pid(1), Duration::ZERO, Duration::from_millis(200));
    let request = Request::Attach { pid, wanted: Wanted::Present, recording: [7; 16], patience };
    let begin = Instant::now();
    let outcome = attaches.ask(attaches.0.as_ref().unwrap(), pid, &request, limit);
    assert!(matches!(outcome.result, Err(NotAttached::Refused(Refusal::Late(Pid(1))))), "{outcome:?}");
    assert!(begin.elapsed() >= limit);
    attaches.end();
    let outcome = attaches.ask(attaches.0.as_ref().unwrap(), pid, &request, LONGEST);
    assert!(matches!(outcome.result, Err(NotAttached::NoHelper)), "{outcome:?}");
}

/// A program that opens a door, and its process id.
fn start(program: &std::path::Path) -> (Child, Pid) {
    let mut command = Command::new(program);
    let mut child = command.arg("silent").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, Pid(line.trim().parse().unwrap()))
}

/// By itself, on an idle machine: `cargo test -p tracewing-session --lib -- --ignored what_an --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_an_attempt_costs() {
    if !am_root() {
        return skip(Cause::Root, "others attach only for root");
    }
    let own = std::env::current_exe().unwrap();
    let within = own.ancestors().nth(3).unwrap().join("tmp");
    let arguments = ["-p", "tracewing-attach", "--example", "hostile"];
    let built = tracewing_testing::build(within.to_str().unwrap(), &arguments);
    let program = built.join("examples/hostile");
    let ways = [("in this process", Attaches::default()), ("by helpers", Attaches::start())];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..50 {
        for ((_, attaches), times) in ways.iter().zip(&mut times) {
            let (mut child, pid) = start(&program);
            // Until its thread sleeps.
            std::thread::sleep(Duration::from_millis(20));
            let begin = Instant::now();
            let outcome = attaches.attach(pid, &Wanted::Present, [7; 16], Duration::from_secs(1));
            times.push((begin.elapsed(), outcome.longest_stop.unwrap_or_default()));
            assert_eq!(outcome.result.unwrap().entered.len(), 1);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    for ((name, _), mut times) in ways.iter().zip(times) {
        times.sort();
        let (median, slowest) = (times[times.len() / 2].0, times[times.len() - 1].0);
        times.sort_by_key(|(_, stop)| *stop);
        println!(
            "{name}: median {median:?}, slowest {slowest:?}; median stop {:?}",
            times[times.len() / 2].1
        );
    }
}
