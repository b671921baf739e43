//! The agent: joins the process to recordings, and writes the events that the event path's fast half does not
//! handle.
//!
//! | module | does |
//! |---|---|
//! | `start` | at the program's start: finds recorders through the environment, and those of `neighbours` |
//! | `neighbours` | other copies of the crate in the process: from them a plug-in learns its recorders |
//! | `join` | gets buffers from a recorder, describes classes to it |
//! | `attach` | which buffers the process writes to for each recording, across forks and until the recording ends |
//! | `control` | which classes the recordings enable, and which sites are on |
//! | `filters` | predicates that events must satisfy |
//! | `made`, `first` | classes that are made at run time, and events of those that the recorder does not know yet |
//! | `socket`, `trust` | packets to and from recorders, and which processes may be recorders |
//! | `threads` | the agent's threads: how they begin, act under filters for system calls, and end |
//! | `access` | how a recorder is reached: by a path, or by a door of a process that it has attached to |
//! | `door` | shows a recorder that attaches which descriptor to take |
//! | `entry` | what a recorder makes a thread of the running process do to attach to it |
//! | `connection` | connections to recorders, and what becomes of a recording whose recorder is gone |
//! | `reach` | serves connections, each on a thread of its own |
//! | `fork`, `spare` | keep all of this consistent across forks, and have buffers for the next child |
//! | `write`, `smp` | the slow half of the event path |
//! | `table` | the class descriptions for a core dump |
//! | `identity`, `names` | ids and name of the calling thread, without a system call |
//! | `filtered` | notices filters for system calls that the program installs |
//! | `vfork` | notices children that use their parent's thread block |
//! | `watch` | notifies bridges from other instrumentation of changes |
//! | `system` | the system calls that all of this needs, callable from a signal handler |
//!
//! The event path may run in a signal handler, in a child between `fork` and `exec`, while the thread or the
//! process exits, and under a filter for system calls that ends the program: it allocates nothing, takes no
//! lock, and makes no system call.
//!
//! With protocol `Smp`, a handler that forks in the middle of an event must not return from the handler in
//! the child: both processes would finish the same event in the parent's buffer.
//!
//! `vfork` is x86-64's.

mod access;
mod attach;
mod connection;
mod control;
mod door;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod entry;
pub(crate) mod filtered;
mod filters;
mod first;
mod fork;
mod identity;
mod join;
mod listed;
mod made;
pub(crate) mod names;
mod neighbours;
mod reach;
mod smp;
mod socket;
mod spare;
mod start;
mod system;
mod table;
mod threads;
mod trust;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub(crate) mod vfork;
mod watch;
mod write;

pub(crate) use access::Access;
pub(crate) use attach::{ATTACHMENTS, RSEQ_OFFSET};
#[cfg(feature = "session")]
pub(crate) use attach::{can_publish, set_majors};
#[cfg(feature = "session")]
pub use control::SwitchFault;
pub(crate) use control::register;
#[cfg(feature = "session")]
pub(crate) use control::{Answer, Changed, Granted, Registrar, change, forget, join, send_news as describe};
pub use control::{classes, pretend};
pub(crate) use filters::accepts;
pub(crate) use first::first;
pub(crate) use join::{Unanswered, ask_for_snapshot, recorders};
pub(crate) use smp::write as write_smp;
#[cfg(feature = "session")]
pub(crate) use spare::leave;
#[cfg(feature = "session")]
pub(crate) use table::ClassTable;
pub use watch::{changes, is_recorded, on_attach, on_change};
pub(crate) use write::{thread_class, too_large, write};

/// What nothing in the program calls. Of a static library, linkers take only what the program refers to, as
/// it does to this. Its address is what distinguishes copies of the crate.
static UNCALLED: [&dyn Sync; 2] = [&start::AT_START, entry::ENTRY];

/// The calling thread writes no events from now on, and no thread of the agent's is there.
pub(crate) fn silence() {
    smp::silence();
    reach::end();
}

/// As [`attach::take_part`], for the buffers of a session in this process. A child of the process shares them
/// where the protocol allows.
#[cfg(feature = "session")]
pub(crate) fn attach(region: &tracewing_ring::Region, file: libc::c_int) -> Option<usize> {
    fork::notice(reach::begin_in_child);
    attach::attach(region, file)
}
