//! Recordings of `examples/ledger`, a program that keeps account of its events: eight threads, and three
//! children, one of them killed with `kill -9`. Emitted is what is listed and what is lost, event by event
//! and thread by thread.

mod harness;
mod recorded;

use harness::RunExt;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use recorded::{Recording, UNREADY, build};
use serde_json::Value;

const THREADS: usize = 8;
const CHILDREN: usize = 3;
/// The child that is killed.
const VICTIM: usize = THREADS;
const EVENTS: u64 = 2000;

fn ledger() -> PathBuf {
    build(&["-p", "ledger"]).join("ledger")
}

fn accounts(path: &Path) -> Vec<Value> {
    let accounts: Vec<Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(accounts.len(), THREADS + CHILDREN);
    accounts
}

/// Records the ledger, in an environment that `env` changes, and checks all of it.
fn check(options: &[&str], env: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("truth.json");
    let (program, events) = (ledger(), EVENTS.to_string());
    let arguments = [program.to_str().unwrap(), truth.to_str().unwrap(), &events];
    let command: Vec<&str> = ["env"].iter().chain(env).copied().chain(arguments).collect();
    let recording = recorded::record(options, &command);
    account(&recording, &accounts(&truth));
    recording.compare_with_babeltrace2();
    recording
}

fn account(recording: &Recording, accounts: &[Value]) {
    let mut listed: BTreeMap<(i64, String), u64> = BTreeMap::new();
    let mut entries: BTreeMap<i64, u64> = BTreeMap::new();
    let events = recording.events();
    for event in &events {
        *listed.entry((event.tid, event.name.clone())).or_default() += 1;
        if event.name.starts_with("ledger:") {
            let entry = event.number("entry");
            let before = entries.insert(event.tid, entry);
            assert!(
                before.is_none_or(|before| before < entry),
                "thread {}: {before:?}, then {entry}",
                event.tid
            );
        }
    }
    let (mut begun, mut emitted) = (0, 0);
    for (task, account) in accounts.iter().enumerate() {
        let tid = account["tid"].as_i64().unwrap();
        for (name, count) in account["emitted"].as_object().unwrap() {
            let (least, most) = (count.as_u64().unwrap(), account["begun"][name].as_u64().unwrap());
            assert!(most == least || task == VICTIM && most == least + 1, "{account}");
            (emitted, begun) = (emitted + least, begun + most);
            let found = listed.remove(&(tid, name.clone())).unwrap_or(0);
            let least = if recording.lost() == 0 { least } else { 0 };
            assert!((least..=most).contains(&found), "{found} of {name} listed, thread {tid}: {account}");
        }
        // Each task is announced once; in small buffers that may be lost, too.
        let announced = listed.remove(&(tid, "tracewing:thread".to_owned())).unwrap_or(0);
        assert!(
            announced == 1 || announced == 0 && recording.lost() > 0,
            "thread {tid} announced {announced} times"
        );
    }
    assert!(listed.is_empty(), "events from nowhere: {listed:?}");
    let (found, tasks) = (events.len() as u64 + recording.lost(), accounts.len() as u64);
    // Nothing announces a child of which every event is lost.
    let silent = if recording.reasons().contains_key(UNREADY) { CHILDREN as u64 } else { 0 };
    assert!(
        (emitted + tasks - silent..=begun + tasks).contains(&found),
        "{found} listed or lost of {emitted} to {begun}"
    );
}

fn assert_only_children_lose(recording: &Recording) {
    let mut reasons = recording.reasons();
    reasons.remove(UNREADY);
    assert!(
        reasons.is_empty() || reasons == [("process died while emitting", 1)].into(),
        "{}",
        recording.summary
    );
}

/// The killed child can have left an event half done, with protocol `Smp`.
fn assert_nothing_lost(recording: &Recording) {
    let lost: Vec<_> =
        recording.reasons().into_iter().filter(|loss| *loss != ("process died while emitting", 1)).collect();
    assert_eq!(lost, [], "{}", recording.summary);
}

