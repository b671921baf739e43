//! Records the tasks of a program that uses tokio: which worker ran which task when, why the task stopped,
//! what woke it, and what it waited for. `docs/reference/tasks.md` describes the recording.
//!
//! ```
//! use tracewing_tokio as traced;
//!
//! let mut builder = tokio::runtime::Builder::new_multi_thread();
//! let runtime = traced::runtime(&mut builder, "shop").build().unwrap();
//! runtime.block_on(async {
//!     let counter = traced::Builder::new().name("counter").spawn(async { 6 * 7 });
//!     assert_eq!(counter.await.unwrap(), 42);
//! });
//! ```
//!
//! - [`spawn`], [`spawn_local`], [`spawn_blocking`] and [`Builder`] take the place of tokio's; [`instrument`]
//!   makes any future a user thread, such as futures that one task runs together (`select!`, `join!`) or an
//!   argument of `block_on`.
//! - [`runtime`] names a runtime and records when its workers are idle.
//! - With the feature `tower`, `tower::layer` makes each request of a service a user thread (axum, tonic).
//! - [`sync`] has tokio's locks, channels and notifications, which record which task waits for what.
//!
//! With `--cfg tokio_unstable` (in `RUSTFLAGS`), [`runtime`] records every task of the runtime, including
//! those of libraries. Less is known about these: their only name is the place that spawned them
//! (`serve.rs:253`), what woke them and how they ended is unknown, and why they stopped is known only for the
//! cooperative budget.
//!
//! # Limits
//! - The reason for a stop is `yielded` if the task woke itself while it ran, or called [`yield_now`].
//!   tokio's own `yield_now` appears as `blocked` and an immediate wake-up by the worker.
//! - The reason is `budget` if the task has used up its budget, even if it then waits for something else.
//! - If a task is already waiting when a recording begins, wake-ups are unknown until it has run once more.
//! - While it is recorded, the first poll of a future that is not a task of its own allocates its waker, and
//!   so does each poll with a different waker than the last.
//! - tokio's hooks do not know the tasks of a `LocalSet`, nor functions that run where they may block.
//! - With `tokio_unstable`, `tokio::spawn(instrument(…))` is two user threads, one in the other: use
//!   [`spawn`], or [`Builder::spawn_in`] for a `JoinSet`.

#![warn(unreachable_pub)]

mod future;
mod here;
#[cfg(tokio_unstable)]
mod hooks;
mod known;
mod life;
mod living;
mod origin;
mod poll;
mod runtime;
pub mod sync;
mod task;
#[cfg(feature = "tower")]
pub mod tower;
mod waker;

pub use future::{Instrumented, yield_now};
pub use runtime::runtime;
pub use task::{Builder, instrument, spawn, spawn_blocking, spawn_local};
