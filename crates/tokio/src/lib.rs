//! Records the tasks of a program that uses tokio: which worker ran which task when, why it stopped, who woke
//! it, what it waited for. `docs/reference/tasks.md` says what the recording holds.
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
//!   makes any future a user thread, for those that one task runs together (`select!`, `join!`) or that
//!   `block_on` gets.
//! - [`runtime`] names a runtime and tells when its workers have nothing to do.
//! - [`sync`] has tokio's locks, channels and notifications, which tell who waits for what.
//!
//! With `--cfg tokio_unstable` (in `RUSTFLAGS`), [`runtime`] has every task of the runtime told, those of
//! libraries included. Of these, less is known: no name but the place that spawned them (`serve.rs:253`), not
//! who woke them, not how they ended, and not why they stopped but for the cooperative budget.
//!
//! # Limits
//! - Why a task stopped is `yielded` if it woke itself while it ran, or called [`yield_now`]. tokio's own
//!   `yield_now` looks `blocked`, and is woken by the worker at once.
//! - `budget` is told of a task that stops with nothing left of its budget, even if it then waits for
//!   something else.
//! - A task that waits already when a recording begins is not known to be woken until it has run once more.
//! - While it is recorded, the first poll of a future that is not a task of its own allocates its waker, and
//!   so does one with another waker than the last.
//! - tokio's hooks do not know the tasks of a `LocalSet`, nor functions that run where they may block.
//! - With `tokio_unstable`, `tokio::spawn(instrument(…))` is two user threads, one in the other: use
//!   [`spawn`], or [`Builder::spawn_in`] for a `JoinSet`.

mod future;
mod here;
#[cfg(tokio_unstable)]
mod hooks;
mod life;
mod living;
mod origin;
mod poll;
mod runtime;
pub mod sync;
mod task;
mod waker;

pub use future::{Instrumented, yield_now};
pub use runtime::runtime;
pub use task::{Builder, instrument, spawn, spawn_blocking, spawn_local};
