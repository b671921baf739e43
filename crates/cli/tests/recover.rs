//! `tracewing recover`: what it gets out of dead, stopped and living programs is what `tracewing list` shows
//! of their recordings, to the letter; and what it says where there is nothing to get.

mod harness;
mod recorded;

use harness::{Printed, RunExt, run};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use recorded::{program, recorder};
use serde_json::Value;

/// What `tracewing recover` prints: events, and what it warns of.
fn recover(arguments: &[&str]) -> (String, String) {
    let Output { status, stdout, stderr } = run(&[&["recover"], arguments].concat());
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(status.success(), "{status}: {stderr}");
    (stdout, stderr)
}

/// The error of `tracewing recover`.
fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(&[&["recover"], arguments].concat());
    assert!(!status.success() && stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stderr).unwrap()
}

fn listed(trace: &Path, arguments: &[&str]) -> String {
    let output = run(&[&["list", trace.to_str().unwrap()], arguments].concat());
    assert!(output.status.success(), "{}", output.notes());
    output.text()
}

fn last_words() -> String {
    program("last_words").to_str().unwrap().to_owned()
}

/// Records a shell script that is to leave a core dump, which the kernel writes. `None`, and a line, where it
/// does not.
fn dumped(options: &[&str], script: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("ulimit -c unlimited; {script}");
    let mut recorder = recorder(folder.path(), options);
    let output = recorder.args(["sh", "-c", &script]).ran();
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let core = entries
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("core"));
    if core.is_none() {
        tracewing_testing::skip(
            tracewing_testing::Cause::Setting("/proc/sys/kernel/core_pattern", "core"),
            format_args!(
                "the kernel leaves no core dump in the current folder (/proc/sys/kernel/core_pattern, ulimit -c): {}",
                output.notes()
            ),
        );
    }
    Some((folder, core?))
}

#[test]
fn a_core_dump_of_a_program_whose_events_have_addresses() {
    let abort = format!("exec {} abort 200", last_words());
    let Some((folder, core)) = dumped(&["--context", "ip"], &abort) else { return };
    let all = listed(&folder.path().join("t"), &[]);
    assert!(all.contains("ip = 0x"));
    assert_eq!(recover(&["--core", core.to_str().unwrap()]), (all, String::new()));
}

#[test]
fn a_core_dump() {
    let Some((folder, core)) = dumped(&[], &format!("exec {} abort 2000", last_words())) else { return };
    let (trace, core) = (folder.path().join("t"), core.to_str().unwrap());
    let all = listed(&trace, &[]);
    assert!(all.lines().count() > 6000, "two threads, 3 events for every second number");
    assert_eq!(recover(&["--core", core]), (all.clone(), String::new()));
    let pretty = listed(&trace, &["--pretty"]);
    assert_eq!(recover(&["--core", core, "--pretty"]).0, pretty);
    let json = listed(&trace, &["--format", "json"]);
    let without_place = |text: &str| -> Vec<Value> {
        let event = |line: &str| -> Value {
            let mut event: Value = serde_json::from_str(line).unwrap();
            ["trace", "stream"].iter().for_each(|key| event[key] = Value::Null);
            event
        };
        text.lines().map(event).collect()
    };
    let recovered = recover(&["--core", core, "--format", "json"]).0;
    assert_eq!(without_place(&recovered), without_place(&json));

    // The last ones, as if nothing preceded them.
    let (last, warnings) = recover(&["--core", core, "-n", "3", "-e", "last:w*", "-e", "last:ad_hoc"]);
    let wanted = |line: &&str| line.contains(" last:words: ") || line.contains(" last:ad_hoc: ");
    let expected: Vec<_> = all.lines().filter(wanted).collect();
    let after_delta = |line: &str| line.split_once(") ").unwrap().1.to_owned();
    let texts: Vec<_> = last.lines().map(after_delta).collect();
    let expected: Vec<_> = expected[expected.len() - 3..].iter().map(|line| after_delta(line)).collect();
    assert_eq!((texts, warnings.as_str()), (expected, ""));
    assert!(last.lines().next().unwrap().contains(" (+?.?????????) "), "{last}");
    assert_eq!(recover(&["--core", core, "-n", "0"]).0, "");
    assert_eq!(recover(&["--core", core, "-n", "1000000"]).0, all);

    in_gdb(&[&last_words(), core], &last);
}

