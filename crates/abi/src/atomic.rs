//! The atomic integers of the shared words: the processor's, or those of loom, which tries every order of
//! accesses that the memory model allows. With `--cfg loom` this crate and `ring` are what the checker runs;
//! nothing else changes.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
