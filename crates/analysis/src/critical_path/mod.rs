//! The critical path of an LWP or a user thread: which threads and tasks it waited for.
//!
//! It is found backwards from its end. While the followed thread runs, its time is its own. If it was
//! blocked, the path continues with its waker, at the time of the wake, back to when the block began; an
//! interrupt's wake (a timer's or a device's) ends there. If it waited for a CPU, the time belongs to the
//! threads that had that CPU; if a user thread waited for an LWP, the path follows that LWP. So each
//! nanosecond of the requested time belongs to exactly one thread.
//!
//! All necessary information lies between the beginning and the end of the requested time, but is complete
//! only at its end. So the states of all threads are stored as they are reported, and read back from the end;
//! memory grows with the number of live threads, and with the length of the path.
//!
//! | file | does |
//! |---|---|
//! | `target` | the thread or task whose path is requested |
//! | `lines` | stores the states of all threads |
//! | `record`, `tape` | the stored form, and the storage |
//! | `past` | the states at a time, which moves backwards |
//! | `walk` | follows the path backwards |

mod lines;
mod past;
mod record;
mod tape;
mod target;
mod walk;

pub use lines::CriticalPaths;
pub use target::{Target, TargetFault};

use crate::actor::Actor;
use crate::names::Names;
use past::Past;
use std::fmt;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::sync::Arc;
use tracewing_trace::super_trace::{LwpSerial, TaskSerial};
use tracewing_units::{Cpu, Duration, Pid, Timestamp};
use walk::Walk;

/// Maximum number of steps that a path keeps.
const STEPS: usize = 1 << 18;

/// An LWP or user thread that a path can follow, by serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Followed {
    /// With the user thread for which it acts.
    Lwp(LwpSerial, Option<TaskSerial>),
    UserThread(TaskSerial),
}

/// A path in the order of time. Its steps follow each other without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    /// The thread or task whose path it is.
    pub target: Arc<Actor>,
    /// Where it begins, in nanoseconds on the recording's clock.
    pub from_ns: Timestamp,
    /// When it ends, in nanoseconds on the recording's clock.
    pub to_ns: Timestamp,
    /// The last 262,144 steps; earlier ones are only in the sums.
    pub steps: Vec<Step>,
    /// Number of earlier steps, which are only in the sums.
    pub left_out: u64,
    /// The time of each thread, task and interrupt, longest first.
    pub by_actor: Vec<(String, Duration)>,
    /// The time of each activity, longest first.
    pub by_what: Vec<(String, Duration)>,
}

/// A part of a path: one activity of one thread, task or interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When it begins, in nanoseconds on the recording's clock.
    pub from_ns: Timestamp,
    /// When it ends, in nanoseconds on the recording's clock.
    pub to_ns: Timestamp,
    /// The CPU, where one was used.
    pub cpu: Option<Cpu>,
    /// The thread, task or interrupt that the time belongs to.
    pub actor: Arc<Actor>,
    /// What the actor did.
    pub what: What,
    /// Why the path leads through it.
    pub why: Why,
    /// The thread or task that waited for it, if `why` says that one did.
    pub waiter: Option<Arc<Actor>>,
}

/// What a thread, task or interrupt did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// Ran its program's code.
    User,
    /// Ran in a system call.
    SystemCall(Arc<str>),
    /// Running; the mode is unknown.
    Running,
    /// Had the CPU, as an interrupt.
    Interrupt,
    /// Waited for something, in a system call or for what a user thread says.
    Blocked(Option<Arc<str>>),
    /// Waited for a CPU, or for an LWP.
    Ready,
    /// No event shows what it did.
    Unknown,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::User => f.write_str("user"),
            What::SystemCall(call) => write!(f, "system call {call}"),
            What::Running => f.write_str("running"),
            What::Interrupt => f.write_str("interrupt"),
            What::Blocked(Some(on)) => write!(f, "blocked on {on}"),
            What::Blocked(None) => f.write_str("blocked"),
            What::Ready => f.write_str("ready"),
            What::Unknown => f.write_str("unknown"),
        }
    }
}

