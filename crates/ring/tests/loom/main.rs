//! The production code, run by the model checker loom through all interleavings of its accesses (with a bound
//! on preemptions) and all values that the memory model lets a load give: `RUSTFLAGS="--cfg loom" cargo test
//! --release -p tracewing-ring --test loom`.
//!
//! Buffers have two slots, sub-buffers room for three events; writers emit enough to go around.
//! `support::Check` checks that events are whole, in order and read once, and that every missing one is
//! counted.

#![cfg(loom)]

mod lttng;
mod publish;
mod slot_fifo;
mod support;
