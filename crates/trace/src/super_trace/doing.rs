//! What threads do, and what makes them ready.

use super::activity::Name;
use super::comm::Comm;
use super::serial::{LwpSerial, TaskSerial};
use tracewing_units::{Cpu, Pid, Task, Tid};

/// What an LWP or a user thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Nobody knows: no event tells yet, or one is missing.
    Unknown,
    /// It is on a CPU.
    Running {
        /// Which.
        cpu: Cpu,
        /// What runs there.
        mode: Mode,
    },
    /// It could go on, and waits for a CPU, or a user thread for an LWP.
    Runnable {
        /// Whether it was taken off, rather than woken.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// The kind of lock for which it waits, else the system call in which it does; or what its user
        /// thread waits for; `None` where no event tells.
        on: Option<Name>,
    },
    /// Of a user thread: its LWP runs another one within it.
    Nested,
}

/// What runs on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody knows.
    Unknown,
    /// The program's own code.
    User,
    /// A system call.
    SystemCall(Name),
    /// An interrupt or softirq, which has nothing to do with whom it interrupts; `None` where no event tells
    /// which. Of several within each other, the innermost.
    Interrupt(Option<Name>),
}

/// Who made something ready: what ran where the wake was recorded. Where that may have been an interrupt of
/// which no event tells, nobody knows who it was: a thread that runs is no proof that it was the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// The CPU.
    pub cpu: Option<Cpu>,
    /// The interrupt or softirq that had it: then the wake is by that, not by whom it interrupted. All below
    /// is then of the thread that raised the softirq in a system call, as one does that sends over the
    /// loopback device; or `None`.
    pub interrupt: Option<Name>,
    /// The system call that it was in.
    pub call: Option<Name>,
    /// The process: its first thread's number.
    pub process: Option<Pid>,
    /// The LWP; 0 is the CPU's idle thread.
    pub tid: Option<Tid>,
    /// The LWP's name.
    pub name: Comm,
    /// The LWP's [`Lwp::serial`].
    pub lwp: Option<LwpSerial>,
    /// The user thread that the LWP ran: its number, unique in the process.
    pub user_thread: Option<Task>,
    /// The user thread's [`UserThread::serial`].
    pub user_thread_serial: Option<TaskSerial>,
}

impl Waker {
    /// Nobody knows who it was.
    pub(super) fn unknown(cpu: Option<Cpu>) -> Self {
        Self {
            cpu,
            interrupt: None,
            call: None,
            process: None,
            tid: None,
            name: Comm::default(),
            lwp: None,
            user_thread: None,
            user_thread_serial: None,
        }
    }
}
