//! The events of provider `user_thread`. `docs/tasks.md` says what they mean together.

use crate::{Event, EventField};

/// Why a thread of the kernel stopped running a user thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EventField)]
#[event(crate = crate)]
#[repr(u8)]
pub enum Cause {
    /// It ran none.
    #[event(name = "none")]
    None = 0,
    /// The user thread has ended.
    #[event(name = "ended")]
    Ended = 1,
    /// It waits for something.
    #[event(name = "blocked")]
    Blocked = 2,
    /// It could go on, and lets others run: it woke itself.
    #[event(name = "yielded")]
    Yielded = 3,
    /// It could go on, and has spent what it may do at a stretch.
    #[event(name = "budget")]
    Budget = 4,
    /// Its time slice is over.
    #[event(name = "preempted")]
    Preempted = 5,
    /// It runs another one inside itself, and goes on when that stops.
    #[event(name = "nested")]
    Nested = 6,
}

/// How a user thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EventField)]
#[event(crate = crate)]
#[repr(u8)]
pub enum Outcome {
    /// It came to its end.
    #[event(name = "completed")]
    Completed = 0,
    /// It was dropped before.
    #[event(name = "cancelled")]
    Cancelled = 1,
    /// It panicked.
    #[event(name = "panicked")]
    Panicked = 2,
    /// One of these; who tells the end does not know which.
    #[event(name = "unknown")]
    Unknown = 3,
}

/// What a user thread waits for or holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EventField)]
#[event(crate = crate)]
#[repr(u8)]
pub enum Kind {
    /// A mutex.
    #[event(name = "mutex")]
    Mutex = 0,
    /// A read-write lock, for reading.
    #[event(name = "read")]
    Read = 1,
    /// A read-write lock, for writing.
    #[event(name = "write")]
    Write = 2,
    /// Permits of a semaphore.
    #[event(name = "semaphore")]
    Semaphore = 3,
    /// Room in a channel.
    #[event(name = "send")]
    Send = 4,
    /// Something in a channel.
    #[event(name = "receive")]
    Receive = 5,
    /// A notification.
    #[event(name = "notified")]
    Notified = 6,
}

/// A user thread exists, and is ready to run.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Create {
    pub thread: u64,
    /// Who created it, 0 for no user thread.
    pub parent: u64,
    /// Which [`Origin`].
    #[event(hex)]
    pub origin: u64,
}

/// What user threads have in common that are created at one place; or, without name and runtime, the place of a request. Repeated in
/// each sub-buffer that has events of this origin.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Origin<'a> {
    /// A number made of the rest.
    #[event(hex)]
    pub origin: u64,
    pub name: &'a str,
    pub runtime: &'a str,
    pub file: &'a str,
    pub line: u32,
}

/// A user thread has this name from now on.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Name<'a> {
    pub thread: u64,
    pub name: &'a str,
}

/// The thread of the kernel ran `prev`, and runs `next` from now on; 0 stands for none.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Switch {
    pub prev: u64,
    pub next: u64,
    pub cause: Cause,
}

/// A user thread was made ready, by whatever runs on this CPU.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Wake {
    pub thread: u64,
}

/// A user thread ends.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Exit {
    pub thread: u64,
    pub outcome: Outcome,
}

/// A request cannot have its object at once, and waits. The events of one request have the same ticket, whichever threads and user
/// threads emit them.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Wait {
    pub kind: Kind,
    #[event(hex)]
    pub object: u64,
    /// Unique in the process; 0 where the request began before it was recorded.
    pub ticket: u64,
    /// Where it was made: file and line of this [`Origin`].
    #[event(hex)]
    pub origin: u64,
}

/// A request has got its object.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread", ordered)]
pub(super) struct Acquired {
    pub kind: Kind,
    #[event(hex)]
    pub object: u64,
    pub ticket: u64,
    #[event(hex)]
    pub origin: u64,
    /// Whether it had to wait.
    pub waited: bool,
}

/// A request waits no longer, and did not get its object: its future was dropped, or the object is closed.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct GivenUp {
    pub kind: Kind,
    #[event(hex)]
    pub object: u64,
    pub ticket: u64,
}

/// What a request got is given back.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Released {
    pub kind: Kind,
    #[event(hex)]
    pub object: u64,
    pub ticket: u64,
}

/// The thread of the kernel is a worker of this runtime.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Worker<'a> {
    pub runtime: &'a str,
    pub worker: u32,
}

/// The worker has nothing to do.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Park {
    pub worker: u32,
}

/// The worker goes on.
#[derive(Event)]
#[event(crate = crate, provider = "user_thread")]
pub(super) struct Unpark {
    pub worker: u32,
}
