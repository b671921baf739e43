//! `tracewing convert` as a shell sees it: what it writes, what it says, what an interrupt leaves.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Packet, class, tick, write_trace};
use harness::{Printed, RunExt};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn tracewing(folder: &Path, args: &[&str]) -> Output {
    harness::tracewing().args(args).current_dir(folder).ran()
}

/// A trace of `packets` packets of 100 events and 3 lost ones each.
fn trace(folder: &Path, packets: u64) {
    let mut bytes = Vec::new();
    for packet in 0..packets {
        let begin = packet * 1_000;
        let ticks: Vec<_> = (0..100).map(|number| tick(begin + number, number as u32)).collect();
        let head = Packet { seq: packet, discarded: 3 * packet, ..Packet::new(1, 0, begin, begin + 999) };
        bytes.extend(head.bytes(&ticks));
    }
    write_trace(folder, &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
}

#[test]
fn pipes_and_standard_output_are_written_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 2);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for command in [["convert", "--to", "csv"], ["convert", "--to", "json"], ["export", "--format", "chrome"]]
    {
        let to = |out: &str| {
            let output = tracewing(folder.path(), &[&command[..], &["trace", "-o", out]].concat());
            assert!(output.status.success(), "{command:?} -o {out}: {output:?}");
            output.text()
        };
        let expected = to("-");
        assert!(expected.lines().count() > 10, "{command:?}: {expected}");
        assert_eq!(to("/dev/stdout"), expected, "{command:?}");
        let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
        assert_eq!(to("pipe"), "", "{command:?}");
        assert_eq!(reader.wait_with_output().unwrap().text(), expected, "{command:?}");
    }
}

#[test]
fn every_target_holds_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 3);
    let listed = |name| tracewing(folder.path(), &["list", "--format", "json", name]).text();
    let original = listed("trace");
    for target in ["ctf1", "ctf2"] {
        let output = tracewing(folder.path(), &["convert", "--to", target, "trace", target]);
        assert!(output.status.success(), "{output:?}");
        let said = output.text();
        assert!(said.starts_with(&format!("{target}: 300 events in 3 packets of 1 streams")), "{said}");
        assert!(said.ends_with("; 6 events lost in the recording\n"), "{said}");
        assert_eq!(listed(target), original);
    }
    let output = tracewing(folder.path(), &["convert", "trace", "--format", "json", "-o", "events.json"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("events.json")).unwrap(), original);
    assert_eq!(output.notes().matches("discarded 3 events").count(), 2);
    let slice = ["convert", "trace", "--to", "csv", "--where", "n == 5", "--to", "+1us", "-o", "five.csv"];
    assert!(tracewing(folder.path(), &slice).status.success());
    let lines = std::fs::read_to_string(folder.path().join("five.csv")).unwrap();
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

/// An extract has earlier events, which give names, and begins before its first event.
#[test]
fn an_extract_says_the_same_when_it_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/server");
    let options = ["extract", "--from", "+2ms", "--to", "+20ms", whole.to_str().unwrap(), "part"];
    assert!(tracewing(folder.path(), &options).status.success());
    let of =
        |trace: &str, command: &str| tracewing(folder.path(), &[command, "--format", "json", trace]).text();
    for target in ["ctf1", "ctf2"] {
        let output = tracewing(folder.path(), &["convert", "--to", target, "part", target]);
        assert!(output.status.success(), "{output:?}");
        for command in ["threads", "tasks"] {
            assert_eq!(of(target, command), of("part", command), "{command} of {target}");
        }
        let events = |trace: &str| -> u64 {
            let info: serde_json::Value = serde_json::from_str(&of(trace, "info")).unwrap();
            let traces = info["traces"].as_array().unwrap().iter();
            let streams = traces.flat_map(|trace| trace["streams"].as_array().unwrap());
            streams.map(|stream| stream["events"].as_u64().unwrap()).sum()
        };
        assert_eq!(events(target), events("part"), "{target}");
    }
}

