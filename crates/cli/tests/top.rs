//! `tracewing top`: windows are what other commands say of the same time; a terminal is as before, however it
//! ends; it ends with the recording.

mod harness;
mod recorded;

use harness::{Printed, RunExt, traceable};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tracewing_testing::{OnTerminal, is_root, signal, wait_until};

/// What a terminal gets when it is taken, and when it is given back.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// A recording of a shell that works and sleeps by turns, until it is killed or dropped.
struct Recorded {
    folder: tempfile::TempDir,
    recorder: Child,
}

/// What the shell does.
const WORK: &str = "while test ! -e stop; do sleep 0.01; : $((n += 1)); done";

impl Recorded {
    fn new(options: &[&str]) -> Self {
        Self::of(options, WORK)
    }

    fn of(options: &[&str], work: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = harness::tracewing();
        command.current_dir(folder.path()).args(["record", "-q", "-o", "t"]).args(options);
        tracewing_testing::with_default_signals(&mut command);
        command.args(["--", "sh", "-c", work]);
        let recorder = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let this = Self { folder, recorder };
        wait_until("the recording begins", || this.top(&["--for", "0"]).output().unwrap().status.success());
        this
    }

    fn top(&self, options: &[&str]) -> Command {
        let mut command = harness::tracewing();
        command.args(["top", &self.recorder.id().to_string()]).args(options).env("TERM", "xterm");
        tracewing_testing::with_default_signals(&mut command);
        command
    }

