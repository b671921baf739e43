//! What the analyses see of an event: when, where, by whom, and the few things that kernel events mean for a thread.

/// One event of the super-trace: the merged kernel and user events, each with the processor and the lightweight
/// process that it belongs to (Danjean, Wacrenier, Namyst: An Efficient Multi-level Trace Toolkit, section 3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activity<'a> {
    /// When, in nanoseconds on the recording's clock.
    pub time: i64,
    /// The CPU that recorded it, where the trace says.
    pub cpu: Option<u32>,
    /// The thread that recorded it, where the trace says; 0 is a CPU's idle thread.
    pub tid: Option<i32>,
    /// What happened.
    pub kind: Kind<'a>,
}

/// What happened. Names are the kernel's `comm`: at most 15 bytes, any bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind<'a> {
    /// `sched_switch`.
    Switch {
        /// The thread that leaves the CPU.
        prev: i32,
        /// Its name.
        prev_name: &'a [u8],
        /// Its state: 0 or above 0xff means that it would have gone on, else a bit of `TASK_REPORT`.
        prev_state: i64,
        /// The thread that gets the CPU.
        next: i32,
        /// Its name.
        next_name: &'a [u8],
    },
    /// `sched_waking`: somebody asks for the thread to run.
    Waking {
        /// The woken thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// `sched_wakeup`, `sched_wakeup_new`: the thread has become runnable.
    Wakeup {
        /// The woken thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// `sched_process_fork`, for new threads too.
    Fork {
        /// The new thread.
        child: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// `task_newtask`: says more of a new thread than the fork.
    NewTask {
        /// The new thread.
        child: i32,
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
    Syscall,
    /// An interrupt, softirq or exception vector takes the CPU.
    InterruptEntry,
    /// It gives the CPU back.
    InterruptExit,
    /// A thread of an instrumented program introduces itself (`tracewing:thread`).
    Introduction {
        /// Its process.
        process: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// A state dump names a living thread, whoever recorded it.
    Dump {
        /// The thread.
        tid: i32,
        /// Its process.
        process: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// An event of a program.
    User,
    /// Any other event of the kernel.
    Kernel,
}

/// Which events a loss concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Kernel events of one CPU, or of any if unknown: what happened there is not known.
    Kernel(Option<u32>),
    /// Events of programs.
    User,
}
