//! The schemes that the papers compare, written as buffers of the same size that accept the same event, so
//! that `cargo xtask bench record` can compare the cost of each with tracewing's; and K42's, which a test
//! shows to be wrong.
//!
//! | module | scheme | paper |
//! |---|---|---|
//! | [`mutex`] | a lock around everything | 000, table 2: spin lock |
//! | [`seqlock`] | sequence lock around what a writer reads, locked compare-and-swap | 000, table 2 |
//! | [`cas`] | compare-and-swap, locked or local to the CPU, and a commit count | 000, tables 1 and 2; 002, section 4 |
//! | [`k42`] | K42: compare-and-swap and a count per buffer that is zeroed on reuse | 004, Figure 2; 002, section 2 |
//!
//! All are flight recorders: they overwrite the oldest events, and there is no reader while they write. None
//! is production code; the missing parts (losses, readers, several processes, nesting) would only add to
//! their cost.

pub mod atomic;
pub mod cas;
pub mod event;
pub mod geometry;
pub mod k42;
pub mod memory;
pub mod mutex;
pub mod padded;
pub mod seqlock;

/// A buffer that takes the benchmark's event.
pub trait Scheme: Sync {
    /// Records one event, stamped now.
    fn log(&self, tid: u32, values: [u64; 2]);
}
