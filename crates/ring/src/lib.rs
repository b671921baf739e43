//! The ring buffers: one per CPU in a shared region (`tracewing_abi::region`), many writers, one reader.
//!
//! Three writer protocols share the layout and the reader; a region keeps one of them for its lifetime:
//!
//! - [`publish`]: the whole event is written inside a restartable sequence whose last instruction stores the
//!   new write position. That one store reserves and commits. If the thread is preempted, migrated, killed or
//!   interrupted by a signal before that store, nothing it wrote is visible. Needs Linux rseq and an
//!   invariant TSC.
//! - [`lttng`]: the scheme of LTTng (Desnoyers and Dagenais, *Lockless Multi-Core High-Throughput Buffering
//!   Scheme for Kernel Tracing*, section 4): a compare-and-swap reserves, an add commits. Protocol `Smp` uses
//!   locked instructions and serves everything else. Protocol `Local` does not lock and serves code that
//!   cannot migrate: kernels, firmware, interrupt handlers.
//!
//! A full buffer loses the new event (discard mode) or the oldest sub-buffer (overwrite mode); both losses
//! are counted. No operation waits or retries without bound. This crate knows nothing of event classes, CTF
//! or recordings; it allocates nothing, takes no lock, and makes no system call.
//!
//! # Bounds
//!
//! | operation | at most | then |
//! |---|---|---|
//! | [`publish::fixed`], [`publish::gather`], [`publish::open`] | [`publish::ATTEMPTS`] aborts in a row | the call reports it, and the caller counts the event as lost (`Loss::Interrupted`) |
//! | [`lttng::reserve`], [`lttng::write`] | [`lttng::ATTEMPTS`] failed compare-and-swaps | the event is lost and counted (`Loss::Interrupted`) |
//! | [`lttng::force_switch`] | one attempt | `false` |
//! | claiming a sub-buffer, in overwrite mode | 8 exchanges by the reader | is treated as one of the attempts above |
//! | [`Reader::next`], [`Reader::finalise`] | two rounds per sub-buffer | `None`; the next call continues from there |
//! | [`slot_fifo`] | no loop at all | |
//!
//! Without Linux (`--target x86_64-unknown-none`: kernels, firmware) only [`lttng`], the reader and
//! [`slot_fifo`] exist, and the clock is the time stamp counter.

#![no_std]
#![warn(unreachable_pub)]
#[cfg(any(loom, feature = "model", not(target_arch = "x86_64")))]
extern crate std; // for `thread_local!`, where thread-local storage has no hand-written access

#[cfg(target_os = "linux")]
mod attachment;
mod clock;
mod copy;
#[cfg(target_os = "linux")]
mod enable_word;
pub mod lttng;
mod opened;
#[cfg(target_os = "linux")]
pub mod publish;
mod reader;
mod region;
pub mod slot_fifo;
mod sync;
#[cfg(target_os = "linux")]
pub mod thread;

#[cfg(not(any(target_os = "linux", target_arch = "x86_64")))]
compile_error!("without Linux only x86-64 has a clock here: add the processor's counter to src/clock.rs");

#[cfg(target_os = "linux")]
pub use attachment::Attachment;
pub use copy::Segment;
#[cfg(target_os = "linux")]
pub use enable_word::EnableWord;
pub use opened::opened;
pub use reader::{Chunk, Contradiction, Damaged, Left, Overwritten, Reader, Readiness, Unfinished, UpTo};
pub use region::{Buffer, Region};
