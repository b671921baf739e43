//! The atomics of the one scheme that runs under loom: loom's under `--cfg loom`, else the processor's.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};
