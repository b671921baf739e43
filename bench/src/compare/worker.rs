//! tracewing's side of the comparison, and the baselines': obeys orders on standard input (`process.rs`).
//!
//! | order | does | answer |
//! |---|---|---|
//! | `VARIANT COUNT` | runs COUNT times what VARIANT names (`events.rs`) | ns of CPU time |
//! | `threads COUNT THREADS VARIANT` | the same in each of that many threads at once (`threads.rs`) | ns of CPU time of all |
//! | `flood MS` | emits events for that long (`flood.rs`) | events, ns |
//! | `latency COUNT PATH` | times COUNT single events (`latency.rs`) | page faults and events with system calls |
//! | `empty COUNT PATH` | times nothing as often | the same |

pub mod events;
mod flood;
mod latency;
mod threads;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, Write};

/// Answers orders until standard input ends.
pub fn run() -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut baselines = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.splitn(3, ' ');
        let (name, number) =
            words.next().zip(words.next()).with_context(|| format!("`{line}` is no order"))?;
        let number = number.parse().with_context(|| format!("no number: `{line}`"))?;
        let rest = words.next().unwrap_or_default();
        let answer = match name {
            "threads" => threads::run(number, rest)?.to_string(),
            "flood" => flood::run(number)?,
            "latency" => latency::run(number, rest, true)?,
            "empty" => latency::run(number, rest, false)?,
            variant => events::measure(variant, number, &mut baselines)?.to_string(),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

/// The thread's CPU time in nanoseconds. Elapsed time would include what other programs take, and more of it
/// for slower sides.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
