//! Comparisons with other tracers on this machine; `cargo xtask bench` builds and starts it.
//!
//! The program is in `compare.rs`. Under loom there is none: loom runs only one of the baselines
//! (`tests/k42.rs`).

#[cfg(not(loom))]
mod compare;

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    compare::main()
}

#[cfg(loom)]
fn main() {}
