//! What threads do, and what makes them ready.

use super::activity::Name;
use super::comm::Comm;
use super::serial::{LwpSerial, TaskSerial};
use tracewing_units::{Cpu, Pid, Task, Tid};

/// What an LWP or a user thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Unknown: no event determines it yet, or one is missing.
    Unknown,
    /// It is on a CPU.
    Running {
        /// The CPU that it has.
        cpu: Cpu,
        /// Whether the program, a system call or an interrupt runs there.
        mode: Mode,
    },
    /// It could continue, and waits for a CPU, or a user thread for an LWP.
    Runnable {
        /// Whether it was taken off, rather than woken.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// The kind of lock that it waits for, or else the system call in which it waits; or the cause of its
        /// user thread's wait; `None` if no event determines it.
        on: Option<Name>,
    },
    /// Of a user thread: its LWP runs another one within it.
    Nested,
}

/// What runs on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No event determines it.
    Unknown,
    /// The program's own code.
    User,
    /// The system call of this name.
    SystemCall(Name),
    /// An interrupt or softirq, which is unrelated to the interrupted thread; `None` if no event identifies
    /// it. The innermost one if they are nested.
    Interrupt(Option<Name>),
}

/// What made a thread ready: whatever ran where the wake was recorded. If that may have been an interrupt
/// that no event reports, the waker is unknown: the running thread may not be the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// The CPU on which the wake was recorded.
    pub cpu: Option<Cpu>,
    /// The interrupt or softirq that had the CPU: then it is the waker, not the interrupted thread. The
    /// following fields then describe the thread that raised the softirq in a system call, for instance by
    /// sending over the loopback device; otherwise they are `None`.
    pub interrupt: Option<Name>,
    /// The system call that it was in.
    pub call: Option<Name>,
    /// What it was in, as far as is known.
    pub mode: Mode,
    /// Whether it is one of the kernel's own threads, which have no program.
    pub is_kernel: bool,
    /// The process: its first thread's number.
    pub process: Option<Pid>,
    /// The LWP; 0 is the CPU's idle thread.
    pub tid: Option<Tid>,
    /// The LWP's name at that time.
    pub name: Comm,
    /// The LWP's [`serial`](super::lwp::Lwp::serial).
    pub lwp: Option<LwpSerial>,
    /// The user thread that the LWP ran: its number, unique in the process.
    pub user_thread: Option<Task>,
    /// The user thread's [`serial`](super::user_thread::UserThread::serial).
    pub user_thread_serial: Option<TaskSerial>,
}

impl Waker {
    pub(super) fn unknown(cpu: Option<Cpu>) -> Self {
        Self {
            cpu,
            interrupt: None,
            call: None,
            mode: Mode::Unknown,
            is_kernel: false,
            process: None,
            tid: None,
            name: Comm::default(),
            lwp: None,
            user_thread: None,
            user_thread_serial: None,
        }
    }
}