/// gdb's command gives the same as `last`: three events of those names.
fn in_gdb(arguments: &[&str], last: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/gdb/tracewing.py");
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-nx", "-batch", "-x"]).arg(script).args(arguments);
    gdb.args(["-ex", "echo :\\n", "-ex", "tracewing-last-events 3 last:w* last:ad_hoc"]);
    gdb.env("TRACEWING", harness::TRACEWING).env("DEBUGINFOD_URLS", "").stdin(Stdio::null());
    let Ok(output) = gdb.output() else {
        return tracewing_testing::skip(tracewing_testing::Cause::Program("gdb"), "gdb is not installed");
    };
    let stdout = output.text();
    let printed = stdout.split_once("\n:\n").map_or("", |(_, printed)| printed);
    assert!(printed.starts_with(last), "{stdout}\n{}", output.notes());
}

#[test]
fn shared_memory_that_was_not_dumped() {
    let script = format!("echo 0x31 > /proc/self/coredump_filter; exec {} abort 10", last_words());
    let Some((_folder, core)) = dumped(&[], &script) else { return };
    let error = refused(&["--core", core.to_str().unwrap()]);
    assert!(error.contains("the core dump leaves the buffers out; ") && error.contains("0x33"), "{error}");
}

/// A program that waits, and its recorder.
struct Waiting {
    folder: tempfile::TempDir,
    recorder: Child,
    pid: i32,
}

impl Waiting {
    fn start(options: &[&str], count: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder =
            recorder(folder.path(), options).args([&last_words(), "wait", count]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { folder, recorder, pid: line.trim().parse().unwrap() }
    }

    fn signal(&self, signal: i32) {
        tracewing_testing::signal(self.pid.cast_unsigned(), signal);
    }

    fn pid(&self) -> String {
        self.pid.to_string()
    }

    /// Ends the program and its recording.
    fn end(mut self) -> tempfile::TempDir {
        self.signal(libc::SIGKILL);
        self.recorder.wait().unwrap();
        self.folder
    }
}

#[test]
fn a_stopped_process_and_its_dump() {
    let waiting = Waiting::start(&[], "1500");
    waiting.signal(libc::SIGSTOP);
    let (stopped, warnings) = recover(&["--pid", &waiting.pid()]);
    assert_eq!(warnings, "");
    waiting.signal(libc::SIGCONT);
    let arguments = ["-n", "3", "-e", "last:w*", "-e", "last:ad_hoc"];
    let (last, _) = recover(&[&["--pid", &waiting.pid()], &arguments[..]].concat());
    in_gdb(&["-p", &waiting.pid()], &last);
    let core = waiting.folder.path().join("core");
    let dump = format!("generate-core-file {}", core.display());
    let gdb = Command::new("gdb").args(["-q", "-nx", "-batch", "-p", &waiting.pid(), "-ex", &dump]).output();
    let from_core = match gdb {
        Ok(_) => Some(recover(&["--core", core.to_str().unwrap()]).0),
        Err(_) => {
            tracewing_testing::skip(tracewing_testing::Cause::Program("gdb"), "gdb is not installed");
            None
        }
    };
    let folder = waiting.end();
    let all = listed(&folder.path().join("t"), &[]);
    assert_eq!(stopped, all);
    assert_eq!(from_core.unwrap_or(stopped), all);
}

/// What the recorder has written is still there, as far as nothing came after it.
#[test]
fn buffers_that_a_recorder_empties() {
    let waiting = Waiting::start(&["--sub-buffers", "4", "--sub-buffer-size", "64K"], "40000");
    let (text, warnings) = recover(&["--pid", &waiting.pid()]);
    let folder = waiting.end();
    let all = listed(&folder.path().join("t"), &[]);
    assert!(!warnings.contains("skipped"), "{warnings}");
    let event = |line: &str| {
        let (stamp, rest) = line.split_once(" (+").unwrap();
        (stamp.to_owned(), rest.split_once(") ").unwrap().1.to_owned())
    };
    let recorded: BTreeSet<_> = all.lines().map(event).collect();
    assert!(text.lines().map(event).all(|event| recorded.contains(&event)));
    assert!(text.lines().count() > 2000, "{}", text.lines().count());
    assert_eq!(text.lines().last().map(event), all.lines().last().map(event));
}

/// Of a flight recorder, which has written nothing: per CPU what each thread emitted last, without a gap.
#[test]
fn a_flight_recorder() {
    const COUNT: u64 = 20_000;
    let options = ["--flight-recorder", "--sub-buffers", "4", "--sub-buffer-size", "16K"];
    let waiting = Waiting::start(&options, &COUNT.to_string());
    let (events, warnings) = recover(&["--pid", &waiting.pid(), "--format", "json", "-e", "last:number"]);
    waiting.end();
    assert_eq!(warnings, "");
    let mut numbers: BTreeMap<(u64, i64), Vec<u64>> = BTreeMap::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let key = (&event["packet_context"]["cpu_id"], &event["common_context"]["tid"]);
        let key = (key.0.as_u64().unwrap(), key.1.as_i64().unwrap());
        numbers.entry(key).or_default().push(event["payload"]["number"].as_u64().unwrap());
    }
    // Three sub-buffers of 16 KiB at least, of events of 20 bytes, 45 or so in a fourth of them.
    assert!(events.lines().count() > 1000, "{}", events.lines().count());
    let mut of_thread: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for ((_, tid), numbers) in numbers {
        assert!(numbers.is_sorted_by(|a, b| a < b), "a CPU's events of a thread are in its order");
        of_thread.entry(tid).or_default().extend(numbers);
    }
    // A thread that was on one CPU all the time that is left has no gap; that its last event is there holds
    // for the last thread at least.
    assert!(of_thread.values().any(|numbers| numbers.iter().max() == Some(&(COUNT - 1))));
}

