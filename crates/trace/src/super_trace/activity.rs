//! What the super-trace sees of an event: when, where, by whom, and the few things that it means for a
//! thread.

use tracewing_units::{Cpu, Pid, Task, Tid, Timestamp};

pub use tracewing_vocabulary::kernel::{Interrupt, TaskState};

/// The name of a system call, of another cause of waiting, or of an interrupt, as a small number:
/// [`Adapter::name`](super::Adapter::name) tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Name(pub u32);

/// One event of the super-trace: the merged kernel and user events, each with the processor and the
/// lightweight process that it belongs to (Danjean, Wacrenier, Namyst: An Efficient Multi-level Trace
/// Toolkit, section 2.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activity<'a> {
    /// When, in nanoseconds on the recording's clock.
    pub time: Timestamp,
    /// The CPU that recorded it, where the trace says.
    pub cpu: Option<Cpu>,
    /// The thread that recorded it, where the trace says; 0 is a CPU's idle thread.
    pub tid: Option<Tid>,
    /// Its process, where the event itself says.
    pub process: Option<Pid>,
    /// Whose work the CPU was at, where the event itself says.
    pub context: Context,
    /// What happened.
    pub kind: Kind<'a>,
}

/// Whose work a CPU was at when the kernel recorded an event: of those events of which it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context {
    /// The event does not say.
    #[default]
    Unknown,
    /// Its thread's.
    Thread,
    /// A softirq's; what it is called where no event says which.
    Softirq(Name),
    /// An interrupt's, likewise; also one that has interrupted a softirq.
    Interrupt(Name),
}

/// What happened. Names are the kernel's `comm`, at most 15 bytes, or a program's own: any bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind<'a> {
    /// `sched_switch`.
    Switch {
        /// The thread that leaves the CPU.
        prev: Tid,
        /// Its name.
        prev_name: &'a [u8],
        /// Its state from now on.
        prev_state: TaskState,
        /// The thread that gets the CPU.
        next: Tid,
        /// Its name.
        next_name: &'a [u8],
    },
    /// `sched_waking`: somebody asks for the thread to run.
    Waking {
        /// The woken thread.
        tid: Tid,
        /// Its name.
        name: &'a [u8],
    },
    /// `sched_wakeup`, `sched_wakeup_new`: the thread has become runnable.
    Wakeup {
        /// The woken thread.
        tid: Tid,
        /// Its name.
        name: &'a [u8],
    },
    /// `sched_process_fork`, for new threads too.
    Fork {
        /// The new thread.
        child: Tid,
        /// Its name.
        name: &'a [u8],
    },
    /// `task_newtask`: says more of a new thread than the fork.
    NewTask {
        /// The new thread.
        child: Tid,
        /// Whether it belongs to its creator's process.
        same_process: bool,
    },
    /// `sched_process_exec` by the event's thread, which is its process' main thread from now on.
    Exec {
        /// The program's path.
        file: &'a [u8],
    },
    /// `sched_process_exit` of the event's thread.
    Exit,
    /// A system call begins.
    SystemCall {
        /// Which.
        call: Name,
    },
    /// A system call begins whose end the recording does not have.
    UnendedCall {
        /// Which.
        call: Name,
        /// What the thread does after it, where that is certain: `rt_sigreturn` goes back to the program at
        /// once, and the kernel never records its end.
        returns: bool,
    },
    /// A system call ends.
    SystemCallEnd {
        /// Which.
        call: Name,
    },
    /// An interrupt, softirq or exception vector takes the CPU.
    InterruptEntry {
        /// What it is.
        kind: Interrupt,
        /// Which: its vector, its handler's name, the softirq.
        name: Name,
    },
    /// It gives the CPU back.
    InterruptExit(Interrupt),
    /// `irq_softirq_raise`: whatever runs here asks for a softirq, which soon runs on this CPU.
    Raise {
        /// The softirq.
        name: Name,
    },
    /// `sock_send_length`, `sock_recv_length`: the event's thread has used a socket.
    Socket,
    /// The event's thread touched a page that was not there. The kernel does not say when it goes on.
    PageFault {
        /// Whether its program did, not the kernel for it.
        user: bool,
        /// Whether the page or the program's code lies above 4 GiB, where 32-bit programs have nothing; true
        /// where the event does not say where.
        high: bool,
    },
    /// A thread of an instrumented program introduces itself (`tracewing:thread`).
    Introduction {
        /// Its process.
        process: Pid,
        /// Its name.
        name: &'a [u8],
    },
    /// The event's thread, the first one of its process, introduces itself once more, and no exec was told
    /// meanwhile: it executes another program by now, or is another process of the same number.
    Program {
        /// Its name.
        name: &'a [u8],
    },
    /// A state dump names a living thread, whoever recorded it.
    Dump {
        /// The thread.
        tid: Tid,
        /// Its process.
        process: Pid,
        /// Its name.
        name: &'a [u8],
        /// Whether it is a thread of the kernel's own.
        is_kernel: bool,
    },
    /// A thread slept when its events began to be recorded, whichever thread says so.
    Asleep {
        /// The thread.
        tid: Tid,
        /// The system call in which it sleeps, where that is known.
        call: Option<Name>,
    },
    /// What a program tells of its user threads.
    UserThread(UserThreadKind<'a>),
    /// A program tells (`lock:*`) that the event's thread begins to wait for something of this kind, or waits
    /// no longer.
    Waits {
        /// What it waits for: the label of `kind`, `condition` or `barrier`.
        on: Option<Name>,
    },
    /// The event's thread was looked at while it had the CPU (`profile:sample`).
    Sample {
        /// Whether it was in its program, not in the kernel.
        user: bool,
        /// Whether the CPU's timer took the sample, with an interrupt that is no part of what is seen.
        by_timer: bool,
    },
    /// The event's thread has this name from now on (`profile:thread`).
    Named {
        /// Its process.
        process: Pid,
        /// Its name.
        name: &'a [u8],
    },
    /// The event's thread has made another one (`profile:fork`).
    Made {
        /// The new thread.
        child: Tid,
        /// Its process.
        process: Pid,
    },
    /// Something that tells of no thread what it does.
    Aside,
    /// An event of a program.
    User,
    /// Any other event of the kernel.
    Kernel,
}

