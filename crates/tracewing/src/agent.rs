//! The agent: joins the process to a recording, and writes the events that the event path's fast half leaves over.
//!
//! | module | does |
//! |---|---|
//! | `join` | at the program's start: finds the recorder through the environment, gets buffers and ids |
//! | `attach` | which buffers the process writes to, across forks and until the recording ends |
//! | `write` | the slow half of the event path |
//! | `table` | what a core dump is to say about the classes |
//! | `unprotected` | threads without a restartable sequence of their own: `vfork`ed children |
//! | `vfork` | notices such children |
//! | `system` | the system calls that all this needs, callable from a signal handler |
//!
//! The agent starts no thread and keeps no descriptor open. Everything below `join` may run in a signal handler, in a
//! child between `fork` and `exec`, and while the thread or the process exits: it allocates nothing and takes no lock.
//!
//! With protocol `Smp`, a handler that forks in the middle of an event must not return from the handler in the child: both
//! processes would finish the same event in the parent's buffer.
//!
//! `unprotected` and `vfork` are x86-64's: elsewhere events take protocol `Smp`, which needs no such protection.

mod attach;
mod join;
mod smp;
mod system;
mod table;
#[cfg(target_arch = "x86_64")]
mod unprotected;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod vfork;
mod write;

pub(crate) use attach::{ATTACHMENT, RSEQ_OFFSET};
#[cfg(feature = "session")]
pub(crate) use attach::{attach, can_publish, detach, is_attached};
pub(crate) use join::ask_for_snapshot;
pub(crate) use smp::write as write_smp;
#[cfg(feature = "session")]
pub(crate) use table::ClassTable;
pub(crate) use write::write;