    /// What `top` prints until so many of its lines contain `text`; then it is interrupted.
    fn printed(&self, options: &[&str], count: usize, text: &str) -> String {
        let mut top = self.top(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(top.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut printed = Vec::new();
        while printed.iter().filter(|line: &&String| line.contains(text)).count() < count {
            printed.push(lines.next().expect("it ended early"));
        }
        signal(top.id(), libc::SIGINT);
        printed.extend(lines);
        assert_eq!(top.wait().unwrap().code(), Some(130));
        printed.join("\n")
    }

    /// Ends it, and gives its folder.
    fn ends(&mut self) -> std::path::PathBuf {
        fs::write(self.folder.path().join("stop"), "").unwrap();
        assert!(self.recorder.wait().unwrap().success());
        self.folder.path().join("t")
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.path().join("stop"), "");
        let _ = self.recorder.wait();
    }
}

/// A time as `--from` takes it.
fn seconds(ns: &Value, more: u64) -> String {
    let ns = ns.as_u64().unwrap() + more;
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn by_tid(rows: &Value) -> BTreeMap<i64, &Value> {
    rows.as_array().unwrap().iter().map(|row| (row["tid"].as_i64().unwrap(), row)).collect()
}

/// What a thread's time consists of.
const STATES: [&str; 4] = ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"];

/// The threads of a window, and those of the same time in the complete recording.
fn compare(window: &Value, trace: &Path) {
    let (from, to) = (seconds(&window["begin_ns"], 0), seconds(&window["end_ns"], 0));
    let whole = harness::json(trace, &["threads", "--from", &from, "--to", &to]);
    let (now, then) = (by_tid(&window["threads"]), by_tid(&whole["threads"]));
    // What happens just when it begins is in the window before, and in a range that begins then.
    let at_begin: Vec<_> = then.keys().filter(|tid| !now.contains_key(tid)).collect();
    for row in at_begin.iter().map(|tid| then[tid]) {
        assert!(STATES.iter().all(|name| row[name] == 0), "{row} is not in {window}");
    }
    assert_eq!(now.len() + at_begin.len(), then.len(), "{whole} has fewer than {window}");
    for (tid, row) in now {
        for name in ["name", "user_ns", "system_ns", "blocked_on"].iter().chain(&STATES) {
            assert_eq!(row[name], then[&tid][name], "{name} of {row} and {}", then[&tid]);
        }
        let [calls, all] = [row, then[&tid]].map(|row| row["system_calls"].as_u64().unwrap());
        assert!((all.saturating_sub(1)..=all).contains(&calls), "{row} and {}", then[&tid]);
    }
}

#[test]
fn a_window_is_what_other_commands_say_of_its_time() {
    if !traceable() {
        return;
    }
    recorded::build(&["-p", "tracewing-preload"]);
    // Where the recorder gets no turn for long, what it writes late is counted as lost in the window.
    let compared = (0..10).map(|_| windows_until_a_loss()).find(|count| *count >= 3);
    assert!(compared.is_some(), "something is lost in all");
}

/// Compares the windows of a recording; returns the number of those before the first one with losses.
fn windows_until_a_loss() -> usize {
    let mut recorded = Recorded::new(&["--locks"]);
    let output = recorded.printed(&["--interval", "0.4", "--format", "json"], 3, "nanosleep");
    let mut windows: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let trace = recorded.ends();
    assert!(windows.windows(2).all(|two| two[0]["end_ns"] == two[1]["begin_ns"]), "{output}");
    let whole = windows.iter().take_while(|window| window["lost_events"] == 0).count();
    windows.truncate(whole);
    let sleep = |row: &Value| row["activity"].as_str().is_some_and(|call| call.contains("nanosleep"));
    for window in &windows {
        compare(window, &trace);
        assert!(window["late_ns"].is_u64(), "{window}");
        assert!(["tasks", "locks"].iter().all(|table| window[table].is_array()), "{window}");
    }
    let slept = windows.iter().any(|window| window["calls"].as_array().unwrap().iter().any(sleep));
    assert!(slept || whole < 3, "{output}");
    whole
}

#[test]
fn keys_choose_what_is_shown_and_the_terminal_is_as_before() {
    if !traceable() {
        return;
    }
    let mut recorded = Recorded::new(&[]);
    let mut terminal = OnTerminal::start(recorded.top(&["--interval", "0.3"])).unwrap();
    terminal.wait_for("[1 threads]");
    terminal.wait_for("running ms");
    assert!(!terminal.is_as_before());
    terminal.types("4");
    terminal.wait_for("[4 system calls]");
    terminal.wait_for("activity");
    terminal.types("2");
    terminal.wait_for("no event of a task");
    terminal.types("1\u{1b}[D");
    terminal.wait_for("order: polls");
    // As after Ctrl-Z in a shell.
    signal(terminal.child.id(), libc::SIGTSTP);
    terminal.wait_for(LEAVE);
    wait_until("it stops", || state(terminal.child.id()) == Some('T'));
    assert!(terminal.is_as_before());
    signal(terminal.child.id(), libc::SIGCONT);
    terminal.wait_for(ENTER);
    terminal.wait_for("running ms");
    terminal.types("q");
    assert!(terminal.ends().success());
    assert!(terminal.is_as_before() && ends_with_leave(&terminal), "{:?}", printed(&terminal));
    for (ending, status) in [(libc::SIGINT, Some(130)), (libc::SIGTERM, Some(130)), (libc::SIGHUP, Some(0))] {
        let mut terminal = OnTerminal::start(recorded.top(&[])).unwrap();
        terminal.wait_for("running ms");
        signal(terminal.child.id(), ending);
        assert_eq!(terminal.ends().code(), status, "signal {ending}");
        assert!(terminal.is_as_before() && ends_with_leave(&terminal), "{:?}", printed(&terminal));
    }
    let mut terminal = OnTerminal::start(recorded.top(&[])).unwrap();
    terminal.wait_for("running ms");
    recorded.ends();
    assert!(terminal.ends().success());
    assert!(terminal.is_as_before() && printed(&terminal).contains("the recording has ended"));
}

/// Reads some million system calls, which takes longer than it takes to press a key.
#[test]
fn a_key_ends_it_while_it_reads() {
    if !traceable() {
        return;
    }
    let work = format!("dd if=/dev/zero of=/dev/null bs=1 count=1000000 2> done; {WORK}");
    let mut recorded = Recorded::of(&[], &work);
    let is_done =
        || fs::read_to_string(recorded.folder.path().join("done")).is_ok_and(|said| said.contains("copied"));
    wait_until("much is recorded", is_done);
    let mut terminal = OnTerminal::start(recorded.top(&[])).unwrap();
    terminal.wait_for("reading what was recorded so far");
    // What was written less than 0.4 s ago when `top` sees it first waits for events of other CPUs.
    std::thread::sleep(Duration::from_millis(800));
    terminal.types("q");
    assert!(terminal.ends().success());
    assert!(terminal.is_as_before() && ends_with_leave(&terminal), "{:?}", printed(&terminal));
    assert!(!printed(&terminal).contains("running ms"), "it had read all: {:?}", printed(&terminal));
    recorded.ends();
}

fn printed(terminal: &OnTerminal) -> String {
    String::from_utf8_lossy(&terminal.printed).into_owned()
}

/// Whether the screen was given back after the last time that it was taken.
fn ends_with_leave(terminal: &OnTerminal) -> bool {
    let text = printed(terminal);
    text.rfind(LEAVE) > text.rfind(ENTER)
}

fn state(process: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn without_a_terminal_tables_follow_each_other() {
    if !traceable() {
        return;
    }
    let recorded = Recorded::new(&[]);
    let text = recorded.printed(&["--interval", "0.3", "-n", "2", "--sort", "blocked"], 3, "lost: ");
    let tables: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert!(tables.len() >= 2, "{text}");
    for table in tables {
        // Of a thread at least, or that there is none.
        assert!(table.contains("lost: ") && (2..=4).contains(&table.lines().count()), "{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn that_nothing_was_recorded_is_said() {
    let mut recorded = Recorded::new(&["--no-kernel"]);
    let top = recorded.top(&["--for", "0.5"]).ran();
    assert_eq!((top.text(), top.status.code()), (String::new(), Some(0)), "{}", top.notes());
    assert!(top.notes().contains("no event has been recorded so far"), "{}", top.notes());
    recorded.ends();
}

#[test]
fn only_chosen_processes_are_shown() {
    if !traceable() {
        return;
    }
    let recorded = Recorded::new(&[]);
    let windows = |process: &str, text: &str| {
        let options = ["--interval", "0.2", "--format", "json", "--process", process];
        let printed = recorded.printed(&options, 2, text);
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    for window in windows("s?", "\"sh\"") {
        // Children of the shell have its name until they execute their program.
        for table in ["threads", "calls"] {
            assert!(window[table].as_array().unwrap().iter().all(|row| row["name"] == "sh"), "{window}");
        }
    }
    for window in windows("other", "threads") {
        assert!(["threads", "calls"].iter().all(|table| window[table] == Value::Array(vec![])), "{window}");
    }
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let top = |options: &[&str]| harness::run(&[&["top"], options].concat()).notes();
    assert!(top(&["--sort", "nothing"]).contains("nothing"));
    assert!(top(&["--interval", "0.01"]).contains("--interval is too short"));
    let folder = tempfile::tempdir().unwrap();
    let mut flight = harness::tracewing();
    flight.current_dir(folder.path()).args([
        "record",
        "-q",
        "--no-kernel",
        "--flight-recorder",
        "-o",
        "t",
        "--",
    ]);
    let mut flight = flight.args(["sleep", "60"]).spawn().unwrap();
    let name = flight.id().to_string();
    wait_until("the flight recorder answers", || {
        top(&[&name]).contains("a flight recorder writes no events")
    });
    if is_root() && tracewing_testing::installed(&["setpriv"]) {
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", harness::TRACEWING, "top", &name]);
        let said = other.env("XDG_CONFIG_HOME", "/nonexistent").ran().notes();
        assert!(said.contains("no recording is running"), "{said}");
    }
    signal(flight.id(), libc::SIGTERM);
    flight.wait().unwrap();
}
