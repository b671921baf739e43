//! The aspects of an event that matter to the super-trace: time, CPU, thread, and its meaning for the thread.

use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

pub use tracewing_vocabulary::kernel::{Interrupt, TaskState};

/// The name of a system call, of another cause of waiting, or of an interrupt, as a small number;
/// [`Adapter::name`](super::Adapter::name) has the text.
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
    /// Context of the CPU, if the event reports it.
    pub context: Context,
    /// The kind of event, with the fields that matter for it.
    pub kind: Kind<'a>,
}

/// What a CPU was executing when the kernel recorded an event, for events for which it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context {
    /// The event does not say.
    #[default]
    Unknown,
    /// The code of its thread: program or system call.
    Thread,
    /// A softirq; its name is a general one if no event identifies it.
    Softirq(Name),
    /// An interrupt, also one that has interrupted a softirq; its name is a general one if no event
    /// identifies it.
    Interrupt(Name),
}

/// What happened. Names are the kernel's `comm`, at most 15 bytes, or a program's own: any bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind<'a> {
    /// `sched_switch`: the CPU of the event passes from one thread to another.
    Switch {
        /// The thread that leaves the CPU.
        prev: Tid,
        /// The name of the thread that leaves.
        prev_name: &'a [u8],
        /// Its state from now on.
        prev_state: TaskState,
        /// The thread that gets the CPU.
        next: Tid,
        /// The name of the thread that gets the CPU.
        next_name: &'a [u8],
    },
    /// `sched_waking`: a wake of the thread is requested.
    Waking {
        /// The woken thread.
        tid: Tid,
        /// The name of the woken thread.
        name: &'a [u8],
    },
    /// `sched_wakeup`, `sched_wakeup_new`: the thread has become runnable.
    Wakeup {
        /// The woken thread.
        tid: Tid,
        /// The name of the woken thread.
        name: &'a [u8],
    },
    /// `sched_process_fork`, for new threads too.
    Fork {
        /// The new thread.
        child: Tid,
        /// The name of the new thread.
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
    Exit {
        /// Its name; empty if the event does not have it.
        name: &'a [u8],
    },
    /// A system call begins.
    SystemCall {
        /// Number of the system call's name.
        call: Name,
    },
    /// A system call begins whose end the recording does not have.
    UnendedCall {
        /// Number of the system call's name.
        call: Name,
        /// What the thread does after it, where that is certain: `rt_sigreturn` goes back to the program at
        /// once, and the kernel never records its end.
        returns: bool,
    },
    /// A system call ends.
    SystemCallEnd {
        /// Number of the system call's name.
        call: Name,
    },
    /// An interrupt, softirq or exception vector takes the CPU.
    InterruptEntry {
        /// Whether it is an interrupt, a softirq or an exception vector.
        kind: Interrupt,
        /// Which: its vector, its handler's name, the softirq.
        name: Name,
    },
    /// It gives the CPU back.
    InterruptExit(Interrupt),
    /// `irq_softirq_raise`: whatever runs here asks for a softirq, which soon runs on this CPU.
    Raise {
        /// Number of the softirq's name.
        name: Name,
    },
    /// `sock_send_length`, `sock_recv_length`: the event's thread has used a socket.
    Socket,
    /// The event's thread touched a page that was not present. The kernel does not report when it continues.
    PageFault {
        /// Whether its program did, not the kernel for it.
        user: bool,
        /// Whether the page or the program's code lies above 4 GiB, where 32-bit programs have nothing; true
        /// if the event has no address.
        high: bool,
    },
    /// A thread of an instrumented program introduces itself (`tracewing:thread`).
    Introduction {
        /// The process of the thread.
        process: Pid,
        /// The name of the thread.
        name: &'a [u8],
    },
    /// The event's thread, the first one of its process, introduces itself again, and no exec was reported in
    /// between: it executes another program by now, or is another process of the same number.
    Program {
        /// The name of the program.
        name: &'a [u8],
    },
    /// A state dump names a live thread, whichever thread recorded it.
    Dump {
        /// The thread that is described.
        tid: Tid,
        /// The process of that thread.
        process: Pid,
        /// The name of that thread.
        name: &'a [u8],
        /// Whether it is a kernel thread's own.
        is_kernel: bool,
    },
    /// A thread slept when its events began to be recorded, whichever thread says so.
    Asleep {
        /// The thread that sleeps.
        tid: Tid,
        /// The system call in which it sleeps, where that is known.
        call: Option<Name>,
    },
    /// An event of a program about its user threads.
    UserThread(UserThreadKind<'a>),
    /// A program reports (`lock:*`) that the event's thread begins to wait for something of this kind, or no
    /// longer waits.
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
        /// The process of the thread.
        process: Pid,
        /// The new name of the thread.
        name: &'a [u8],
    },
    /// The event's thread has made another one (`profile:fork`).
    Made {
        /// The new thread.
        child: Tid,
        /// The process of the new thread.
        process: Pid,
    },
    /// An event that changes no thread's state.
    Stateless,
    /// An event of a program.
    User,
    /// Any other event of the kernel.
    Kernel,
}

