//! Obeys orders until standard input ends, and reports times.

use crate::{forms, many, shapes};
use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, Write};
use std::process::ExitCode;

pub fn main() -> ExitCode {
    match obey() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-trigger: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey() -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut forms = forms::Forms::default();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.splitn(3, ' ');
        let (name, number) =
            words.next().zip(words.next()).with_context(|| format!("`{line}` is no order"))?;
        let number = number.parse().with_context(|| format!("no number: `{line}`"))?;
        let answer = match name {
            "shape" => shapes::run(number, words.next().unwrap_or_default())?,
            "flip" => many::flip(number)?,
            form => forms.run(form, number)?.to_string(),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

/// The thread's CPU time in nanoseconds.
pub fn cpu_time() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// A clock's nanoseconds.
pub fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
