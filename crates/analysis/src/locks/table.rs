//! The result of the analysis: rows, and what applies to all of them.

use tracewing_units::{Caller, Chain, Duration, LockAddress, Pid, Task, Tid};

use super::account::{Account, Histogram, Sum};
use super::graph::Graph;
use super::places::Frame;

/// What a line of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// One line per lock, by its address.
    #[default]
    Lock,
    /// One line per thread that acquires locks.
    Thread,
    /// One line per user thread, and one for threads outside of them.
    Task,
    /// A place in the program from which locks are acquired.
    Caller,
    /// A call chain by which locks are acquired.
    Chain,
}

/// Of what a line of the table is; in the process that the line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The lock at an address.
    Lock(LockAddress),
    /// The futex at an address, which may be a part of a lock that begins there, and is no wait for that.
    Futex(LockAddress),
    /// A thread that acquires locks, by its number.
    Thread(Tid),
    /// A user thread's number; `None` for what threads do for none.
    Task(Option<Task>),
    /// A return address of calls for locks; `None` if unknown, as in the kernel.
    Caller(Option<Caller>),
    /// A call chain; `None` for acquisitions without one.
    Chain(Option<Chain>),
}

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The process; `None` if unknown, and for the kernel's locks.
    pub process: Option<Pid>,
    /// Its name, or nothing.
    pub process_name: String,
    /// The lock, thread, task or place that the row is about.
    pub subject: Subject,
    /// Its acquisitions, waits and holds.
    pub account: Account,
    /// The name of the user thread that [`Row::subject`] is, or nothing.
    pub task_name: String,
    /// The name of the party that [`Account::owner`] returns.
    pub owner_name: String,
    /// Where in the program, the innermost first; of a lock, a thread or a user thread, where it was held
    /// longest, if lines are recorded.
    pub frames: Vec<Frame>,
    /// The place where it was held longest, also if only an address is recorded.
    pub held_at: Option<Frame>,
}

/// Critical sections of one lock, taken at one place, in which a task awaited something else while others
/// waited for the lock.
#[derive(Debug, Clone)]
pub struct AcrossAwait {
    /// The process; `None` if unknown.
    pub process: Option<Pid>,
    /// The lock's address in its process.
    pub lock: LockAddress,
    /// What kind of lock it is.
    pub kind: &'static str,
    /// Where it was taken.
    pub frames: Vec<Frame>,
    /// Number and lengths of these critical sections.
    pub holds: Sum,
    /// How many waited at the end of one, at most.
    pub waiters: usize,
    /// Total time that others waited for the lock during these critical sections, in ns.
    pub waited_ns: Duration,
}

/// The result of [`Locks`](super::Locks).
#[derive(Debug)]
pub struct LocksTable {
    /// What was waited for longest first.
    pub rows: Vec<Row>,
    /// Lengths of critical sections, and nesting, of the program's locks.
    pub histogram: Histogram,
    /// Which party waits for which.
    pub graph: Graph,
    /// Locks that were held across an `.await`, for 1 ms or longer, while others waited; what cost most
    /// waiting first.
    pub across_awaits: Vec<AcrossAwait>,
    /// Functions of the library that records locks that another object overrides: the process, the function,
    /// the object.
    pub shadowed: Vec<(Option<Pid>, String, String)>,
    /// Requests, acquisitions and releases whose end or beginning is not among the analysed events. They are
    /// included in no time except that of the waits in progress at the end.
    pub incomplete: u64,
    /// Threads with locks whose process is unknown.
    pub strangers: usize,
    /// Acquisitions that are in no depth of nesting: no event shows which other locks were held then.
    pub unknown_depths: usize,
    /// Whether the histogram is empty as not all acquisitions and releases were recorded.
    pub lacks_holds: bool,
    /// Whether waits for locks of threads, and for those of user threads, are not in the graph: not all
    /// requests, acquisitions and releases were recorded.
    pub lacks_owners: [bool; 2],
    /// How many holders of one lock at once were not followed, at most, as far as events show: very many
    /// others had taken it later. Owners may be missing then, or not be those that held the lock longest.
    pub forgotten_holders: usize,
    /// How long what was analysed lasted, ns.
    pub duration_ns: Duration,
    /// Why everything that needs pairs of events is unknown, if so.
    pub unpaired: Option<Unpaired>,
}

/// Of two events that belong together, the filter may leave out one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpaired {
    /// By its name or its fields.
    Events,
    /// By its CPU: a wait may begin and end on different ones.
    Cpus,
    /// By its LWP, of the locks of user threads, which go from one to another.
    Tids,
}

/// From when on a lock that is held across an `.await` is remarkable, in nanoseconds: as long as a blocking
/// poll.
pub(super) const LONG_HOLD: Duration = Duration::from_ns(1_000_000);