#[test]
fn an_unknown_format_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 1);
    for (arguments, reported) in [
        (&["--to", "ctf3"][..], "there is no format `ctf3`; give the output format once"),
        (&["--to", "+1us", "--to", "ctf3"], "there is no format `ctf3`; give the output format once"),
        (&["--to", "shop:served#3"], "error: give the output format once"),
        (&[], "error: give the output format once"),
    ] {
        let output = tracewing(folder.path(), &[&["convert", "trace", "out"], arguments].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(output.notes().contains(reported), "{output:?}");
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 1);
    std::fs::create_dir(folder.path().join("taken")).unwrap();
    for target in ["ctf1", "ctf2", "json", "csv"] {
        let output = tracewing(folder.path(), &["convert", "trace", "--format", target, "-o", "taken"]);
        assert!(!output.status.success());
        assert!(output.notes().contains("taken already exists"), "{output:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("taken")).unwrap().count(), 0);
}

#[test]
fn nothing_is_written_into_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace_folder = folder.path().join("trace");
    trace(&trace_folder, 1);
    std::fs::create_dir(trace_folder.join("below")).unwrap();
    std::os::unix::fs::symlink("trace/below", folder.path().join("link")).unwrap();
    for out in ["trace/out", "trace/below/out", "link/out"] {
        let output = tracewing(folder.path(), &["convert", "trace", "--format", "ctf2", "-o", out]);
        assert!(output.notes().contains("lies in trace"), "{output:?}");
        assert!(!output.status.success() && !folder.path().join(out).exists());
    }
    let output = tracewing(&trace_folder, &["convert", ".", "--format", "json", "-o", "out.json"]);
    assert!(!output.status.success() && !trace_folder.join("out.json").exists());
    assert!(
        tracewing(&trace_folder, &["convert", ".", "--format", "json", "-o", "../out.json"]).status.success()
    );
}

#[test]
fn a_full_standard_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 1);
    let output = harness::tracewing()
        .args(["convert", "trace", "--format", "json", "-o", "out.json"])
        .current_dir(folder.path())
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.notes().starts_with("error: cannot write: No space left on device"), "{output:?}");
}

#[test]
fn an_interrupt_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    trace(&folder.path().join("trace"), 20_000);
    for target in ["ctf2", "json"] {
        // A busy machine may let the command complete before it delivers the interrupt.
        assert!((0..5).any(|_| is_interrupted(folder.path(), target)), "{target}: always at its end already");
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["trace"]);
    }
}

/// Whether a conversion of `trace` to `out` was interrupted; what it has made if not is removed.
fn is_interrupted(folder: &Path, target: &str) -> bool {
    let out = folder.join("out");
    let mut command = harness::tracewing();
    command.args(["convert", "trace", "--format", target, "-o", "out"]).current_dir(folder);
    let mut child = tracewing_testing::with_default_signals(command.stderr(Stdio::piped())).spawn().unwrap();
    while !folder.join(".out.unfinished").exists() && !out.exists() {
        assert_eq!(child.try_wait().unwrap().filter(|status| !status.success()), None);
        std::thread::sleep(Duration::from_millis(1));
    }
    if !out.exists() {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    }
    let is_interrupted = !child.wait().unwrap().success();
    if !is_interrupted {
        let removed = if out.is_dir() { std::fs::remove_dir_all(&out) } else { std::fs::remove_file(&out) };
        removed.unwrap();
    }
    is_interrupted
}

#[test]
fn a_recording_of_the_kernel_comes_back_from_ctf_2() {
    if !rustix::process::geteuid().is_root() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, "kernel events need root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let output = tracewing(folder.path(), args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.text()
    };
    run(&["record", "--quiet", "-o", "trace", "--", "ls", "-lR", "/proc/self"]);
    let list = |name| run(&["list", "--clock-cycles", "--fields", "all", name]);
    let original = list("trace");
    for (target, from, to) in
        [("ctf2", "trace", "other"), ("ctf1", "other", "back"), ("ctf1", "trace", "same")]
    {
        run(&["convert", from, "--format", target, "-o", to]);
        assert!(list(to) == original, "{to}");
    }
}
