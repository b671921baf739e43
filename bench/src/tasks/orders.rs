//! Reads orders and answers them.

use crate::server::Server;
use crate::{again, plain, told, traced};
use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, Write};
use std::process::ExitCode;
use tokio::runtime::Builder;

pub fn main() -> ExitCode {
    match obey() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-tasks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey() -> Result<()> {
    let one = Builder::new_current_thread().build()?;
    let two = Builder::new_multi_thread().worker_threads(2).build()?;
    let mut server = None;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let order = line.split_once(' ').and_then(|(name, count)| Some((name, count.parse().ok()?)));
        let (variant, count): (_, u64) = order.with_context(|| format!("`{line}` is no order"))?;
        let (runtime, clock) = match variant.ends_with("-two") {
            true => (&two, ClockId::ProcessCPUTime),
            false => (&one, ClockId::ThreadCPUTime),
        };
        match (variant, server.take()) {
            ("serve", _) => {
                server = Some(Server::start()?);
                writeln!(output, "{}", std::process::id())?;
                continue;
            }
            ("served", Some(running)) => {
                let (answered, failed) = Server::end(running)?;
                writeln!(output, "{answered} {failed}")?;
                continue;
            }
            (_, running) => server = running,
        }
        let begin = cpu_time(clock);
        match variant {
            "plain" | "plain-two" => plain::grow(runtime, count),
            "told" | "told-two" => told::grow(runtime, count),
            "traced" | "traced-two" => traced::grow(runtime, count),
            "polls" => again::polls(runtime, count),
            "told-polls" => again::reported_polls(runtime, count),
            "spans" => again::spans(count),
            _ => bail!("there is no variant `{variant}`"),
        }
        writeln!(output, "{}", cpu_time(clock) - begin)?;
        output.flush()?;
    }
    Ok(())
}

/// CPU time in nanoseconds.
fn cpu_time(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