#[test]
fn a_program_does_not_have_events_of_another_one() {
    let script = format!("{} leaf; exec {} abort 100", program("tasks").display(), last_words());
    let Some((folder, core)) = dumped(&[], &script) else { return };
    let (text, warnings) = recover(&["--core", core.to_str().unwrap()]);
    let all = listed(&folder.path().join("t"), &[]);
    let count = |text: &str, part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert!(count(&all, " tasks:") > 0, "{all}");
    assert_eq!((count(&text, " tasks:"), count(&text, " ?: "), warnings.as_str()), (0, 0, ""), "{text}");
    assert_eq!(count(&text, " last:"), count(&all, " last:"), "{text}");
    assert!(count(&text, " last:") > 0, "{text}");
}

#[derive(tracewing::Event)]
#[event(provider = "own")]
struct Own<'a> {
    number: u32,
    text: &'a str,
}

#[test]
fn a_program_that_records_itself() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let session = tracewing::Session::builder().output(&trace).start().unwrap();
    for number in 0..100 {
        tracewing::emit!(Own { number, text: "own" });
    }
    let (text, warnings) = recover(&["--pid", &std::process::id().to_string()]);
    session.stop().unwrap();
    assert_eq!((text, warnings.as_str()), (listed(&trace, &[]), ""));
}

#[test]
fn nothing_to_recover() {
    let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
    let error = refused(&["--pid", &sleeping.id().to_string()]);
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    assert!(error.contains("no buffers of tracewing found"), "{error}");
    let error = refused(&["--pid", "4194305"]); // above the largest that Linux gives
    assert!(error.contains("there is no process 4194305"), "{error}");
    let error = refused(&["--core", harness::TRACEWING]);
    assert!(error.contains("an ELF file, but not a core dump"), "{error}");
    let error = refused(&["--core", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert!(error.contains("a core dump of a 64-bit Linux program is needed"), "{error}");
    assert!(refused(&[]).contains("--core <FILE>|--pid <PID>"));
}