impl<'a> Kind<'a> {
    /// The same with other texts; `text` gets them in order.
    #[inline]
    pub(super) fn map_texts<'b>(self, mut text: impl FnMut(&'a [u8]) -> &'b [u8]) -> Kind<'b> {
        match self {
            Kind::Switch { prev, prev_name, prev_state, next, next_name } => {
                let (prev_name, next_name) = (text(prev_name), text(next_name));
                Kind::Switch { prev, prev_name, prev_state, next, next_name }
            }
            Kind::Waking { tid, name } => Kind::Waking { tid, name: text(name) },
            Kind::Wakeup { tid, name } => Kind::Wakeup { tid, name: text(name) },
            Kind::Fork { child, name } => Kind::Fork { child, name: text(name) },
            Kind::NewTask { child, same_process } => Kind::NewTask { child, same_process },
            Kind::Exec { file } => Kind::Exec { file: text(file) },
            Kind::Exit { name } => Kind::Exit { name: text(name) },
            Kind::SystemCall { call } => Kind::SystemCall { call },
            Kind::UnendedCall { call, returns } => Kind::UnendedCall { call, returns },
            Kind::SystemCallEnd { call } => Kind::SystemCallEnd { call },
            Kind::InterruptEntry { kind, name } => Kind::InterruptEntry { kind, name },
            Kind::InterruptExit(interrupt) => Kind::InterruptExit(interrupt),
            Kind::Raise { name } => Kind::Raise { name },
            Kind::Socket => Kind::Socket,
            Kind::PageFault { user, high } => Kind::PageFault { user, high },
            Kind::Introduction { process, name } => Kind::Introduction { process, name: text(name) },
            Kind::Program { name } => Kind::Program { name: text(name) },
            Kind::Dump { tid, process, name, is_kernel } => {
                Kind::Dump { tid, process, name: text(name), is_kernel }
            }
            Kind::Asleep { tid, call } => Kind::Asleep { tid, call },
            Kind::UserThread(kind) => Kind::UserThread(kind.map_texts(text)),
            Kind::Waits { on } => Kind::Waits { on },
            Kind::Sample { user, by_timer } => Kind::Sample { user, by_timer },
            Kind::Named { process, name } => Kind::Named { process, name: text(name) },
            Kind::Made { child, process } => Kind::Made { child, process },
            Kind::Stateless => Kind::Stateless,
            Kind::User => Kind::User,
            Kind::Kernel => Kind::Kernel,
        }
    }
}

/// Events of programs about their user threads: `user_thread:*`. Numbers are the program's, unique in its
/// process and never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UserThreadKind<'a> {
    /// There is a new one, which may run from now on.
    Create {
        /// Number of the new user thread.
        thread: Task,
        /// What it has in common with others that are created at the same place.
        origin: Origin,
    },
    /// One that was created before the recording.
    Existed {
        /// Number of the user thread.
        thread: Task,
        /// As of one that is created.
        origin: Origin,
    },
    /// The definition of an origin's number, in every program; reported before or right after a user thread
    /// with it.
    Origin {
        /// Number of the origin.
        origin: Origin,
        /// What its user threads are called; empty where they have no name but their place.
        name: &'a [u8],
        /// The file of the source in which they are created.
        file: &'a [u8],
        /// The line in that file; 0 if unknown.
        line: u64,
    },
    /// It is called otherwise from now on.
    Rename {
        /// Number of the user thread.
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
    /// The user thread is made ready by whatever the event's LWP runs.
    Wake {
        /// Number of the user thread.
        thread: Task,
    },
    /// The user thread has ended.
    Exit {
        /// Number of the user thread.
        thread: Task,
    },
    /// The LWP's user thread begins to wait for something.
    Wait {
        /// What kind of thing: the label of `kind`.
        kind: Name,
    },
    /// It has got that, or has given it up.
    Acquired,
    /// The LWP is a worker that runs no user thread: it introduces itself, parks or continues.
    Worker,
}

impl<'a> UserThreadKind<'a> {
    /// As [`Kind::map_texts`].
    #[inline]
    fn map_texts<'b>(self, mut text: impl FnMut(&'a [u8]) -> &'b [u8]) -> UserThreadKind<'b> {
        use UserThreadKind::*;
        match self {
            Create { thread, origin } => Create { thread, origin },
            Existed { thread, origin } => Existed { thread, origin },
            Origin { origin, name, file, line } => {
                let (name, file) = (text(name), text(file));
                Origin { origin, name, file, line }
            }
            Rename { thread, name } => Rename { thread, name: text(name) },
            Switch { prev, next, cause } => Switch { prev, next, cause },
            Wake { thread } => Wake { thread },
            Exit { thread } => Exit { thread },
            Wait { kind } => Wait { kind },
            Acquired => Acquired,
            Worker => Worker,
        }
    }
}

/// Why a user thread stopped running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchCause {
    /// The program does not report why.
    Unknown,
    /// It has ended.
    Ended,
    /// It waits for something.
    Blocked,
    /// It could continue: it woke itself.
    Yielded,
    /// It could continue, but has spent its cooperative budget.
    Budget,
    /// It could continue, but its time slice is over.
    Preempted,
    /// It runs another one nested, and continues when that stops.
    Nested,
    /// It has not ended; the program does not know whether it is blocked or ready.
    Pending,
}

/// Which events a loss concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Kernel events of one CPU, or of any if unknown: what happened there is not known.
    Kernel(Option<Cpu>),
    /// Events of programs.
    User,
    /// Samples: losing them affects no thread's state.
    Samples,
}
