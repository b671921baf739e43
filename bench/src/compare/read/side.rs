//! One side of the comparison: a process that reads a trace, how long it takes, and how much memory.

use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a run took.
#[derive(Clone, Copy)]
pub struct Took {
    /// On the clock.
    pub seconds: f64,
    /// Largest resident memory of the process, MiB.
    pub peak: f64,
}

/// Runs a command to its end, its output thrown away.
pub fn run(command: &mut Command) -> Result<Took> {
    let begin = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let mut status = 0;
    // SAFETY: all zeros are an rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are of this function's own variables; the child is ours, and nothing else waits
    // for it.
    let ended = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(ended == child.id() as libc::pid_t && status == 0, "{command:?} failed");
    Ok(Took { seconds, peak: usage.ru_maxrss as f64 / 1024.0 })
}