/// What a program tells of its user threads: events `user_thread:*`. Their numbers are the program's, unique
/// in its process and never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UserThreadKind<'a> {
    /// There is a new one, which may run from now on.
    Create {
        /// It.
        thread: Task,
        /// What it has in common with others that are created at the same place.
        origin: u64,
    },
    /// One that was created before the recording.
    Existed {
        /// It.
        thread: Task,
        /// As of one that is created.
        origin: u64,
    },
    /// What an origin's number stands for, in every program; told before or right behind one that has it.
    Origin {
        /// It.
        origin: u64,
        /// What its user threads are called; empty where they have no name but their place.
        name: &'a [u8],
        /// The file of the source in which they are created.
        file: &'a [u8],
        /// The line.
        line: u64,
    },
    /// It is called otherwise from now on.
    Rename {
        /// It.
        thread: Task,
        /// What it is called.
        name: &'a [u8],
    },
    /// The event's LWP runs another one from now on.
    Switch {
        /// The one that it ran, 0 for none.
        prev: Task,
        /// The one that it runs, 0 for none.
        next: Task,
        /// Why `prev` stopped.
        cause: SwitchCause,
    },
    /// It is made ready by whatever the event's LWP is at.
    Wake {
        /// It.
        thread: Task,
    },
    /// It is gone.
    Exit {
        /// It.
        thread: Task,
    },
    /// The LWP's user thread begins to wait for something.
    Wait {
        /// What kind of thing: the label of `kind`.
        kind: Name,
    },
    /// It has got that, or has given it up.
    Acquired,
    /// The LWP is a worker that runs no user thread: it introduces itself, parks or goes on.
    Worker,
}

/// Why a user thread stopped running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchCause {
    /// Nobody says.
    Unknown,
    /// It has ended.
    Ended,
    /// It waits for something.
    Blocked,
    /// It could go on: it woke itself.
    Yielded,
    /// It could go on, but has spent its cooperative budget.
    Budget,
    /// It could go on, but its time slice is over.
    Preempted,
    /// It runs another one within itself, and goes on when that stops.
    Nested,
}

/// Which events a loss concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Kernel events of one CPU, or of any if unknown: what happened there is not known.
    Kernel(Option<Cpu>),
    /// Events of programs.
    User,
    /// Samples: of nobody is anything missing that he did.
    Samples,
}
