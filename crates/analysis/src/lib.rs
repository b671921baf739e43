//! Analyses: each a fold over the super-trace ([`tracewing_trace::super_trace`]) that gives a table.
//!
//! | module | does |
//! |---|---|
//! | [`Breakdown`] | what each process did in each system call and outside of them, and who else worked for it |
//! | [`Locks`] | who waited for which lock, how long locks were held, by whom, and from where in the program |
//! | [`Functions`] | how often functions were called, how long that took, and from where; [`Calls`]: each call |
//! | [`profile`] | in which functions threads were when they were looked at, and by which call chains they came there |
//! | [`Slices`] | each time that a thread had a CPU, how long it had waited for it, who had woken it |
//! | [`Tasks`] | the polls of each task: what they cost, how long it waited for them, what is wrong with them |
//! | [`Threads`] | where the time of each thread, user thread and process went |
//! | [`Times`] | time by what it was spent on |
//! | [`ShownTimes`] | the same as far as a recording's events show it |
//! | [`Latency`] | how long it takes from one event to another |
//! | [`CriticalPaths`] | who had to come to an end so that somebody could |
//!
//! | [`run()`] | reads a recording for one of them |
//!
//! No analysis reads files or prints; none fails: an event that it cannot match leaves time unknown, and says
//! so.

mod analysis;
mod breakdown;
mod critical_path;
mod filtered;
mod functions;
mod images;
mod latency;
mod locks;
mod names;
pub mod profile;
mod programs;
mod run;
mod sched;
mod serials;
mod shown;
mod subjects;
mod tasks;
mod threads;
mod times;
mod who;

pub use analysis::{Analysis, Input, Loss};
pub use breakdown::{
    Breakdown, BreakdownTable, Entry, Ipc, Machine, Outside, ProcessBreakdown, Row as BreakdownRow, Spent,
    Start, Waits,
};
pub use critical_path::{CriticalPath, CriticalPaths, NoPath, Step, Target, What, Why};
pub use functions::{
    Call, CallNode, Calls, Figures, Function, FunctionId, FunctionRow, Functions, FunctionsTable, ThreadKey,
    Unmatched,
};
pub use latency::{
    Bar, Distribution, Episode, Episodes, EventPattern, Group as LatencyGroup, Latency, LatencyTable, Moment,
    Nesting, Period, Question,
};
pub use locks::{
    Account, AcrossAwait, Bins, Edge, Frame, Graph, Group, Histogram, Kinds, LockUse, LockUses, Locks,
    LocksTable, Party, Row, Subject, Sum, Unpaired,
};
pub use names::Names;
pub use run::{LocksLack, Ran, Recorded, run};
pub use sched::{SchedLatencies, SchedLatency, Slice, SliceSink, Slices};
pub use shown::ShownTimes;
pub use tasks::{Task, Tasks, Thresholds};
pub use threads::{Process, Thread, Threads, ThreadsTable, UserThreadAccount};
pub use times::{Part, Times, total, total_count};
pub use tracewing_trace::super_trace::Seen;
pub use who::Who;
