//! The programs that are compared: how they are built and started, and what they have while they wait.

use super::Options;
use crate::compare::lttng::compile;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PLAIN: &str = "plain";
pub const TRACEWING: &str = "tracewing";
pub const GONE: &str = "tracewing, with the name of a socket that no longer exists";
pub const JOINED: &str = "tracewing, recorded from its start";
pub const LTTNG: &str = "LTTng-UST, no session daemon";
pub const LTTNG_DAEMON: &str = "LTTng-UST, session daemon without a session";

/// The variable by which programs find their recorder.
const SOCKET: &str = "TRACEWING_SOCKET";
/// Starts for one figure: a single one is too short to measure next to other activity.
const STARTS: u32 = 20;
/// Time after which a program that was started does nothing any more.
const SETTLED: Duration = Duration::from_millis(300);

/// A program, and where it looks for a recorder.
#[derive(Clone)]
pub struct Side {
    pub title: &'static str,
    pub program: PathBuf,
    pub socket: Option<String>,
}

/// What a waiting program has.
#[derive(Default)]
pub struct Census {
    pub threads: usize,
    pub descriptors: usize,
    /// Resident memory, shared pages in part (Pss), KiB.
    pub resident: u64,
    /// System calls from start to exit of all its threads; `None` without strace.
    pub system_calls: Option<u64>,
}

/// Builds the programs. LTTng's is left out where it is not wanted.
pub fn build(options: &Options, scratch: &Path) -> Result<Vec<Side>> {
    let source = options.program.join("idle.c");
    let text = |path: &Path| path.display().to_string();
    let flags = ["-DTRACEWING".to_owned(), "-I".to_owned(), text(&options.include), text(&options.library)];
    let libraries = ["-lpthread", "-ldl", "-lm", "-lgcc_s"].map(str::to_owned);
    let mut all = vec![(PLAIN, Vec::new()), (TRACEWING, [&flags[..], &libraries].concat())];
    if let Some(lttng) = &options.lttng {
        all.push((LTTNG, ["-DLTTNG", "-I", &text(lttng), "-llttng-ust", "-ldl"].map(str::to_owned).to_vec()));
    }
    let mut sides = Vec::new();
    for (nth, (title, flags)) in all.into_iter().enumerate() {
        let program = scratch.join(format!("idle-{nth}"));
        compile(&source, &program, &flags.iter().map(String::as_str).collect::<Vec<_>>())?;
        sides.push(Side { title, program, socket: None });
    }
    Ok(sides)
}

impl Side {
    /// The same program, which is given a socket.
    pub fn with_socket(&self, title: &'static str, socket: String) -> Self {
        Self { title, program: self.program.clone(), socket: Some(socket) }
    }

    fn set_up(&self, command: &mut Command) {
        match &self.socket {
            Some(socket) => command.env(SOCKET, socket),
            None => command.env_remove(SOCKET),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.set_up(&mut command);
        command
    }

    /// Starts it to wait for the end of its input, with what `argument` asks for.
    pub fn start(&self, argument: Option<&str>) -> Result<Child> {
        let child = self.command().args(argument).stdin(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {}", self.title))?;
        std::thread::sleep(SETTLED);
        Ok(child)
    }

    /// From its start to its exit, ms: the mean of several.
    pub fn start_to_exit(&self) -> Result<f64> {
        let begin = Instant::now();
        for _ in 0..STARTS {
            let status = self.command().status().with_context(|| format!("cannot start {}", self.title))?;
            ensure!(status.success(), "{} ended with {status}", self.title);
        }
        Ok(begin.elapsed().as_secs_f64() * 1e3 / f64::from(STARTS))
    }

    /// What it has while it waits.
    pub fn census(&self) -> Result<Census> {
        let mut child = self.start(None)?;
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let count = |folder: &str| fs::read_dir(process.join(folder)).map(|entries| entries.count());
        let (threads, descriptors) = (count("task")?, count("fd")?);
        let resident = pss(child.id());
        end(&mut child)?;
        Ok(Census { threads, descriptors, resident, system_calls: self.system_calls() })
    }

    fn system_calls(&self) -> Option<u64> {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq"]).arg(&self.program);
        self.set_up(&mut strace);
        let output = strace.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stderr);
        // A call that is shown in two parts is one.
        let calls = text.lines().filter(|line| line.contains('(') && !line.contains(" resumed>"));
        Some(calls.count() as u64)
    }
}

/// Ends a program that waits for the end of its input.
pub fn end(child: &mut Child) -> Result<()> {
    drop(child.stdin.take());
    let status = child.wait()?;
    ensure!(status.success(), "a program ended with {status}");
    Ok(())
}

/// Resident memory of a process, shared pages in part, KiB; 0 where it cannot be read.
pub fn pss(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
