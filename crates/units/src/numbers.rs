//! Numbers of threads, processes, CPUs and user threads, and of a clock's cycles.

use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

/// A thread number, as the kernel assigns it: 0 for an idle thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tid(pub i32);

impl Tid {
    /// The idle thread of each CPU.
    pub const IDLE: Tid = Tid(0);

    /// Whether it is the idle thread of a CPU.
    #[inline]
    pub const fn is_idle(self) -> bool {
        self.0 == 0
    }

    /// The process whose first thread it is, if it is one's first thread.
    #[inline]
    pub const fn as_process(self) -> Pid {
        Pid(self.0)
    }
}

/// A process number, which is that of its first thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Pid(pub i32);

impl Pid {
    /// From the unsigned form of the standard library and of the recorder's messages.
    #[inline]
    pub const fn from_unsigned(number: u32) -> Self {
        Pid(number.cast_signed())
    }

    /// The number without a sign.
    #[inline]
    pub const fn as_unsigned(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// The first thread of the process, which has the same number.
    #[inline]
    pub const fn first_thread(self) -> Tid {
        Tid(self.0)
    }
}

/// A CPU number, as the kernel assigns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Cpu(pub u32);

impl Cpu {
    /// The CPU at this index in a table of all CPUs.
    #[inline]
    pub const fn at(index: usize) -> Self {
        Cpu(index as u32)
    }

    /// Its index in a table of all CPUs.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A user thread's number, such as that of a task of an async runtime: unique in its process, and never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Task(pub u64);

impl Task {
    /// No user thread.
    pub const NONE: Task = Task(0);

    /// Whether it is [`Task::NONE`].
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// A clock value, as the recorder read it, or the difference of two. Only the clock knows the length of a
/// cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Cycles(pub u64);

impl Cycles {
    /// The clock's first value, and no time between two.
    pub const ZERO: Cycles = Cycles(0);
    /// The clock's last value.
    pub const MAX: Cycles = Cycles(u64::MAX);

    /// Cycles since an earlier value; none since a later one.
    #[inline]
    pub const fn since(self, earlier: Cycles) -> Cycles {
        Cycles(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! display {
    ($($type:ty),*) => { $(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

macro_rules! parse {
    ($($type:ident),*) => { $(
        impl FromStr for $type {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map($type)
            }
        }
    )* };
}

display!(Tid, Pid, Cpu, Task, Cycles);
parse!(Tid, Pid, Cpu, Task);
crate::transparent!(Tid, Pid, Cpu, Task, Cycles);
