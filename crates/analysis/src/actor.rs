//! A party that an analysis names: an LWP, a user thread, an interrupt.

use crate::names::Names;
use serde::Serialize;
use std::fmt;
use tracewing_trace::super_trace::{Lwp, UserThread, Waker};
use tracewing_units::{Pid, Task, Tid};

/// A party. Fields that are `None` or empty do not apply, or are unknown.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Actor {
    /// The process: its first thread's number.
    pub process: Option<Pid>,
    /// The LWP's thread id; `None` if no event identifies it.
    pub tid: Option<Tid>,
    /// The LWP's name, empty if unknown.
    pub name: String,
    /// The user thread's number, unique in its process.
    #[serde(rename = "task")]
    pub user_thread: Option<Task>,
    /// The user thread's name, empty if it has none.
    #[serde(rename = "task_name")]
    pub user_thread_name: String,
    /// The interrupt's name, if it is one; empty if that is not known.
    pub interrupt: Option<String>,
}

impl Actor {
    pub(crate) fn lwp(lwp: &Lwp) -> Self {
        Self { process: lwp.process, tid: Some(lwp.tid), name: lwp.name.clone(), ..Self::default() }
    }

    pub(crate) fn user_thread(thread: &UserThread) -> Self {
        Self {
            process: thread.process,
            user_thread: Some(thread.id),
            user_thread_name: thread.name.clone(),
            ..Self::default()
        }
    }

    /// An interrupt; without a name if that is not known.
    pub(crate) fn interrupt(name: &str) -> Self {
        Self { interrupt: Some(name.to_owned()), ..Self::default() }
    }

    /// The party that a waker is.
    pub(crate) fn woke(waker: &Waker, names: &Names) -> Self {
        match (waker.interrupt, waker.tid) {
            (Some(name), _) => Self::interrupt(names.get(name)),
            // The idle thread wakes nothing, so it was an interrupt that was not recorded.
            (None, Some(Tid::IDLE)) => Self::interrupt(""),
            (None, tid) => Self {
                process: waker.process,
                tid,
                name: waker.name.as_str().to_owned(),
                user_thread: waker.user_thread,
                ..Self::default()
            },
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number, name) = match (&self.interrupt, self.user_thread, self.tid) {
            (Some(name), ..) if name.is_empty() => return f.write_str("interrupt"),
            // These are names of kinds: no event says which one it was.
            (Some(name), ..) if ["interrupt", "softirq"].contains(&name.as_str()) => {
                return f.write_str(name);
            }
            (Some(name), ..) => return write!(f, "interrupt {name}"),
            (None, Some(thread), _) => ("task", thread.0, &self.user_thread_name),
            (None, None, Some(tid)) => ("thread", tid.0.unsigned_abs().into(), &self.name),
            (None, None, None) => return f.write_str("unknown"),
        };
        match name.as_str() {
            "" => write!(f, "{kind} {number}"),
            name => write!(f, "{kind} {number} ({name})"),
        }
    }
}
