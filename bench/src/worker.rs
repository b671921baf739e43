//! tracewing's side of the comparison: emits events of one kind in a loop, as often as it is told (see `process.rs` for
//! the protocol). It also measures the floor, `rdtsc` alone.

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::io::{BufRead, Write};
use tracewing::{Event, emit};

/// The event that LTTng's program emits too.
#[derive(Event)]
struct TwoU64 {
    first: u64,
    second: u64,
}

/// The same, stamped behind a fence.
#[derive(Event)]
#[event(ordered)]
struct TwoU64Ordered {
    first: u64,
    second: u64,
}

#[derive(Event)]
struct Bytes16 {
    payload: [u8; 16],
}

#[derive(Event)]
struct Bytes64 {
    payload: [u8; 64],
}

#[derive(Event)]
struct Bytes256 {
    payload: [u8; 256],
}

#[derive(Event)]
struct Text<'a> {
    text: &'a str,
}

/// Answers orders on standard input until it ends.
pub fn run() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (variant, count) = line.split_once(' ').context("an order is a variant and a count")?;
        let count = count.parse().with_context(|| format!("no count: `{line}`"))?;
        writeln!(output, "{}", measure(variant, count)?)?;
        output.flush()?;
    }
    Ok(())
}

/// Nanoseconds of CPU time that `count` rounds take.
fn measure(variant: &str, count: u64) -> Result<u64> {
    Ok(match variant {
        "rdtsc" => time(count, |_| {
            black_box(time_stamp_counter());
        }),
        "two_u64" => time(count, |i| emit!(TwoU64 { first: i, second: i ^ count })),
        "ordered" => time(count, |i| emit!(TwoU64Ordered { first: i, second: i ^ count })),
        "bytes16" => {
            let payload = black_box([1; 16]);
            time(count, |_| emit!(Bytes16 { payload }))
        }
        "bytes64" => {
            let payload = black_box([1; 64]);
            time(count, |_| emit!(Bytes64 { payload }))
        }
        "bytes256" => {
            let payload = black_box([1; 256]);
            time(count, |_| emit!(Bytes256 { payload }))
        }
        "string" => {
            let text = black_box("twenty bytes of text");
            time(count, |_| emit!(Text { text }))
        }
        other => bail!("unknown event `{other}`"),
    })
}

#[inline(always)]
fn time(count: u64, mut step: impl FnMut(u64)) -> u64 {
    let begin = cpu_time();
    for i in 0..count {
        step(i);
    }
    cpu_time() - begin
}

/// The thread's CPU time in nanoseconds. Time on the wall would count what other programs take, and more of it for whoever
/// takes longer.
fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn time_stamp_counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it to user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}
