//! Instruments a program: declares its events and emits them. An event costs about as much as reading the
//! CPU's clock during a recording, and one instruction, without a load or a branch, otherwise.
//!
//! ```
//! use tracewing::{Event, emit, event};
//!
//! /// An order was put into the queue.
//! #[derive(Event)]
//! #[event(provider = "shop", print = "order {id} of {customer}, {depth} waiting")]
//! struct Enqueued<'a> {
//!     id: u64,
//!     depth: u32,
//!     customer: &'a str,
//! }
//!
//! emit!(Enqueued { id: 7, depth: 3, customer: "Ada" });
//!
//! // The same without a declaration:
//! let (id, depth) = (7u64, 3u32);
//! event!("shop:enqueued", id, depth);
//! ```
//!
//! `tracewing record -- PROGRAM` records it: the program finds the recorder through its environment when it
//! starts, and so does every program that it starts. A program can also record itself, with [`Session`].
//! Otherwise nothing happens: no thread is started, no file or socket opened, nothing printed. A program
//! under `tracewing record` has an additional thread, named `tracewing`, which sleeps except when `tracewing
//! enable` or `disable` changes what is recorded. It starts when the program does, before `main`, which waits
//! for recorders for at most 100 ms in total (`TRACEWING_WAIT=MS`); nothing else waits for them.
//!
//! A flight recorder (`tracewing record --flight-recorder`, or a [`Session`] of that kind) keeps the newest
//! events in memory and writes them when asked: by [`snapshot`], on a panic ([`snapshot_on_panic`]), or from
//! outside.
//!
//! Events may be emitted anywhere: in threads, in forked children, in signal handlers, under filters for
//! system calls, while a thread or the process exits, in a library loaded by `dlopen`. Emitting never blocks
//! and never allocates; arguments are evaluated only when a recording enables the event. An event that finds
//! its buffer full is lost, and counted.
//!
//! # How it works
//! An event is written to the CPU's buffer in memory shared with the recorder, inside one restartable
//! sequence whose last store publishes it (crate `tracewing-ring`, `docs/explanation/event-path.md`). A
//! program that is killed loses nothing that it has emitted. Where the system has no restartable sequences
//! (Linux before 4.18, glibc before 2.35, another processor than x86-64, a time stamp counter that cannot be
//! trusted), a protocol with two locked instructions takes their place.
//!
//! A disabled `emit!` or `event!` is a `nop` of eight bytes; the agent turns it into a jump to the event's
//! code by changing one byte (crate `tracewing-trigger`, `docs/explanation/triggers.md`). Up to eight
//! recordings can see the program at a time, each with its own rules (crate `tracewing-rules`,
//! `docs/reference/rules.md`) and buffers. Without the feature `sites` the macros leave nothing in the
//! program.
//!
//! # Limits
//! - A forked child gets such a thread, too; one that must be single-threaded (`unshare` with
//!   `CLONE_NEWUSER`) cannot be made by `fork`. Children made by `vfork` or raw system calls do not receive
//!   changes.
//! - With protocol `Smp`, an event that a thread has begun when its class is switched off may still be
//!   recorded.
//! - Events of children made by `vfork` or raw system calls are counted as lost, and so are those of forked
//!   children that need buffers of their own (`--buffers process`, protocol `Smp`) until they have them.
//! - Making a class at run time takes system calls; no other event makes any. Before a thread gives up the
//!   clock, it calls [`before_sandbox`].
//! - A child made by a raw `vfork` or `clone` system call that shares its parent's memory is not noticed and
//!   may overwrite other events; the C library's functions are.
//! - A uprobe, or a debugger's breakpoint, on an instruction of the sequence makes the kernel run the rest of
//!   it unprotected. It is noticed before the event is published, and the event is tried again; but what was
//!   written until then may have damaged events of other threads on that CPU, and the reader skips a
//!   sub-buffer that makes no sense to it, counting one loss for all that was in it. Do not probe
//!   `tracewing::path`.
//! - Text ends at its first NUL, as CTF's strings do.
//! - Thread ids are those of the program's pid namespace.

#![warn(unreachable_pub)]

mod agent;
mod class;
mod declaration;
mod declared;
#[doc(hidden)]
pub mod dynamic;
mod event;
mod field;
mod function;
mod layout;
mod macros;
mod own;
mod path;
mod payload;
mod sandbox;
#[cfg(feature = "session")]
mod session;
mod snapshot;
mod span;
pub mod sync;
pub mod user_thread;
mod words;

pub use agent::on_attach;
pub use class::EventClass;
pub use event::Event;
pub use field::Field;
#[doc(hidden)]
pub use macros::private as __private;
pub use sandbox::before_sandbox;
#[cfg(feature = "session")]
pub use session::{Session, SessionBuilder, SessionError, SessionSummary, SwitchFault};
pub use snapshot::{SnapshotError, snapshot, snapshot_on_panic};
pub use span::{Instrumented, Span, SpanId};
pub use tracewing_abi::schema::Level;
pub use tracewing_macros::{Event, EventField, traced};
#[cfg(feature = "session")]
pub use tracewing_rules as rules;
