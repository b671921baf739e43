//! The agent: joins the process to recordings, and writes the events that the event path's fast half leaves over.
//!
//! | module | does |
//! |---|---|
//! | `join` | at the program's start: finds recorders through the environment, gets buffers, describes classes |
//! | `attach` | which buffers the process writes to for each recording, across forks and until the recording ends |
//! | `control` | which classes the recordings want, and which sites are on |
//! | `filters` | predicates that events must fulfil |
//! | `reach` | the thread by which recorders reach the process |
//! | `fork` | keeps that in order across forks |
//! | `write`, `smp` | the slow half of the event path |
//! | `table` | what a core dump is to say about the classes |
//! | `unprotected` | threads without a restartable sequence of their own: `vfork`ed children |
//! | `vfork` | notices such children |
//! | `watch` | tells bridges from other instrumentation of changes |
//! | `system` | the system calls that all this needs, callable from a signal handler |
//!
//! The event path, `attach` and `join::rejoin` may run in a signal handler, in a
//! child between `fork` and `exec`, and while the thread or the process exits: they allocate nothing and take no lock.
//!
//! With protocol `Smp`, a handler that forks in the middle of an event must not return from the handler in the child: both
//! processes would finish the same event in the parent's buffer.
//!
//! `unprotected` and `vfork` are x86-64's: elsewhere events take protocol `Smp`, which needs no such protection.

mod attach;
mod control;
mod filters;
mod fork;
mod join;
mod reach;
mod smp;
mod system;
mod table;
#[cfg(target_arch = "x86_64")]
mod unprotected;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub(crate) mod vfork;
mod watch;
mod write;

pub(crate) use attach::{ATTACHMENTS, Path, RSEQ_OFFSET};
#[cfg(feature = "session")]
pub(crate) use attach::{attach, can_publish, leave, set_majors};
pub(crate) use control::add;
#[cfg(feature = "session")]
pub(crate) use control::{Answer, Changed, Granted, Registrar, change, forget, join};
pub use control::{classes, pretend};
pub(crate) use filters::accepts;
pub(crate) use join::{ask_for_snapshot, recorders};
pub(crate) use smp::write as write_smp;
#[cfg(feature = "session")]
pub(crate) use table::ClassTable;
pub use watch::{changes, is_recorded, on_change};
pub(crate) use write::{thread_class, write};
