//! A worker process that measures on demand: a line `VARIANT COUNT` to its standard input makes it run COUNT times what
//! VARIANT names, and it answers with the nanoseconds of CPU time that the whole loop took.
//!
//! Both sides of a comparison speak this protocol, so that one loop can take turns between them.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// A running worker.
pub struct Worker {
    name: String,
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker. Anything it prints to standard error passes through.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let orders = child.stdin.take().context("the worker has no standard input")?;
        let answers = BufReader::new(child.stdout.take().context("the worker has no standard output")?);
        Ok(Self { name: name.to_owned(), child, orders, answers })
    }

    /// Runs `count` times what `variant` names; gives nanoseconds for each.
    pub fn measure(&mut self, variant: &str, count: u64) -> Result<f64> {
        let whole = self.order(variant, count).with_context(|| format!("worker {}", self.name))?;
        Ok(whole / count as f64)
    }

    fn order(&mut self, variant: &str, count: u64) -> Result<f64> {
        writeln!(self.orders, "{variant} {count}").context("it is gone")?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            bail!("it ended without an answer to `{variant}`");
        }
        answer.trim().parse().with_context(|| format!("it answered `{}` to `{variant}`", answer.trim()))
    }

    /// Closes its input, at which it ends; passes on what else it prints.
    pub fn finish(mut self) -> Result<ExitStatus> {
        drop(self.orders);
        std::io::copy(&mut self.answers, &mut std::io::stderr())?;
        Ok(self.child.wait()?)
    }
}

/// The CPU on which everything is measured: the last that this process may use, which leaves the first ones, where
/// most interrupts go, to others.
pub fn measuring_cpu() -> Result<usize> {
    let allowed = sched_getaffinity(None).context("cannot ask for the allowed CPUs")?;
    (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).context("no CPU is allowed")
}

/// Confines the calling thread, and what it starts from now on, to one CPU. Gives what was allowed before.
pub fn pin(cpu: usize) -> Result<CpuSet> {
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot move to CPU {cpu}"))?;
    Ok(before)
}

/// Does something while confined to one CPU; a process started there stays there.
pub fn pinned<T>(cpu: usize, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = pin(cpu)?;
    let outcome = action();
    sched_setaffinity(None, &before)?;
    outcome
}
