//! The events of provider `lock`: those of this module's locks, and those that the crate `tracewing-preload` tells besides.
//! `docs/locks.md` says what they mean together.

use crate::{Event, EventField};

/// What was acquired, and how. The numbers are those of [`user_thread::Kind`](crate::user_thread::Kind), as far as that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EventField)]
#[event(crate = crate)]
#[repr(u8)]
pub enum Kind {
    #[event(name = "mutex")]
    Mutex = 0,
    #[event(name = "read")]
    Read = 1,
    #[event(name = "write")]
    Write = 2,
    #[event(name = "semaphore")]
    Semaphore = 3,
    #[event(name = "spin")]
    Spin = 16,
}

/// The thread wants a lock that it could not have at once.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{kind} {lock:#x}, which thread {owner} has, wanted at {caller:#x}")]
pub struct Requested {
    #[event(hex)]
    pub lock: u64,
    /// Where the program called.
    #[event(hex)]
    pub caller: u64,
    pub kind: Kind,
    /// The thread that has the lock, as the lock itself says; 0 where it does not.
    pub owner: i32,
}

/// The thread has the lock.
#[derive(Event)]
#[event(crate = crate, provider = "lock", ordered, print = "{kind} {lock:#x} at {caller:#x}, waited: {waited}")]
pub struct Acquired {
    #[event(hex)]
    pub lock: u64,
    #[event(hex)]
    pub caller: u64,
    pub kind: Kind,
    /// Whether it could not have it at once.
    pub waited: bool,
}

/// The thread has tried for the lock that it wants, and has it now or goes to sleep.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{lock:#x}, {spins} times")]
pub struct Spun {
    #[event(hex)]
    pub lock: u64,
    /// How often.
    pub spins: u64,
}

/// Where the program calls that has this number as its caller; told when it is new.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{caller:#x} is {file}:{line}")]
pub struct Place<'a> {
    #[event(hex)]
    pub caller: u64,
    pub file: &'a str,
    pub line: u32,
}

/// The thread did not get the lock: it was taken (`EBUSY`, of a try), the time was up (`ETIMEDOUT`), or another error.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{kind} {lock:#x} at {caller:#x}: error {error}")]
pub struct Refused {
    #[event(hex)]
    pub lock: u64,
    #[event(hex)]
    pub caller: u64,
    pub kind: Kind,
    /// As in `errno`.
    pub error: i32,
}

/// The thread gives the lock back: the next thing that it does.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{lock:#x}")]
pub struct Released {
    #[event(hex)]
    pub lock: u64,
}

/// Giving the lock back, which was just told, has failed.
#[derive(Event)]
#[event(crate = crate, provider = "lock", level = "warn", print = "{lock:#x}: error {error}")]
pub struct NotReleased {
    #[event(hex)]
    pub lock: u64,
    pub error: i32,
}

/// The thread gives a permit to a semaphore.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "semaphore {lock:#x} at {caller:#x}")]
pub struct Posted {
    #[event(hex)]
    pub lock: u64,
    #[event(hex)]
    pub caller: u64,
}

/// The thread waits for a condition variable, and gives the mutex back for that time.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "condition {condition:#x} with mutex {lock:#x} at {caller:#x}")]
pub struct ConditionWait {
    #[event(hex)]
    pub condition: u64,
    #[event(hex)]
    pub lock: u64,
    #[event(hex)]
    pub caller: u64,
}

/// The thread waits for the condition variable no longer, and has the mutex again.
#[derive(Event)]
#[event(crate = crate, provider = "lock", ordered, print = "condition {condition:#x} with mutex {lock:#x}: error {error}")]
pub struct ConditionWoken {
    #[event(hex)]
    pub condition: u64,
    #[event(hex)]
    pub lock: u64,
    /// 0 or `ETIMEDOUT`; with any other error the mutex was not given back.
    pub error: i32,
}

/// The thread wakes who waits for the condition variable.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "condition {condition:#x} at {caller:#x}, all: {all}")]
pub struct ConditionSignalled {
    #[event(hex)]
    pub condition: u64,
    #[event(hex)]
    pub caller: u64,
    /// Everybody, not only one.
    pub all: bool,
}

/// The thread has come to a barrier.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "barrier {barrier:#x} at {caller:#x}")]
pub struct BarrierWait {
    #[event(hex)]
    pub barrier: u64,
    #[event(hex)]
    pub caller: u64,
}

/// Everybody has come to the barrier.
#[derive(Event)]
#[event(crate = crate, provider = "lock", ordered, print = "barrier {barrier:#x}, serial: {serial}")]
pub struct BarrierPassed {
    #[event(hex)]
    pub barrier: u64,
    /// Whether this is the one thread of them that is told so.
    pub serial: bool,
}

/// By which call chain the thread came to the acquisition that it is at.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{lock:#x} by chain {chain:#x}")]
pub struct CalledFrom {
    #[event(hex)]
    pub lock: u64,
    /// Which one: `lock:call_chain` says what it is.
    #[event(hex)]
    pub chain: u64,
}

/// What a call chain is; told when it is new, and again behind each sub-buffer that is opened.
#[derive(Event)]
#[event(crate = crate, provider = "lock")]
pub struct CallChain<'a> {
    #[event(hex)]
    pub chain: u64,
    /// Return addresses, the innermost first.
    #[event(hex)]
    pub frames: &'a [u64],
}

/// Which file the code between two addresses is from; told as chains are.
#[derive(Event)]
#[event(crate = crate, provider = "lock", print = "{begin:#x} to {end:#x} are {path}")]
pub struct Image<'a> {
    #[event(hex)]
    pub begin: u64,
    #[event(hex)]
    pub end: u64,
    /// What is added to an address in the file.
    #[event(hex)]
    pub bias: u64,
    pub path: &'a str,
}

/// Another object has the function than is expected: one in front of `tracewing-preload`'s, which calls of the program may come to
/// or not; or an allocator, whose locks are recorded with the program's.
#[derive(Event)]
#[event(crate = crate, provider = "lock", level = "warn", print = "{function} is also defined by {path}, in front")]
pub struct Shadowed<'a> {
    pub function: &'a str,
    pub path: &'a str,
}
