//! Recordings of processes that run already, which were not built for it: `--pid`, `--name`, `--cgroup`.

#[path = "../harness/mod.rs"]
mod harness;

mod ends;
mod refused;
mod selected;
mod target;
mod unmodified;

use harness::{Printed, RunExt, tracewing};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use target::Target;
use tracewing_testing::{wait_until, with_default_signals};

/// A recorder of processes that run, into a folder `t`.
struct Attached {
    child: Child,
    folder: PathBuf,
}

impl Attached {
    /// Starts it, and waits until it records.
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut command = recorder(folder, options);
        let mut this = Self { child: command.spawn().unwrap(), folder: folder.to_owned() };
        let pid = this.child.id().to_string();
        wait_until("the recorder answers", || {
            // It may have refused.
            this.child.try_wait().unwrap().is_some() || harness::run(&["rules", &pid]).status.success()
        });
        this
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends by itself.
    fn ended(mut self) -> Recording {
        let begin = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                self.child.kill().unwrap();
                panic!("the recorder does not end: {}", self.child.wait_with_output().unwrap().notes());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = self.child.wait_with_output().unwrap();
        Recording { trace: self.folder.join("t"), output }
    }

    fn stop(self) -> Recording {
        tracewing_testing::signal(self.child.id(), libc::SIGINT);
        self.ended()
    }
}

/// `tracewing record`, with a summary in JSON.
fn recorder(folder: &Path, options: &[&str]) -> Command {
    let mut command = tracewing();
    command.current_dir(folder).args(["record", "--format", "json", "-o", "t"]).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    with_default_signals(&mut command);
    command
}

/// A recording that has ended.
struct Recording {
    trace: PathBuf,
    output: Output,
}

impl Recording {
    fn summary(&self) -> Value {
        assert!(self.output.status.success(), "{}", self.output.notes());
        serde_json::from_str(self.output.notes().lines().next_back().unwrap()).unwrap()
    }

    /// The rows of `threads`.
    fn threads(&self) -> Vec<Value> {
        self.summary();
        harness::json(&self.trace, &["threads"])["threads"].as_array().unwrap().clone()
    }

    /// The names of the threads of a process.
    fn names(&self, pid: u32) -> Vec<String> {
        let rows = self.threads().into_iter().filter(|row| row["process"] == pid);
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.threads().iter().any(|row| row["name"] == name)
    }

    /// The processes that it says it has attached to.
    fn attached(&self) -> Vec<u64> {
        let summary = self.summary();
        let attached = summary["attached"].as_array().cloned().unwrap_or_default();
        attached.iter().map(|process| process["pid"].as_u64().unwrap()).collect()
    }
}

/// What is refused, in its words: nothing is left of a recording that did not begin.
fn refusal(folder: &Path, options: &[&str]) -> String {
    let output = recorder(folder, options).ran();
    assert!(!output.status.success(), "{}", output.notes());
    assert!(!folder.join("t").exists(), "{}", output.notes());
    output.notes()
}

/// A number of a row.
fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}
