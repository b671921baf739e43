//! Emits events as fast as it can for some time, for the comparison with a plain loop of writes.

use super::events::TwoU64;
use anyhow::Result;
use std::time::{Duration, Instant};
use tracewing::emit;

/// Events between two looks at the clock.
const STRIDE: u64 = 4096;

/// Gives the number of events, and the nanoseconds from the first to the last.
pub fn run(milliseconds: u64) -> Result<String> {
    let begin = Instant::now();
    let length = Duration::from_millis(milliseconds);
    let mut count = 0;
    while begin.elapsed() < length {
        for i in count..count + STRIDE {
            emit!(TwoU64 { first: i, second: i ^ count });
        }
        count += STRIDE;
    }
    Ok(format!("{count} {}", begin.elapsed().as_nanos()))
}
