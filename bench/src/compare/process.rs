//! A worker process that measures on demand: each line on its standard input is an order, `NAME NUMBER` and
//! what else the order needs, and each is answered by one line. The common order is `VARIANT COUNT`: run
//! COUNT times what VARIANT names; the answer is the nanoseconds of CPU time that the whole loop took.
//!
//! All sides of a comparison speak this protocol, so that one loop can take turns between them.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

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

    /// Runs `count` times what `variant` names; gives nanoseconds of CPU time for each.
    pub fn measure(&mut self, variant: &str, count: u64) -> Result<f64> {
        let whole: [f64; 1] = self.order(&format!("{variant} {count}"))?;
        Ok(whole[0] / count as f64)
    }

    /// Gives an order; the answer is `N` numbers.
    pub fn order<T: std::str::FromStr, const N: usize>(&mut self, order: &str) -> Result<[T; N]> {
        let answer = self.ask(order).with_context(|| format!("worker {}", self.name))?;
        let numbers: Option<Vec<T>> = answer.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers
            .and_then(|numbers| numbers.try_into().ok())
            .with_context(|| format!("worker {} answered `{answer}` to `{order}`", self.name))
    }

    fn ask(&mut self, order: &str) -> Result<String> {
        writeln!(self.orders, "{order}").context("it is gone")?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            bail!("it ended without an answer to `{order}`");
        }
        Ok(answer.trim().to_owned())
    }

    /// Closes its input, at which it ends; passes on what else it prints.
    pub fn finish(mut self) -> Result<ExitStatus> {
        drop(self.orders);
        std::io::copy(&mut self.answers, &mut std::io::stderr())?;
        Ok(self.child.wait()?)
    }

    /// [`Self::finish`], and an error unless it ends well.
    pub fn finish_well(self) -> Result<()> {
        let name = self.name.clone();
        let status = self.finish()?;
        anyhow::ensure!(status.success(), "worker {name} ended with {status}");
        Ok(())
    }
}

/// The CPU on which single threads are measured: the last that this process may use, which leaves the first
/// ones, where most interrupts go, to others.
pub fn measuring_cpu() -> Result<usize> {
    let allowed = sched_getaffinity(None).context("cannot ask for the allowed CPUs")?;
    (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).context("no CPU is allowed")
}

/// Does something while confined to one CPU; a process started there stays there.
pub fn pinned<T>(cpu: usize, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot move to CPU {cpu}"))?;
    let outcome = action();
    sched_setaffinity(None, &before)?;
    outcome
}