#[test]
fn large_shared_buffers_have_everything() {
    let recording = check(&["--sub-buffers", "64", "--buffers", "program"], &[]);
    // Root's programs share with none, children included.
    match tracewing_testing::am_root() {
        true => assert_only_children_lose(&recording),
        false => assert_nothing_lost(&recording),
    }
}

#[test]
fn buffers_per_process_have_everything() {
    let recording = check(&["--sub-buffers", "64", "--buffers", "process"], &[]);
    assert_only_children_lose(&recording);
    let streams = recording.summary["user_streams"].as_array().unwrap().iter();
    let names = streams.map(|stream| stream["name"].as_str().unwrap().split('_').next().unwrap());
    let names = names.collect::<BTreeSet<_>>().len();
    assert!((2..=1 + CHILDREN).contains(&names), "{}", recording.summary);
}

#[test]
fn the_monotonic_clock_has_everything() {
    assert_only_children_lose(&check(&["--sub-buffers", "64", "--clock", "mono"], &[]));
}

#[test]
fn default_buffers_add_up() {
    check(&[], &[]);
}

#[test]
fn small_buffers_lose_events_and_count_them() {
    for options in [&["--clock", "tsc"][..], &["--buffers", "process"], &["--clock", "mono"]] {
        let small = [options, &["--sub-buffers", "2", "--sub-buffer-size", "4K", "--flush", "1000"]].concat();
        let recording = check(&small, &[]);
        assert!(recording.reasons()["buffer full"] > 0, "{options:?}: nothing was lost");
    }
}

#[test]
fn without_restartable_sequences_everything_is_recorded_as_well() {
    let recording = check(&["--sub-buffers", "64"], &["GLIBC_TUNABLES=glibc.pthread.rseq=0"]);
    assert_only_children_lose(&recording);
    let streams = recording.summary["user_streams"].as_array().unwrap();
    let own = |stream: &Value| stream["name"].as_str().unwrap().starts_with("pid");
    assert!(streams.iter().all(own), "a shared buffer without restartable sequences: {streams:?}");
}

/// A program that is not recorded: no output, no socket, no thread of ours.
#[test]
fn without_a_recorder_nothing_happens() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, log) = (folder.path().join("truth.json"), folder.path().join("log"));
    let strace =
        Command::new("strace").args(["-f", "-o"]).arg(&log).arg(ledger()).arg(&truth).arg("50").output();
    let Ok(output) = strace else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("strace"),
            "strace is not installed",
        );
    };
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (vec![], vec![]));
    accounts(&truth);
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains("socket(") && !log.contains("connect(") && !log.contains("memfd"), "{log}");
    let threads = log.lines().filter(|line| line.contains("CLONE_THREAD") && !line.contains("resumed>"));
    assert_eq!(threads.count(), THREADS, "{log}");
}

#[test]
fn an_absent_recorder_harms_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let stream = folder.path().join("stream");
    let _listener = std::os::unix::net::UnixListener::bind(&stream).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let long = "/x".repeat(5000);
    let places = ["", "garbage", "\u{1}\u{ff}", "/no/such/folder/socket", "/dev/null", &long];
    let places = places.into_iter().chain([&dead, &stream, &file].map(|path| path.to_str().unwrap()));
    for place in places {
        let truth = folder.path().join("truth.json");
        let output = Command::new(ledger()).arg(&truth).arg("10").env("TRACEWING_SOCKET", place).ran();
        assert!(output.status.success(), "{place}");
        assert_eq!((output.stdout, output.stderr), (vec![], vec![]), "{place}");
        accounts(&truth);
        fs::remove_file(truth).unwrap();
    }
}

#[test]
fn a_program_with_an_agent_of_its_own_and_a_preloaded_one_is_one_program() {
    build(&["-p", "tracewing-preload"]);
    let program = recorded::program("steps");
    let alone = recorded::record::<&Path>(&["--locks"], &[&program]);
    assert_eq!(alone.summary["processes"], 1, "{}", alone.summary);
    // The shell has an agent, too, and executes the program in its place.
    let shell = [Path::new("sh"), Path::new("-c"), Path::new("exec \"$0\""), &program];
    let executed = recorded::record::<&Path>(&["--locks"], &shell);
    assert_eq!(executed.summary["processes"], 2, "{}", executed.summary);
}
