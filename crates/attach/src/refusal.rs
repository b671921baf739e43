//! Why a process was not attached to, with what to do about it. The process runs as before.

use std::io;

use tracewing_units::Pid;

/// Why a process was not attached to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such process, or it ended meanwhile.
    #[error("process {0} does not exist, or has ended")]
    Gone(Pid),
    /// It has ended and its parent has not collected it.
    #[error("process {0} has ended; its parent has not yet collected it")]
    Zombie(Pid),
    /// Its first thread has ended, and others have not, or not yet.
    #[error("the first thread of process {0} has ended, so its memory cannot be reached")]
    FirstThread(Pid),
    /// A thread of the kernel.
    #[error("{0} is a kernel thread")]
    Kernel(Pid),
    /// It belongs to another user, or may not be looked into.
    #[error("process {pid} belongs to user {uid}: only that user or root can attach to it")]
    OtherUser {
        /// Id of the process that is refused.
        pid: Pid,
        /// Id of the user that it runs as.
        uid: u32,
    },
    /// It has kept others from looking into it, or has other capabilities.
    #[error(
        "process {0} does not let its user look into it (it is not dumpable, or has capabilities): attach as root, with CAP_SYS_PTRACE"
    )]
    NotDumpable(Pid),
    /// Root has no rights over it, as in a user namespace or container.
    #[error(
        "process {0} cannot be attached to as root of this container or user namespace: attach as root of the host, with CAP_SYS_PTRACE"
    )]
    LimitedRoot(Pid),
    /// The security module Yama lets a process be traced by its parents only.
    #[error(
        "process {pid} may be attached to by its parents only (kernel.yama.ptrace_scope is {scope}): attach as root"
    )]
    Yama {
        /// Id of the process that is refused.
        pid: Pid,
        /// Value of `kernel.yama.ptrace_scope`.
        scope: u32,
    },
    /// A debugger or tracer has it.
    #[error("process {pid} is traced by process {by} ({name}): detach that first")]
    Traced {
        /// Id of the process that is refused.
        pid: Pid,
        /// Process id of its tracer.
        by: Pid,
        /// Name of the tracing process.
        name: String,
    },
    /// It was stopped, by Ctrl-Z for example.
    #[error("process {0} is stopped: let it continue (kill -CONT {0}) and attach again")]
    Stopped(Pid),
    /// A program of 32 bits.
    #[error("process {0} is a 32-bit program, which tracewing cannot attach to")]
    Bits(Pid),
    /// It shares its parent's memory until it executes a program or ends.
    #[error(
        "process {0} runs in its parent's memory (vfork): attach to its parent, or when it has executed its program"
    )]
    SharedMemory(Pid),
    /// A filter for system calls would refuse a call, or end the process for it.
    #[error("process {pid} has a seccomp filter that does not allow `{call}`, which attaching needs")]
    Filtered {
        /// Id of the process that is refused.
        pid: Pid,
        /// Name of the system call that the filter refuses.
        call: &'static str,
    },
    /// It has filters for system calls that cannot be read.
    #[error(
        "process {pid} has a seccomp filter that cannot be read ({source}): attach as root with all its rights (CAP_SYS_ADMIN, and no filter of its own), from outside of its container"
    )]
    UnknownFilter {
        /// Id of the process that is refused.
        pid: Pid,
        /// Error that the system returned.
        source: io::Error,
    },
    /// It ignores the signals, or uses processor features, with which no call can be made.
    #[error("process {pid} cannot be attached to: {why}")]
    Unsupported {
        /// Id of the process that is refused.
        pid: Pid,
        /// Which property of the process prevents it.
        why: Unsupported,
    },
    /// None of its threads slept in a system call that can be interrupted without effect.
    #[error(
        "process {pid}: none of its {threads} threads waited in a system call that can be interrupted without effect \
         within {seconds:.1} s; try again"
    )]
    Busy {
        /// Id of the process that is refused.
        pid: Pid,
        /// How many threads it has.
        threads: usize,
        /// How long a thread was looked for, in seconds.
        seconds: f64,
    },
    /// The call took too long. The thread finishes it on its own.
    #[error("process {0} did not finish the call in time; its thread continues on its own")]
    Late(Pid),
    /// The dynamic linker has not prepared what the call is in, or is unloading it.
    #[error("process {0} is starting, or ending, or loads or unloads a library: try again")]
    NotReady(Pid),
    /// The call ended in a fault, and the thread was restored.
    #[error("the call in process {0} failed and was undone: its code is missing or damaged")]
    Fault(Pid),
    /// Two recorders attach at the same moment.
    #[error("another recorder is attaching to process {0}: try again")]
    Taken(Pid),
    /// A system call failed that should not.
    #[error("process {pid}: {call}: {source}")]
    System {
        /// Id of the process that is refused.
        pid: Pid,
        /// Name of the system call that failed.
        call: &'static str,
        /// Error that the system returned.
        source: io::Error,
    },
}

/// What a process or processor has with which no call can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// The thread's vector registers do not fit into the room for them.
    #[error("this processor's vector registers cannot be saved")]
    VectorRegisters,
    /// The processor protects return addresses.
    #[error("it has a shadow stack")]
    ShadowStack,
}
