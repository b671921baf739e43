//! System calls: each has two classes of its own.

/// What the name of a class of system calls says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCall<'n> {
    /// The call of this name begins.
    Entry(&'n str),
    /// It ends.
    Exit(&'n str),
}

/// What LTTng puts before the names of calls that 32-bit programs make.
const COMPAT: &str = "compat_";

/// What the names begin with of classes of calls that begin, and of those that end.
const STARTS: (&str, &str) = ("syscall_entry_", "syscall_exit_");

impl<'n> SystemCall<'n> {
    /// What a class of this name says, if it is a system call's.
    pub fn of_name(name: &'n str) -> Option<Self> {
        let name = name.strip_prefix(COMPAT).unwrap_or(name);
        let entry = name.strip_prefix(STARTS.0).map(Self::Entry);
        entry.or_else(|| name.strip_prefix(STARTS.1).map(Self::Exit))
    }

    /// Whether a class of this name is of the end of the call.
    pub fn is_exit_of(name: &'n str, call: &str) -> bool {
        matches!(Self::of_name(name), Some(Self::Exit(ended)) if ended == call)
    }

    /// Kernels have more system calls than this, and a recording of all of them describes them all.
    pub const FEWER: usize = 200;

    /// A pattern for the classes of calls that begin.
    pub const ENTRIES: &'static str = "syscall_entry_*";

    /// A pattern for the classes of calls that end.
    pub const EXITS: &'static str = "syscall_exit_*";

    /// Returns to the program that a signal handler has interrupted. ftrace records no end of it: by then the
    /// thread has the registers of that program, the number of a system call among them.
    pub const SIGNAL_RETURN: &'static str = "rt_sigreturn";
}
