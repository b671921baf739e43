//! Programs under filters for system calls (seccomp) that recorders of sessions do not have, and have other
//! ones.

use crate::background::{Background, Pilot};
use crate::harness::{self, Printed, RunExt};
use crate::recorded::program;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use tracewing_testing::wait_until;

/// How many filters a process has.
fn filters(pid: &str) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")).unwrap();
    number.trim().parse().unwrap()
}

/// Threads of tracewing in a program.
fn agents(pilot: &Pilot) -> usize {
    let name = |tid: i64| fs::read_to_string(format!("/proc/{}/task/{tid}/comm", pilot.id()));
    pilot.tids().into_iter().filter(|tid| name(*tid).is_ok_and(|name| name == "tracewing\n")).count()
}

/// As in a service of systemd, which has many: programs do not have those of the recorder, so that as many of
/// their own are no less.
#[test]
fn filters_of_a_recorder_excuse_no_filters_of_programs() {
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:* -e sandbox:*");
    let sandbox = program("sandbox").to_str().unwrap().to_owned();
    let twice = [sandbox.as_str(), "wrap_allowing"].repeat(2);
    let before: Vec<String> = twice.iter().map(|word| (*word).to_owned()).collect();
    let started = sessions.command(&before, harness::TRACEWING).args(["session", "start", "web"]).ran();
    assert!(started.status.success(), "{}", started.notes());
    let own = filters("self");
    assert_eq!(filters(&sessions.recorders()[0].to_string()), own + 2);

    let mut plain = Pilot::start(&sessions);
    wait_until("it has an agent", || agents(&plain) == 1);
    let mut filtered = sessions.command(&[], &sandbox);
    filtered.arg("outlives").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut filtered = filtered.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(filtered.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    plain.emit(10);
    let note = format!("process {} (sandbox) is filtered by seccomp and cannot be changed", filtered.id());
    let said = sessions.succeeds("session stop web").notes();
    assert!(said.contains(&note), "{said}");
    assert!(!said.contains(&format!("process {} (pilot) is filtered", plain.id())), "{said}");
    wait_until("the agent of the other one has ended", || agents(&plain) == 0);
    // One that had the agent do something now would have been ended.
    filtered.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    let status = filtered.wait().unwrap();
    assert!(status.success(), "{status}");
}
