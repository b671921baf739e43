//! A program that runs before it is recorded (`crates/tracewing/tests/programs/resident.rs`), and a
//! recorder that attaches to it.

use crate::harness::{self, Printed, tracewing};
use crate::recorded;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use tracewing_testing::{wait_until, with_default_signals};

pub static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let examples = ["--example", "resident", "--example", "plugin"];
    recorded::build(&[&["-p", "tracewing"], &examples[..]].concat()).join("examples/resident")
});

/// It is killed when dropped.
pub struct Resident {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub pid: u32,
}

impl Resident {
    pub fn start() -> Self {
        Self::of(&mut Command::new(&*PROGRAM))
    }

    /// Under what a command does before it executes the program in its own process.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let pid = child.id();
        let mut this = Self { child, input, output, pid };
        assert_eq!(this.hear(), "ready");
        this
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            panic!("the program has ended: {}", self.child.wait().unwrap());
        }
        line.trim_end().to_owned()
    }

    pub fn order(&mut self, order: &str) -> String {
        writeln!(self.input, "{order}").unwrap();
        self.hear()
    }

    /// Ends it, by itself.
    pub fn end(mut self) {
        drop(std::mem::replace(&mut self.input, {
            let mut cat = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
            let input = cat.stdin.take().unwrap();
            cat.wait().unwrap();
            input
        }));
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Its threads, and its descriptors with what they are.
    pub fn state(&self) -> (usize, Vec<String>) {
        let folder = |name: &str| std::fs::read_dir(format!("/proc/{}/{name}", self.pid)).unwrap().flatten();
        let mut files: Vec<String> = folder("fd")
            .map(|entry| {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                format!("{:?} {}", entry.file_name(), target.display())
            })
            .collect();
        files.sort();
        (folder("task").count(), files)
    }

    /// Its mappings: how many, and how many of them are buffers.
    pub fn mappings(&self) -> (usize, usize) {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap();
        (maps.lines().count(), maps.lines().filter(|line| line.contains("memfd:")).count())
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A recorder of it, without the kernel's events.
pub struct Recorder {
    child: Child,
    trace: PathBuf,
}

impl Recorder {
    /// Starts one, and waits until the process is recorded, by as many copies of tracewing as that.
    pub fn start(trace: &Path, pid: u32, options: &[&str], copies: usize) -> Self {
        let mut this = Self::spawn(trace, pid, options);
        this.wait(pid, copies);
        this
    }

    /// Waits until that many agents have begun in the process.
    pub fn wait_for_agents(&mut self, pid: u32, copies: usize) {
        wait_until("the process is recorded", || {
            assert!(self.child.try_wait().unwrap().is_none(), "the recorder has ended");
            agents(pid) >= copies
        });
    }

    /// Waits until the process is recorded, by as many copies of tracewing as that.
    pub fn wait(&mut self, pid: u32, copies: usize) {
        self.wait_for_agents(pid, copies);
        // The recorder answers once it knows all classes.
        let recorder = self.child.id().to_string();
        wait_until("the recorder has classes", || {
            let rules = harness::run(&["rules", &recorder]);
            let is_on =
                !rules.stdout.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"0 event classes"));
            rules.status.success() && is_on && agents_sleep(pid)
        });
    }

    pub fn spawn(trace: &Path, pid: u32, options: &[&str]) -> Self {
        Self::of(trace, &[&["--no-kernel", "--pid", &pid.to_string()], options].concat())
    }

    /// One that has these options, and says itself what it records.
    pub fn of(trace: &Path, options: &[&str]) -> Self {
        let mut command = tracewing();
        command.args(["record", "--format", "json", "-o"]).arg(trace).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        with_default_signals(&mut command);
        Self { child: command.spawn().unwrap(), trace: trace.to_owned() }
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Ends it, and gives what it has said.
    pub fn stop(self) -> String {
        tracewing_testing::signal(self.child.id(), libc::SIGINT);
        self.ended()
    }

    pub fn ended(self) -> String {
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.notes());
        output.notes()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn trace(&self) -> &Path {
        &self.trace
    }
}

/// Threads of the agent's in a process: of each, whether it sleeps in `read`.
fn agents_in_read(pid: u32) -> Vec<bool> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let read = |task: &std::fs::DirEntry, name| std::fs::read_to_string(task.path().join(name));
    let agents = tasks.filter(|task| read(task, "comm").is_ok_and(|name| name == "tracewing\n"));
    let calls = agents.map(|agent| read(&agent, "syscall").unwrap_or_default());
    calls.map(|call| call.split(' ').next() == Some(&libc::SYS_read.to_string())).collect()
}

/// Threads of the agent's in a process.
pub fn agents(pid: u32) -> usize {
    agents_in_read(pid).len()
}

/// Whether all of them wait for their recorder's next word.
fn agents_sleep(pid: u32) -> bool {
    agents_in_read(pid).into_iter().all(|is_in_read| is_in_read)
}

/// Whether one of them waits for its recorder, which has ended.
pub fn waits_in_vain(pid: u32) -> bool {
    agents_in_read(pid).contains(&true)
}

/// Whether the places of an event in a process are on, which an agent does once its recorder has granted the
/// event's class.
pub fn is_on(pid: u32, event: &str) -> bool {
    let sites = harness::run(&["sites", "--format", "csv", "-e", event, &pid.to_string()]);
    assert!(sites.status.success(), "{}", sites.notes());
    sites.stdout.windows(4).any(|cell| cell == b",on,")
}

/// How many events of a name a trace has.
pub fn count(trace: &Path, name: &str) -> usize {
    let output = harness::run(&["list", "--format", "csv", "-e", name, trace.to_str().unwrap()]);
    assert!(output.status.success(), "{}", output.notes());
    output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count().saturating_sub(1)
}