/// Why a path leads through a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is the thread whose path this is.
    Itself,
    /// It woke the followed thread at the end of this.
    Wakes,
    /// It raised the softirq of this name, which woke the followed thread at the end of this.
    WakesVia(Arc<str>),
    /// It created the followed thread at the end of this.
    Creates,
    /// It had the CPU that the followed thread waited for.
    HasCpu,
    /// It had, or was, the LWP that a user thread waited for.
    HasThread,
    /// It interrupted the followed thread.
    Interrupts,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Itself => "itself",
            Why::Wakes => "wakes",
            Why::WakesVia(softirq) => return write!(f, "wakes via {softirq}"),
            Why::Creates => "creates",
            Why::HasCpu => "has the CPU for",
            Why::HasThread => "has the thread for",
            Why::Interrupts => "interrupts",
        })
    }
}

/// A thread or task that a name or number matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Its process; `None` if unknown.
    pub process: Option<Pid>,
    /// Its number: the thread's, or the task's.
    pub number: u64,
    /// Its last known name.
    pub name: String,
}

/// The first of several matches.
fn listed(all: &[Match], with_process: bool) -> String {
    const MOST: usize = 5;
    let name = |Match { process, number, name }: &Match| match process {
        Some(process) if with_process => format!("{process}/{number} {name}"),
        _ => format!("{number} {name}"),
    };
    let names: Vec<_> = all.iter().take(MOST).map(name).collect();
    let more = if all.len() > MOST { ", …" } else { "" };
    names.join(", ") + more
}

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
pub enum NoPath {
    /// The recording has no such thread or task in that time.
    #[error("{0} does not appear in this time: `tracewing threads` lists threads, `tracewing tasks` tasks")]
    Missing(String),
    /// A name or number matches several processes.
    #[error("the process is ambiguous: {}", listed(.0, false))]
    SeveralProcesses(Vec<Match>),
    /// A name or number matches several threads.
    #[error("the thread is ambiguous: {}", listed(.0, true))]
    SeveralThreads(Vec<Match>),
    /// A name or number matches several tasks.
    #[error("the task is ambiguous: {}", listed(.0, true))]
    SeveralTasks(Vec<Match>),
    /// The temporary file cannot be written or read.
    #[error("what happened is kept in a temporary file, which failed: {0}")]
    Tape(io::Error),
    /// `proceed` cancelled the search.
    #[error("stopped before the path was found")]
    Stopped,
    /// Nothing lies between the two times.
    #[error("the time is empty")]
    Empty,
}

impl Step {
    /// How long it took, in nanoseconds.
    pub fn ns(&self) -> Duration {
        self.to_ns - self.from_ns
    }

    /// Whether this step continues `before`.
    fn continues(&self, before: &Step) -> bool {
        (self.cpu, &self.why) == (before.cpu, &before.why)
            && (&self.actor, &self.what, &self.waiter) == (&before.actor, &before.what, &before.waiter)
    }
}

impl<F: Read + Write + Seek> CriticalPaths<F> {
    /// The path between two times; without them, over all the time in which the target is known. `proceed` is
    /// called from time to time; it cancels the search by returning false.
    ///
    /// # Errors
    /// The reason why there is no path.
    pub fn path(
        self,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        names: &Names,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<CriticalPath, NoPath> {
        let (tape, target) = self.finish()?;
        let (first, last) = target.life;
        let (from, to) = (from.unwrap_or(first), to.unwrap_or(last));
        if from >= to {
            return Err(NoPath::Empty);
        }
        let past = Past::new(tape, &target);
        Walk::new(past, names).back(target.followed, (from, to), proceed).map_err(|error| {
            match error.kind() {
                ErrorKind::Interrupted => NoPath::Stopped,
                _ => NoPath::Tape(error),
            }
        })
    }
}
