//! Comparisons with the kernel's own account of threads' times.

use std::fs;
use std::time::Duration;

/// Maximum number of runs to compare.
const RUNS: usize = 4;

/// Compares runs until one agrees.
///
/// The kernel's sums exclude time that the machine's host took from a virtual CPU
/// (`CONFIG_PARAVIRT_TIME_ACCOUNTING`). No event records that time, and [`stolen`] knows it only in clock
/// ticks: a run that lost much of it is repeated.
///
/// # Panics
/// None of four runs agrees.
pub fn agrees_with_the_kernels(mut compare: impl FnMut() -> Result<(), String>) {
    let differences: Vec<String> = (0..RUNS).map_while(|_| compare().err()).collect();
    assert!(differences.len() < RUNS, "{differences:#?}");
}

/// Upper bound of the time for which the machine's host may have run others in addition to [`stolen`] in the
/// same period: stolen time is counted in whole ticks, at the next tick of each CPU. Zero on a machine whose
/// host never took any.
pub fn hidden() -> Duration {
    if stolen() == Duration::ZERO { Duration::ZERO } else { Duration::from_millis(20) }
}

/// How much longer a thread runs by the kernel's account than by the switches to and from it, if it got a
/// CPU so often: the kernel charges it from when it began to look for the next thread, and stamps the switch
/// later, by 1 to 11 us on average on a busy machine (by its own `sched_stat_runtime`). Three times as much
/// is allowed: a host that takes the CPU in between adds to it.
pub fn charged_before(switches: u64) -> Duration {
    Duration::from_nanos(switches.saturating_mul(30_000))
}

/// Time for which the machine's host has run others on this machine's CPUs. Zero if the kernel does not know.
///
/// # Panics
/// The kernel's file about it cannot be read.
pub fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").expect("the kernel's account");
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok());
    // The kernel's unit for programs, `USER_HZ`, is a hundredth of a second.
    Duration::from_millis(ticks.unwrap_or(0) * 10)
}
