//! What the tests against the running kernel share: skipping, programs that wait to be traced, reading traces
//! with babeltrace2.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tracewing_ctf::model::ClockClass;
use tracewing_files::Dir;
use tracewing_kernel::{Error, KernelClock, KernelRecorder, Options, Scope, Tracefs, privileges};

/// Whether the kernel can be traced here; says once per test why not.
pub fn traceable() -> bool {
    tracewing_testing::traceable(privileges())
}

/// Options for a recording of some events.
pub fn options(scope: Scope, globs: &[&str]) -> Options {
    Options {
        globs: globs.iter().map(|glob| (*glob).to_owned()).collect(),
        probes: Vec::new(),
        only_probes: false,
        scope,
        clock: KernelClock::Mono,
        clock_class: ClockClass::new("monotonic", 1_000_000_000),
        uuid: *b"kernel-test-uuid",
        buffer_kib: 4096,
        sub_buffer_kib: None,
        overwrites: false,
        env: Vec::new(),
    }
}

/// Instances of this process with buffers of about this size, which other tests of the process do not have.
pub fn instances_with(buffer_kib: u32) -> Vec<PathBuf> {
    let instances = Tracefs::open().unwrap().root().join("instances");
    let prefix = format!("tracewing-{}-", std::process::id());
    let paths = std::fs::read_dir(instances).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &PathBuf| {
        let size = std::fs::read_to_string(path.join("buffer_size_kb")).unwrap_or_default();
        let has_size = size.trim().parse::<u32>().is_ok_and(|kib| kib.abs_diff(buffer_kib) <= 4);
        has_size && path.file_name().unwrap().to_str().unwrap().starts_with(&prefix)
    };
    paths.filter(is_meant).collect()
}

/// A role of a test binary that starts itself: set in the environment of the started one.
pub const ROLE: &str = "TRACEWING_KERNEL_TEST_ROLE";

/// A started copy of this test binary that plays one of its roles, talked to line by line.
pub struct Actor {
    pub child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Actor {
    /// Starts the test function `role` of this binary, which must do nothing unless [`ROLE`] is its name.
    pub fn start(role: &str, argument: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", role, "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env("TRACEWING_KERNEL_TEST_ARGUMENT", argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for the line `KEY …` and gives what follows the key.
    pub fn expect(&mut self, key: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the actor ended without `{key}`");
            // The test harness prints on the same lines.
            if let Some(at) = line.find(&format!("@{key} ")) {
                return line[at + key.len() + 2..].trim().to_owned();
            }
        }
    }

    pub fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// In an actor: its argument if `role` is to be played.
pub fn role(role: &str) -> Option<std::path::PathBuf> {
    (std::env::var(ROLE).is_ok_and(|wanted| wanted == role))
        .then(|| std::env::var_os("TRACEWING_KERNEL_TEST_ARGUMENT").unwrap_or_default().into())
}

/// In an actor: says `KEY text`.
pub fn say(key: &str, text: impl std::fmt::Display) {
    println!("@{key} {text}");
}

/// In an actor: waits for [`Actor::go`].
pub fn gate() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// One event as babeltrace2 prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub stamp: u64,
    pub name: String,
    pub cpu: u32,
    pub tid: i32,
    pub fields: BTreeMap<String, String>,
}

impl Line {
    pub fn field(&self, name: &str) -> &str {
        self.fields
            .get(name)
            .unwrap_or_else(|| panic!("{} has no field {name}: {:?}", self.name, self.fields))
    }

    pub fn number(&self, name: &str) -> i128 {
        number(self.field(name)).unwrap_or_else(|| panic!("{name} of {self:?} is no number"))
    }
}

/// A number as babeltrace2 prints it.
pub fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads a trace with babeltrace2, which must have nothing to complain about. `None`, and says so, where it
/// is not installed.
pub fn babeltrace(dir: &Path) -> Option<Vec<Line>> {
    let (lines, complaints) = babeltrace_loud(dir)?;
    assert_eq!(complaints, "");
    Some(lines)
}

/// The same, with what it said on stderr.
pub fn babeltrace_loud(dir: &Path) -> Option<(Vec<Line>, String)> {
    let output = match Command::new("babeltrace2").args(["--clock-cycles", "--no-delta"]).arg(dir).output() {
        Ok(output) => output,
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program("babeltrace2"),
                format_args!("babeltrace2: {error}"),
            );
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("cannot take apart: {line}")));
    Some((lines.collect(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn parse(line: &str) -> Option<Line> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (head, rest) = rest.split_once(": { cpu_id = ")?;
    let name = head.rsplit(' ').next()?.to_owned();
    let (cpu, rest) = rest.split_once(" }, { flags = ")?;
    let (_, rest) = rest.split_once(", tid = ")?;
    let (tid, rest) = rest.split_once(" }, { ")?;
    let mut fields = BTreeMap::new();
    let mut rest = rest.strip_suffix(" }").or_else(|| rest.strip_suffix('}'))?;
    while let Some((name, value)) = rest.split_once(" = ") {
        let end = value_end(value);
        fields.insert(name.to_owned(), value[..end].to_owned());
        rest = value[end..].strip_prefix(", ").unwrap_or_default();
    }
    Some(Line { stamp: stamp.parse().ok()?, name, cpu: cpu.parse().ok()?, tid: tid.parse().ok()?, fields })
}

/// Where a value that may be quoted or nested ends.
fn value_end(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// Begins a recording into the folder `dir`, or where that is there, into `kernel` in it.
pub fn start_in(dir: &Path, options: &Options) -> Result<KernelRecorder, Error> {
    let (parent, name) = match dir.is_dir() {
        true => (dir, "kernel"),
        false => (dir.parent().unwrap(), dir.file_name().unwrap().to_str().unwrap()),
    };
    KernelRecorder::start(&Dir::parent(parent).unwrap(), name, options)
}
