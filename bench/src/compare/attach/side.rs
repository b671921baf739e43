//! The programs that are compared: how they are built and started, and what they have while they wait.

use super::Options;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PLAIN: &str = "plain";
pub const TRACEWING: &str = "tracewing";
pub const LTTNG: &str = "LTTng-UST, no session daemon";
pub const LTTNG_DAEMON: &str = "LTTng-UST, session daemon without a session";

/// Starts for one figure: a single one is shorter than what the system does beside it.
const STARTS: u32 = 20;
/// Time after which a program that was started does nothing any more.
const SETTLED: Duration = Duration::from_millis(300);

/// A program.
pub struct Side {
    pub title: &'static str,
    pub program: PathBuf,
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
    let mut all = vec![
        (PLAIN, vec![]),
        (
            TRACEWING,
            vec!["-DTRACEWING".into(), "-I".into(), text(&options.include), text(&options.library)]
                .into_iter()
                .chain(["-lpthread", "-ldl", "-lm", "-lgcc_s"].map(str::to_owned))
                .collect(),
        ),
    ];
    if let Some(lttng) = &options.lttng {
        let flags = ["-DLTTNG".into(), "-I".into(), text(lttng), "-llttng-ust".into(), "-ldl".into()];
        all.push((LTTNG, flags.to_vec()));
    }
    let mut sides = Vec::new();
    for (nth, (title, flags)) in all.into_iter().enumerate() {
        let program = scratch.join(format!("idle-{nth}"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(&source).args(&flags);
        let output = gcc.output().context("cannot start gcc")?;
        if !output.status.success() {
            bail!("gcc cannot build {}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        }
        sides.push(Side { title, program });
    }
    Ok(sides)
}

impl Side {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
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
        strace.args(["-f", "-qq"]).arg(&self.program).stdin(Stdio::null());
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
