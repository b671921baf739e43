//! The code that ships, run by the model checker loom through all interleavings of its accesses (with a bound
//! on preemptions) and all values that the memory model lets a load give:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tracewing-ring --test loom`.
//!
//! Buffers have two slots, sub-buffers room for three events; writers emit enough to come round. What is
//! checked is what `support::Check` says: events are whole, in order, read once, and none is missing that is
//! not counted.

#![cfg(loom)]

mod lttng;
mod publish;
mod slot_fifo;
mod support;
