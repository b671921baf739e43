//! Has a thread of a running process call a function that the process contains for this purpose
//! (`tracewing_abi::attach`), and puts the thread back exactly: interrupted system calls keep their time-outs
//! and return values, signals are delivered as if nothing had happened, and a recorder that is killed halfway
//! leaves a process that runs on.
//!
//! - [`Target`]: a process that can be attached to, or the [`Refusal`] that says why not.
//! - `passed`: a refusal that one process passes to another.
//! - `threads`: which of its threads can be borrowed; `reads`: whether
//!   their waits for data can be interrupted.
//! - `tracee`: a stopped thread; `signal_frame`: whether it is in a signal handler; `restart`: how its
//!   interrupted call continues; `filter`: what its seccomp filters let through.
//! - `stopped`: what becomes of a stopped thread.
//! - `turn`: how soon tracer and tracee run; `alarm`: how long the tracer waits; `call`: stop, call, restore.
//!
//! Linux on x86-64.

#![warn(unreachable_pub)]

mod alarm;
mod asleep;
mod bpf;
mod call;
mod filter;
mod passed;
mod reads;
mod refusal;
mod restart;
mod signal_frame;
mod stopped;
mod target;
mod threads;
mod tracee;
mod turn;

pub use call::{Called, Place};
pub use filter::SystemCall;
pub use refusal::{Refusal, Unsupported};
pub use target::Target;
