//! System calls: each has two classes of its own.

/// The meaning of the name of a class of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemCall<'n> {
    /// The call of this name begins.
    Entry(&'n str),
    /// The call of this name ends.
    Exit(&'n str),
}

/// LTTng's prefix of the names of calls by 32-bit programs.
const COMPAT: &str = "compat_";

/// Prefixes of the names of classes for begins and for ends of calls.
const STARTS: (&str, &str) = ("syscall_entry_", "syscall_exit_");

impl<'n> SystemCall<'n> {
    /// Parses a class name; `None` if it is not that of a system call.
    pub fn of_name(name: &'n str) -> Option<Self> {
        let name = name.strip_prefix(COMPAT).unwrap_or(name);
        let entry = name.strip_prefix(STARTS.0).map(Self::Entry);
        entry.or_else(|| name.strip_prefix(STARTS.1).map(Self::Exit))
    }

    /// Whether a class of this name records the end of the call.
    pub fn is_exit_of(name: &'n str, call: &str) -> bool {
        matches!(Self::of_name(name), Some(Self::Exit(ended)) if ended == call)
    }

    /// Calls that kernels of all architectures have. Together they have nothing in common: where a trace of
    /// another tracer describes them all, all system calls were asked for, not those of a pattern.
    pub const OF_ALL_KERNELS: [&'static str; 24] = [
        "bind",
        "brk",
        "capget",
        "clone",
        "dup",
        "epoll_ctl",
        "fcntl",
        "futex",
        "getppid",
        "io_setup",
        "kill",
        "listen",
        "madvise",
        "mq_open",
        "nanosleep",
        "openat",
        "ppoll",
        "quotactl",
        "read",
        "shmat",
        "sync",
        "umask",
        "vhangup",
        "write",
    ];

    /// A pattern for the classes of begins of calls.
    pub const ENTRIES: &'static str = "syscall_entry_*";

    /// A pattern for the classes of ends of calls.
    pub const EXITS: &'static str = "syscall_exit_*";

    /// Returns to the code that a signal handler has interrupted. ftrace records no end of it: by then the
    /// thread has the registers of that code, the number of a system call among them.
    pub const SIGNAL_RETURN: &'static str = "rt_sigreturn";
}
