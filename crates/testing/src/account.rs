//! Comparisons with the kernel's own account of threads' times.

/// Runs compared at most.
const RUNS: usize = 4;

/// Has runs compared until one agrees.
///
/// The kernel's sums leave out what the machine's host took from a virtual CPU (`CONFIG_PARAVIRT_TIME_ACCOUNTING`), which no
/// event tells: a run from which it took much is repeated.
///
/// # Panics
/// None of four runs agrees.
pub fn agrees_with_the_kernels(mut compare: impl FnMut() -> Result<(), String>) {
    let differences: Vec<String> = (0..RUNS).map_while(|_| compare().err()).collect();
    assert!(differences.len() < RUNS, "{differences:#?}");
}
