//! What the tests of recordings with kernel events share: skipping, recording, taking listings apart, and a
//! check that a recorder leaves nothing in tracefs.

#![allow(dead_code, reason = "each test file uses a part of this")]

use crate::harness::{Printed, RunExt};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The command under test, in a process group of its own: what a test sends to the recorder must not reach
/// the test.
pub fn tracewing(folder: &Path) -> Command {
    let mut command = crate::harness::tracewing();
    command.current_dir(folder).process_group(0).stdin(Stdio::null());
    command
}

/// `tracewing record --format json -o t OPTIONS -- COMMAND` in `folder`, to be started.
pub fn record(folder: &Path, options: &[&str], command: &[&str]) -> Command {
    let mut record = tracewing(folder);
    record.args(["record", "--format", "json", "-o", "t"]).args(options).arg("--").args(command);
    record.stdout(Stdio::piped()).stderr(Stdio::piped());
    tracewing_testing::with_default_signals(&mut record);
    record
}

/// The last line that a recorder printed: its summary.
pub fn summary(output: &Output) -> serde_json::Value {
    let stderr = output.notes();
    let line = stderr.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// Sends a signal as a shell would: `id` is a process, or with a minus sign a process group.
pub fn signal(name: &str, id: i64) {
    let status = Command::new("kill").args(["-s", name, "--", &id.to_string()]).status().unwrap();
    assert!(status.success(), "kill -s {name} {id}");
}

/// What `tracewing list` prints of a trace. Where babeltrace2 is installed it must print the same; gives what
/// it says on stderr.
pub fn listing(trace: &Path) -> (String, String) {
    let list = |program: &str, arguments: &[&str]| -> Output {
        Command::new(program).args(arguments).args(["--clock-cycles", "--no-delta"]).arg(trace).ran()
    };
    let ours = list(crate::harness::TRACEWING, &["list"]);
    assert!(ours.status.success(), "{}", ours.notes());
    let mut warnings = String::new();
    if tracewing_testing::installed(&["babeltrace2"]) {
        let theirs = list("babeltrace2", &[]);
        warnings = theirs.notes();
        assert!(theirs.status.success(), "{warnings}");
        assert!(theirs.stdout == ours.stdout, "babeltrace2 and tracewing list differ");
    }
    (ours.text(), warnings)
}

/// One line of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    pub stamp: u64,
    pub name: &'a str,
    pub cpu: u32,
    pub tid: i32,
    /// `name = value, …`
    pub fields: &'a str,
}

impl<'a> Event<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (stamp, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (head, rest) = rest.split_once(": { cpu_id = ")?;
        let (cpu, rest) = rest.split_once(" }, { ")?;
        let (context, rest) = rest.split_once(" }, {")?;
        // Those of the kernel have flags in front.
        let (_, tid) = context.rsplit_once("tid = ")?;
        Some(Self {
            stamp: stamp.parse().ok()?,
            name: head.rsplit(' ').next()?,
            cpu: cpu.parse().ok()?,
            tid: tid.parse().ok()?,
            fields: rest.strip_suffix('}')?,
        })
    }

    /// The text of a field that is no string, or of a string without its quotes.
    pub fn field(&self, name: &str) -> &'a str {
        let value = self.fields.match_indices(name).find_map(|(at, _)| {
            let value = self.fields[at + name.len()..].strip_prefix(" = ")?;
            self.fields[..at].ends_with(' ').then_some(value)
        });
        let value = value.unwrap_or_else(|| panic!("no field {name}: {self:?}"));
        match value.strip_prefix('"') {
            Some(text) => text.split_once('"').unwrap().0,
            None => value.split([',', ' ']).next().unwrap(),
        }
    }

    pub fn number(&self, name: &str) -> i64 {
        self.field(name).parse().unwrap_or_else(|_| panic!("{name} is no number: {self:?}"))
    }

    /// Whether it is an event of the kernel's: those of programs have a provider in their name.
    pub fn is_kernels(&self) -> bool {
        !self.name.contains(':')
    }
}

/// The events of a listing.
pub fn events(listing: &str) -> Vec<Event<'_>> {
    listing
        .lines()
        .map(|line| Event::parse(line).unwrap_or_else(|| panic!("cannot take apart: {line}")))
        .collect()
}

/// Instances in tracefs of a recorder.
pub fn instances_of(recorder: u32) -> Vec<String> {
    let root = tracewing_kernel::Tracefs::open().unwrap().root().join("instances");
    let names = fs::read_dir(root).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("tracewing-{recorder}-"))).collect()
}

/// Waits for a recorder and checks that nothing of it is left in tracefs.
pub fn end(recorder: Child) -> Output {
    let id = recorder.id();
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(instances_of(id), [""; 0], "not removed");
    output
}

/// A role of a test binary that starts itself, see [`role_is`].
const ROLE: &str = "TRACEWING_KERNEL_TEST_ROLE";

/// Makes a command that starts this test binary play a role: the test function of that name.
pub fn play<'c>(command: &'c mut Command, role: &str) -> &'c mut Command {
    command.env(ROLE, role)
}

/// The command line of this binary for a role.
pub fn player(role: &str) -> Vec<String> {
    let binary = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    [&binary, role, "--exact", "--test-threads", "1"].map(str::to_owned).to_vec()
}

/// Whether this process was started to play the role.
pub fn role_is(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|wanted| wanted == role)
}
