//! A program that waits (the example `target`), and attempts to attach to it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use tracewing_attach::{Called, Place, Refusal, SystemCall, Target};
use tracewing_units::Pid;

pub static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let package = ["--package", "tracewing-attach", "--example", "target"];
    tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &package).join("examples/target")
});

pub const CLONE3: [SystemCall; 1] =
    [SystemCall { name: "clone3", number: libc::SYS_clone3, arguments: [0; 6], without: None }];

/// A program that waits.
pub struct Waiting {
    child: Child,
    output: BufReader<ChildStdout>,
    /// What it reads from.
    input: Option<ChildStdin>,
    pub pid: Pid,
    pub entry: u64,
}

/// What a program says of its wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Waited {
    pub result: i64,
    pub error: i32,
    pub milliseconds: u64,
    pub calls: u64,
}

impl Waiting {
    pub fn new(way: &str, milliseconds: u64) -> Self {
        Self::spawn(Command::new(&*PROGRAM).args([way, &milliseconds.to_string()]))
    }

    /// One that waits by this system call, again and again.
    pub fn by_call(name: &str, milliseconds: u64) -> Self {
        Self::spawn(Command::new(&*PROGRAM).args(["calls", &milliseconds.to_string(), name]))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (pid, entry) = line.trim().split_once(' ').unwrap();
        let (pid, entry) = (pid.parse().unwrap(), entry.parse().unwrap());
        let input = child.stdin.take();
        Self { child, output, input, pid, entry }
    }

    pub fn attach(&self) -> Result<Called, Refusal> {
        Target::open(self.pid)?.call(
            Place { entry: self.entry, word: None },
            &CLONE3,
            Duration::from_secs(30),
        )
    }

    /// An attempt that does not wait for a thread.
    pub fn attach_at_once(&self) -> Result<Called, Refusal> {
        Target::open(self.pid)?.call(Place { entry: self.entry, word: None }, &CLONE3, Duration::ZERO)
    }

    pub fn is_waiting(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn end(mut self) -> Waited {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {text}");
        let numbers: Vec<i64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [result, error, milliseconds, calls] = numbers[..] else { panic!("{text}") };
        Waited { result, error: error as i32, milliseconds: milliseconds as u64, calls: calls as u64 }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
