//! Comparisons with the kernel's own account of threads' times.

use std::fs;
use std::time::Duration;

/// Runs compared at most.
const RUNS: usize = 4;

/// Has runs compared until one agrees.
///
/// The kernel's sums leave out what the machine's host took from a virtual CPU
/// (`CONFIG_PARAVIRT_TIME_ACCOUNTING`), which no event tells, and of which [`stolen`] is known by clock ticks
/// only: a run from which it took much is repeated.
///
/// # Panics
/// None of four runs agrees.
pub fn agrees_with_the_kernels(mut compare: impl FnMut() -> Result<(), String>) {
    let differences: Vec<String> = (0..RUNS).map_while(|_| compare().err()).collect();
    assert!(differences.len() < RUNS, "{differences:#?}");
}

/// How long the machine's host may have run others at most, beside what [`stolen`] says of the same time:
/// that is counted in whole ticks, at the next tick of each CPU. Nothing on a machine from which the host
/// never took any.
pub fn hidden() -> Duration {
    if stolen() == Duration::ZERO { Duration::ZERO } else { Duration::from_millis(20) }
}

/// For how long the machine's host has run others on this machine's CPUs. Nothing where the kernel does not
/// know.
///
/// # Panics
/// The kernel's file about it cannot be read.
pub fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").expect("the kernel's account");
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok());
    // The kernel's unit for programs, `USER_HZ`, is a hundredth of a second.
    Duration::from_millis(ticks.unwrap_or(0) * 10)
}
